"""Agents of Google's Agent Development Kit as its documentation shows them, with a fake model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from caller import Caller, Serve
from google.adk.agents import Agent, SequentialAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from parley import FilePart, TaskState
from parley.adapters.adk import agent_handler


class FakeLlm(BaseLlm):
    """Gives the next output at each call, a text word by word, and keeps what it was asked."""

    model: str = "fake"
    outputs: list[str | types.Part] = []  # noqa: RUF012 - a field of pydantic, which copies it
    inputs: list[list[str]] = []  # noqa: RUF012

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.inputs.append([p.text for c in llm_request.contents for p in c.parts or [] if p.text])
        output = self.outputs.pop(0)
        part = types.Part(text=output) if isinstance(output, str) else output
        for number, word in enumerate((part.text or "").split(" ") if stream and part.text else []):
            text = word if number == 0 else f" {word}"
            content = types.Content(role="model", parts=[types.Part(text=text)])
            yield LlmResponse(content=content, partial=True)
            await asyncio.sleep(0)
        yield LlmResponse(content=types.Content(role="model", parts=[part]), partial=False)


def get_weather(city: str) -> dict[str, str]:
    """Retrieves the current weather report for a specified city."""
    return {"status": "success", "report": f"The weather in {city} is sunny."}


def weather_agent(*outputs: str | types.Part) -> tuple[Agent, FakeLlm]:
    """The agent of ADK's quickstart."""
    model = FakeLlm(outputs=list(outputs))
    agent = Agent(
        name="weather_agent",
        model=model,
        description="Agent to answer questions about the weather in a city.",
        instruction="You are a helpful agent who can answer questions about the weather.",
        tools=[get_weather],
    )
    return agent, model


async def test_tokens_become_a_growing_artifact(serve: Serve, caller: Caller) -> None:
    call = types.Part.from_function_call(name="get_weather", args={"city": "Rome"})
    agent, _ = weather_agent(call, "It is sunny in Rome")
    async with serve(agent_handler(agent)):
        stream = await caller.send("What is the weather in Rome?")
    assert stream.text("answer") == "It is sunny in Rome"
    assert len(stream.chunks) > 1
    assert (stream.chunks[0].append, stream.chunks[-1].last) == (False, True)
    assert stream.states[-1] is TaskState.COMPLETED


async def test_a_context_is_a_session_of_the_sender(serve: Serve, caller: Caller) -> None:
    agent, model = weather_agent("one", "two", "three")
    runner = InMemoryRunner(agent, app_name="weather")
    async with serve(agent_handler(runner)):
        first = await caller.send("first")
        await caller.send("second", context_id=first.context_id)
        await caller.send("other")
    assert model.inputs == [["first"], ["first", "one", "second"], ["other"]]
    session = await runner.session_service.get_session(
        app_name="weather", user_id="main/user:admin", session_id=first.context_id
    )
    assert session is not None


async def test_agents_write_paragraphs_and_files(serve: Serve, caller: Caller) -> None:
    picture = types.Part.from_bytes(data=b"\x89PNG", mime_type="image/png")
    writer = Agent(name="writer", model=FakeLlm(outputs=["A draft."]))
    painter = Agent(name="painter", model=FakeLlm(outputs=[picture]))
    editor = Agent(name="editor", model=FakeLlm(outputs=["A better text."]))
    pipeline = SequentialAgent(name="pipeline", sub_agents=[writer, painter, editor])
    async with serve(agent_handler(pipeline)):
        stream = await caller.send("write")
    assert stream.text("answer") == "A draft.\n\nA better text."
    files = [part for part in stream.artifacts["answer"] if isinstance(part, FilePart)]
    assert [(file.content, file.media_type) for file in files] == [(b"\x89PNG", "image/png")]


async def test_failures_and_cancellation(serve: Serve, caller: Caller) -> None:
    started, interrupted = asyncio.Event(), asyncio.Event()

    class SlowLlm(FakeLlm):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                interrupted.set()
            yield LlmResponse()

    class BlockedLlm(FakeLlm):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            yield LlmResponse(error_code="SAFETY", error_message="the prompt was blocked")

    async with serve(agent_handler(Agent(name="blocked", model=BlockedLlm()))):
        failed = await caller.send("hi")
    assert (failed.states[-1], failed.says[-1]) == (TaskState.FAILED, "the prompt was blocked")
    async with serve(agent_handler(Agent(name="slow", model=SlowLlm()))):
        canceled = await caller.send_and_cancel("work", started)
        assert canceled.states[-1] is TaskState.CANCELED
        await interrupted.wait()
