"""Runs a compiled graph of LangGraph.

    from parley import Worker
    from parley.adapters.langgraph import graph_handler

    worker = Worker("scout")
    worker.handler(graph_handler(builder.compile(checkpointer=InMemorySaver())))
    worker.run()

With a checkpointer, the graph remembers conversations and may ask the sender with `interrupt`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from typing import Any

from ..content import DataPart, FilePart, Message, Part, PartLike
from ..worker import Task
from ._adapter import TaskHandler, needs
from ._answer import Answer
from ._conversation import Turns, conversation_id
from ._prompt import base64_of, history_of, media_type, prompt, text_of

with needs("langgraph"):
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import RunnableConfig
    from langgraph.pregel import Pregel
    from langgraph.types import Command, Interrupt

_TASK = "parley_task"
"""In the metadata of checkpoints: the task that the graph ran for."""


def graph_handler(
    graph: Pregel[Any, Any, Any, Any],
    *,
    to_input: Callable[[Task], Any] | None = None,
    nodes: Collection[str] | None = None,
    config: RunnableConfig | None = None,
    context: Any = None,
) -> TaskHandler:
    """Return a handler that runs a graph.

    - The text of models, and of messages that nodes return, becomes an artifact that grows. If
      there is none, the result is the last of the `messages` of the final state, or the state
      itself, which then must be JSON.
    - What a node writes with `get_stream_writer` is progress.
    - If the graph has a checkpointer, a conversation is a thread of it, and `interrupt` asks the
      sender: it returns the text of the reply, or its data if it has no text.

    Args:
        graph: The graph. It runs several tasks at a time if the worker does.
        to_input: Returns the input of the graph. By default it has one key, `messages`: the
            message of the task, or all of its messages if the graph has no checkpointer.
        nodes: Names of the nodes whose messages the sender sees; by default all of them.
        config: The configuration of each run. Its thread and metadata are extended.
        context: The context of each run, as of the `context_schema` of the graph.
    """
    turns = Turns()
    has_threads = bool(graph.checkpointer)

    async def handle(task: Task) -> None:
        async with turns.of(task):
            run = _extend(config or {}, task)
            given: Any = None
            if has_threads and (asked := await _interrupt_of(graph, run, task)) is not None:
                given = Command(resume={asked.id: _reply(task.message)})
            elif to_input is not None:
                given = to_input(task)
            else:
                messages = [task.message] if has_threads else history_of(task)
                given = {"messages": [_to_message(message, task) for message in messages]}
            await _stream(graph, given, run, context, nodes, task)
            if has_threads and (asked := await _interrupt_of(graph, run, task)) is not None:
                await task.require_input(_to_part(asked.value))

    return handle


async def _stream(
    graph: Pregel[Any, Any, Any, Any],
    given: Any,
    config: RunnableConfig,
    context: Any,
    nodes: Collection[str] | None,
    task: Task,
) -> None:
    chunks: AsyncIterator[Any] = graph.astream(
        given, config, context=context, stream_mode=["messages", "custom", "values"]
    )
    state: Any = None
    async with Answer(task) as answer:
        async for mode, chunk in chunks:
            if mode == "values":
                state = chunk
            elif mode == "custom":
                await task.progress(_to_part(chunk))
            else:
                message, metadata = chunk
                if isinstance(message, AIMessage) and (
                    nodes is None or metadata["langgraph_node"] in nodes
                ):
                    await answer.write(str(message.text), message.id)
        if answer.empty and state is not None and "__interrupt__" not in state:
            await answer.add(_result_of(state), last=True)


def _extend(config: RunnableConfig, task: Task) -> RunnableConfig:
    """Return the configuration of a run for a task."""
    extended = config.copy()
    thread = {"thread_id": conversation_id(task)}
    extended["configurable"] = {**config.get("configurable", {}), **thread}
    extended["metadata"] = {**config.get("metadata", {}), _TASK: task.id}
    return extended


async def _interrupt_of(
    graph: Pregel[Any, Any, Any, Any], config: RunnableConfig, task: Task
) -> Interrupt | None:
    """Return the interrupt that the graph waits for in this task.

    Another task of the same thread may have been interrupted. Then this one starts anew.
    """
    state = await graph.aget_state(config)
    if not state.interrupts or (state.metadata or {}).get(_TASK) != task.id:
        return None
    return state.interrupts[0]


def _result_of(state: Any) -> PartLike:
    """Return the last message of the final state, or the state if it has no messages."""
    messages = state.get("messages") if isinstance(state, Mapping) else None
    return str(messages[-1].text) if messages else _to_part(state)


def _to_part(value: Any) -> PartLike:
    """Return a value of the graph as a part: text or data."""
    return value if isinstance(value, (str, Mapping)) else {"value": value}


def _reply(message: Message) -> Any:
    """Return what `interrupt` returns in the graph."""
    data = [part.data for part in message.parts if isinstance(part, DataPart)]
    return message.text or (data[0] if data else "")


def _to_message(message: Message, task: Task) -> dict[str, Any]:
    """Return a message of LangChain.

    It has an id, so that a second attempt of the task replaces it instead of repeating it.
    """
    content: str | list[dict[str, Any]] = prompt(message)
    if message.files:
        content = [_to_block(part) for part in message.parts]
    role = "user" if message.role == "user" else "assistant"
    return {"role": role, "content": content, "id": message.id or task.id}


def _to_block(part: Part) -> dict[str, Any]:
    """Return a part as a content block of LangChain."""
    if not isinstance(part, FilePart):
        return {"type": "text", "text": text_of(part)}
    kind = media_type(part).partition("/")[0]
    block = {"type": kind if kind in ("image", "audio", "video") else "file"}
    if part.content is None:
        return {**block, "url": part.url}
    return {**block, "base64": base64_of(part.content), "mime_type": media_type(part)}
