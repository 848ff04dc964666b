"""Runs an agent of Google's Agent Development Kit.

    from parley import Worker
    from parley.adapters.adk import agent_handler

    worker = Worker("scout")
    worker.handler(agent_handler(root_agent))
    worker.run()

Sessions stay in memory unless the handler gets a runner with another service.
"""

from __future__ import annotations

from contextlib import aclosing

from ..content import FilePart, Message, Part
from ..errors import Fail
from ..worker import Task
from ._adapter import TaskHandler, needs
from ._answer import Answer
from ._conversation import Turns
from ._prompt import media_type, text_of

with needs("adk"):
    from google.adk.agents import BaseAgent
    from google.adk.agents.run_config import RunConfig, StreamingMode  # type: ignore[attr-defined]
    from google.adk.events import Event
    from google.adk.runners import InMemoryRunner, Runner
    from google.genai import types


def agent_handler(agent: BaseAgent | Runner, *, run_config: RunConfig | None = None) -> TaskHandler:
    """Return a handler that runs an agent.

    The text of the model becomes an artifact that grows, and so do the files that it makes. The
    sender is the user of ADK, and the context id is the id of the session.

    Args:
        agent: The agent, or a runner with the services to use. An agent gets a runner that keeps
            sessions in memory. It runs several tasks at a time if the worker does.
        run_config: The configuration of each run; by default with streaming.
    """
    runner = agent if isinstance(agent, Runner) else InMemoryRunner(agent, app_name=agent.name)
    run_config = run_config or RunConfig(streaming_mode=StreamingMode.SSE)
    turns = Turns()

    async def handle(task: Task) -> None:
        async with turns.of(task), Answer(task) as answer:
            user, session = str(task.sender), task.context_id
            await _ensure_session(runner, user, session)
            events = runner.run_async(
                user_id=user,
                session_id=session,
                new_message=_to_content(task.message),
                run_config=run_config,
            )
            relay = _Relay(answer)
            async with aclosing(events):
                async for event in events:
                    await relay.report(event)

    return handle


async def _ensure_session(runner: Runner, user: str, session: str) -> None:
    app, sessions = runner.app_name, runner.session_service
    if await sessions.get_session(app_name=app, user_id=user, session_id=session) is None:
        await sessions.create_session(app_name=app, user_id=user, session_id=session)


class _Relay:
    """Writes the events of a run to the answer."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._messages = 0
        self._streaming: set[tuple[str, str | None]] = set()

    async def report(self, event: Event) -> None:
        if event.error_code and not event.content:
            raise Fail(event.error_message or f"the model failed: {event.error_code}")
        parts = (event.content and event.content.parts) or []
        text = "".join(part.text for part in parts if part.text and not part.thought)
        agent = event.author, event.branch
        if event.partial:
            self._streaming.add(agent)
            await self._answer.write(text, (agent, self._messages))
            return
        if agent in self._streaming:  # the whole text of the chunks before
            self._streaming.remove(agent)
        else:
            await self._answer.write(text, (agent, self._messages))
        self._messages += 1
        await self._answer.add(*[_to_file(part.inline_data) for part in parts if part.inline_data])


def _to_content(message: Message) -> types.Content:
    return types.Content(role="user", parts=[_to_part(part) for part in message.parts])


def _to_part(part: Part) -> types.Part:
    if not isinstance(part, FilePart):
        return types.Part(text=text_of(part))
    if part.content is None:
        return types.Part.from_uri(file_uri=part.url or "", mime_type=media_type(part))
    return types.Part.from_bytes(data=part.content, mime_type=media_type(part))


def _to_file(blob: types.Blob) -> FilePart:
    return FilePart(blob.data or b"", name=blob.display_name, media_type=blob.mime_type)
