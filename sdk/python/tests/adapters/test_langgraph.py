"""Graphs of LangGraph as its documentation shows them, with a fake model."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

from caller import Caller, Serve
from langchain_core.language_models import GenericFakeChatModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import interrupt

from parley import DataPart, TaskState
from parley.adapters.langgraph import graph_handler

Graph = CompiledStateGraph[Any, Any, Any, Any]


def chatbot(*answers: str) -> Graph:
    """The chatbot of LangGraph's tutorial, with memory."""
    model = GenericFakeChatModel(messages=iter(answers))

    async def call_model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("chatbot", call_model)
    builder.add_edge(START, "chatbot")
    builder.add_edge("chatbot", END)
    return builder.compile(checkpointer=InMemorySaver())


async def test_tokens_become_a_growing_artifact(serve: Serve, caller: Caller) -> None:
    async with serve(graph_handler(chatbot("Hello there, traveller"))):
        stream = await caller.send("hi")
    assert stream.text("answer") == "Hello there, traveller"
    assert len(stream.chunks) > 1
    assert (stream.chunks[0].append, stream.chunks[-1].last) == (False, True)
    assert stream.states[-1] is TaskState.COMPLETED


async def test_a_context_is_a_thread(serve: Serve, caller: Caller) -> None:
    graph = chatbot("one", "two", "three")
    async with serve(graph_handler(graph)):
        first = await caller.send("first")
        await caller.send("second", context_id=first.context_id)
        await caller.send("other")
    thread = f"main/user:admin/{first.context_id}"
    state = await graph.aget_state({"configurable": {"thread_id": thread}})
    assert [m.content for m in state.values["messages"]] == ["first", "one", "second", "two"]


def approval() -> Graph:
    """The graph of LangGraph's guide to interrupts: a human approves an action."""

    class State(TypedDict):
        action: str
        status: str

    def approve(state: State) -> dict[str, str]:
        get_stream_writer()("checking the policy")
        reply = interrupt({"question": "Approve?", "action": state["action"]})
        return {"status": "approved" if reply == "yes" else "rejected"}

    def confirm(state: State) -> dict[str, str]:
        return {"status": f"{state['status']}, signed {interrupt('Who signs?')}"}

    builder = StateGraph(State)
    builder.add_node("approve", approve)
    builder.add_node("confirm", confirm)
    builder.add_edge(START, "approve")
    builder.add_edge("approve", "confirm")
    builder.add_edge("confirm", END)
    return builder.compile(checkpointer=InMemorySaver())


async def test_an_interrupt_asks_the_sender(serve: Serve, caller: Caller) -> None:
    handler = graph_handler(approval(), to_input=lambda task: {"action": task.text})
    async with serve(handler):
        asked = await caller.send("transfer 10")
        assert asked.states[-1] is TaskState.INPUT_REQUIRED
        assert asked.says[0] == "checking the policy"
        (question,) = asked.events[-1].status.message.parts
        assert question.data == {"question": "Approve?", "action": "transfer 10"}
        # Another task of the same context does not reply to the question.
        other = await caller.send("transfer 20", context_id=asked.context_id)
        assert other.states[-1] is TaskState.INPUT_REQUIRED
        ids = {"task_id": other.task_id, "context_id": other.context_id}
        asked = await caller.send("yes", **ids)
        assert (asked.states[-1], asked.says[-1]) == (TaskState.INPUT_REQUIRED, "Who signs?")
        done = await caller.send("ada", **ids)
    assert done.states[-1] is TaskState.COMPLETED
    (result,) = done.artifacts["answer"]
    assert isinstance(result, DataPart)
    assert result.data == {"action": "transfer 20", "status": "approved, signed ada"}


async def test_without_a_checkpointer_the_graph_gets_the_task_only(
    serve: Serve, caller: Caller
) -> None:
    async def count(state: MessagesState) -> dict[str, Any]:
        return {"messages": [("assistant", f"{len(state['messages'])} messages")]}

    builder = StateGraph(MessagesState)
    builder.add_node("count", count)
    builder.add_edge(START, "count")
    async with serve(graph_handler(builder.compile())):
        first = await caller.send("a")
        second = await caller.send("b", context_id=first.context_id)
    assert [first.text("answer"), second.text("answer")] == ["1 messages", "1 messages"]


async def test_cancel_interrupts_the_graph(serve: Serve, caller: Caller) -> None:
    started, interrupted = asyncio.Event(), asyncio.Event()

    async def wait(state: MessagesState) -> dict[str, Any]:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            interrupted.set()
        return {}

    builder = StateGraph(MessagesState)
    builder.add_node("wait", wait)
    builder.add_edge(START, "wait")
    async with serve(graph_handler(builder.compile())):
        canceled = await caller.send_and_cancel("work", started)
        assert canceled.states[-1] is TaskState.CANCELED
        await interrupted.wait()
