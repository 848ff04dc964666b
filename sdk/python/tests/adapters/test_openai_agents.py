"""Agents of the OpenAI Agents SDK as its documentation shows them, with a fake model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agents import (
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    SQLiteSession,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from caller import Caller, Serve
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)
from pydantic import BaseModel

from parley import DataPart, Task, TaskState
from parley.adapters.openai_agents import agent_handler

set_tracing_disabled(True)

Output = ResponseOutputMessage | ResponseFunctionToolCall


class FakeModel(Model):
    """Gives the next output at each call, a text word by word, and keeps what it was asked."""

    def __init__(self, *outputs: str | ResponseFunctionToolCall) -> None:
        self.outputs = list(outputs)
        self.inputs: list[list[str]] = []

    def next(self, given: str | list[Any]) -> Output:
        items = [given] if isinstance(given, str) else [str(i.get("content")) for i in given]
        self.inputs.append(items)
        output = self.outputs.pop(0)
        if not isinstance(output, str):
            return output
        text = ResponseOutputText(text=output, type="output_text", annotations=[])
        return ResponseOutputMessage(
            id=f"msg-{len(self.inputs)}",
            type="message",
            role="assistant",
            content=[text],
            status="completed",
        )

    async def get_response(
        self, system_instructions: Any, input: Any, *args: Any, **more: Any
    ) -> ModelResponse:
        return ModelResponse(output=[self.next(input)], usage=Usage(), response_id=None)

    async def stream_response(
        self, system_instructions: Any, input: Any, *args: Any, **more: Any
    ) -> AsyncIterator[Any]:
        output = self.next(input)
        number = 0
        if isinstance(output, ResponseOutputMessage):
            for number, word in enumerate(output.content[0].text.split(" ")):
                yield ResponseTextDeltaEvent(
                    type="response.output_text.delta",
                    item_id=output.id,
                    delta=word if number == 0 else f" {word}",
                    content_index=0,
                    output_index=0,
                    sequence_number=number,
                    logprobs=[],
                )
                await asyncio.sleep(0)
        response = Response(
            id="resp-1",
            created_at=0,
            model="fake",
            object="response",
            output=[output],
            tool_choice="none",
            tools=[],
            parallel_tool_calls=False,
        )
        yield ResponseCompletedEvent(
            type="response.completed", response=response, sequence_number=number + 1
        )


async def test_tokens_become_a_growing_artifact(serve: Serve, caller: Caller) -> None:
    @function_tool
    def get_weather(city: str) -> str:
        """Return the weather of a city."""
        return f"sunny in {city}"

    call = ResponseFunctionToolCall(
        id="1", call_id="1", type="function_call", name="get_weather", arguments='{"city":"Rome"}'
    )
    model = FakeModel(call, "It is sunny in Rome")
    agent = Agent(name="Weather", instructions="Be brief.", tools=[get_weather], model=model)
    async with serve(agent_handler(agent)):
        stream = await caller.send("What is the weather in Rome?")
    assert stream.text("answer") == "It is sunny in Rome"
    assert len(stream.chunks) > 1
    assert (stream.chunks[0].append, stream.chunks[-1].last) == (False, True)
    assert stream.states[-1] is TaskState.COMPLETED


async def test_a_context_is_a_session(serve: Serve, caller: Caller, tmp_path: Path) -> None:
    model = FakeModel("one", "two", "three")
    agent = Agent(name="Assistant", instructions="Reply very concisely.", model=model)
    database = tmp_path / "conversations.db"
    async with serve(agent_handler(agent, session=lambda name: SQLiteSession(name, database))):
        first = await caller.send("first")
        await caller.send("second", context_id=first.context_id)
        await caller.send("other")
    assert model.inputs[0] == ["first"]
    assert (model.inputs[1][0], model.inputs[1][-1], len(model.inputs[1])) == ("first", "second", 3)
    assert model.inputs[2] == ["other"]


async def test_an_output_type_becomes_data(serve: Serve, caller: Caller) -> None:
    class CalendarEvent(BaseModel):
        name: str
        participants: list[str]

    model = FakeModel('{"name": "Lunch", "participants": ["ada"]}')
    agent = Agent(name="Extractor", output_type=CalendarEvent, model=model)
    async with serve(agent_handler(agent)):
        stream = await caller.send("Lunch with ada")
    assert stream.artifacts["answer"] == [DataPart({"name": "Lunch", "participants": ["ada"]})]


async def test_tools_get_the_context_of_the_task(serve: Serve, caller: Caller) -> None:
    seen: list[Task] = []

    def context(task: Task) -> Task:
        seen.append(task)
        return task

    agent: Agent[Task] = Agent(name="Assistant", model=FakeModel("done"))
    async with serve(agent_handler(agent, context=context, run_config=RunConfig(), max_turns=2)):
        await caller.send("hi")
    assert str(seen[0].sender) == "main/user:admin"


async def test_failures_and_cancellation(serve: Serve, caller: Caller) -> None:
    started, interrupted = asyncio.Event(), asyncio.Event()

    class SlowModel(FakeModel):
        async def stream_response(self, *args: Any, **more: Any) -> AsyncIterator[Any]:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                interrupted.set()
            yield

    async with serve(agent_handler(Agent(name="Assistant", model=FakeModel()))):
        failed = await caller.send("hi")
    assert failed.states[-1] is TaskState.FAILED
    async with serve(agent_handler(Agent(name="Assistant", model=SlowModel()))):
        canceled = await caller.send_and_cancel("work", started)
        assert canceled.states[-1] is TaskState.CANCELED
        await interrupted.wait()
