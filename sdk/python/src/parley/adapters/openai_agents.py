"""Runs an agent of the OpenAI Agents SDK.

    from parley import Worker
    from parley.adapters.openai_agents import agent_handler

    worker = Worker("scout")
    worker.handler(agent_handler(Agent(name="Scout", instructions="Be brief.")))
    worker.run()

Pass `session` to keep conversations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..content import FilePart, Message, Part, PartLike
from ..worker import Task
from ._adapter import TaskHandler, needs
from ._answer import Answer
from ._conversation import Turns, conversation_id
from ._prompt import base64_of, history_of, media_type, prompt, text_of

with needs("openai-agents"):
    from agents import Agent, RunConfig, Runner
    from agents.memory import Session
    from agents.run import DEFAULT_MAX_TURNS
    from openai.types.responses import ResponseTextDeltaEvent
    from pydantic import TypeAdapter

C = TypeVar("C")


def agent_handler(
    agent: Agent[C],
    *,
    session: Callable[[str], Session] | None = None,
    context: Callable[[Task], C] | None = None,
    run_config: RunConfig | None = None,
    max_turns: int = DEFAULT_MAX_TURNS,
) -> TaskHandler:
    """Return a handler that runs an agent.

    The text of the model becomes an artifact that grows. If the agent has an `output_type`, the
    final output becomes a data part instead.

    Args:
        agent: The agent. It runs several tasks at a time if the worker does.
        session: Returns the session of a conversation from its id, such as
            `lambda id: SQLiteSession(id, "conversations.db")`. Without it, the agent knows the
            messages of the task only.
        context: Returns the context of a run, which tools and hooks get.
        run_config: The configuration of each run.
        max_turns: How many times a run may call the model.
    """
    turns = Turns()
    writes_text = agent.output_type in (None, str)

    async def handle(task: Task) -> None:
        async with turns.of(task), Answer(task) as answer:
            messages = history_of(task) if session is None else [task.message]
            run = Runner.run_streamed(
                agent,
                [_to_item(message) for message in messages],
                session=session and session(conversation_id(task)),
                context=context and context(task),
                run_config=run_config,
                max_turns=max_turns,
            )
            try:
                async for event in run.stream_events():
                    if event.type != "raw_response_event" or not writes_text:
                        continue
                    if isinstance(event.data, ResponseTextDeltaEvent):
                        await answer.write(event.data.delta, event.data.item_id)
            finally:
                if not run.is_complete:
                    run.cancel()
            if answer.empty and run.final_output is not None:
                await answer.add(_to_part(run.final_output), last=True)

    return handle


def _to_part(output: Any) -> PartLike:
    """Return the final output as text or data."""
    if isinstance(output, str):
        return output
    data = TypeAdapter(type(output)).dump_python(output, mode="json")
    return data if isinstance(data, dict) else {"value": data}


def _to_item(message: Message) -> Any:
    """Return a message as an input item of the Responses API."""
    if message.role == "agent":
        return {"role": "assistant", "content": prompt(message)}
    if not message.files:
        return {"role": "user", "content": prompt(message)}
    return {"role": "user", "content": [_to_content(part) for part in message.parts]}


def _to_content(part: Part) -> dict[str, Any]:
    if not isinstance(part, FilePart):
        return {"type": "input_text", "text": text_of(part)}
    url = part.url
    if part.content is not None:
        url = f"data:{media_type(part)};base64,{base64_of(part.content)}"
    if media_type(part).startswith("image/"):
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    where = {"file_url": url} if part.content is None else {"file_data": url}
    return {"type": "input_file", "filename": part.name or "file", **where}
