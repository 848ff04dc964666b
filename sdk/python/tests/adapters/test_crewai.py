"""A crew of CrewAI as its documentation shows it, with a fake model."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from caller import Caller, Serve, Stream
from crewai import Agent, BaseLLM, Crew, Process, Task
from pydantic import BaseModel

from parley import DataPart, TaskState
from parley import Task as ParleyTask
from parley.adapters.crewai import crew_handler


class FakeLLM(BaseLLM):
    """Gives the output for the role in the prompt, word by word if the crew streams."""

    outputs: dict[str, str] = {}  # noqa: RUF012 - a field of pydantic, which copies it

    def answer(self, messages: Any, more: dict[str, Any]) -> str:
        prompt = str(messages)
        output = next(text for role, text in self.outputs.items() if f"You are {role}" in prompt)
        for number, word in enumerate(output.split(" ") if self.stream else []):
            self._emit_stream_chunk_event(
                word if number == 0 else f" {word}",
                from_task=more.get("from_task"),
                from_agent=more.get("from_agent"),
            )
        return output

    def call(self, messages: Any, tools: Any = None, *args: Any, **more: Any) -> str:
        return self.answer(messages, more)


def research_crew(llm: BaseLLM, **report: Any) -> Crew:
    """The crew of CrewAI's quickstart."""
    researcher = Agent(
        role="Senior Data Researcher",
        goal="Uncover cutting-edge developments in {topic}",
        backstory="You're a seasoned researcher.",
        llm=llm,
    )
    analyst = Agent(
        role="Reporting Analyst",
        goal="Create detailed reports based on {topic} data analysis",
        backstory="You're a meticulous analyst.",
        llm=llm,
    )
    research = Task(
        description="Conduct a thorough research about {topic}",
        expected_output="A list with bullet points",
        agent=researcher,
    )
    reporting = Task(
        description="Review the context and write a report about {topic}",
        expected_output="A report",
        agent=analyst,
        **report,
    )
    return Crew(
        agents=[researcher, analyst], tasks=[research, reporting], process=Process.sequential
    )


OUTPUTS = {
    "Senior Data Researcher": "Final Answer: three facts about it",
    "Reporting Analyst": "Final Answer: a long report about it",
}


async def test_tokens_become_a_growing_artifact(serve: Serve, caller: Caller) -> None:
    crew = research_crew(FakeLLM(model="fake", outputs=OUTPUTS))
    async with serve(crew_handler(crew, to_inputs=lambda task: {"topic": task.text})):
        stream = await caller.send("agents")
    assert stream.says == ["Senior Data Researcher: three facts about it"]
    assert stream.text("answer") == "a long report about it"
    assert stream.states[-1] is TaskState.COMPLETED
    assert any(event.append for event in stream.chunks)


async def test_a_model_of_the_output_becomes_data(serve: Serve, caller: Caller) -> None:
    class Report(BaseModel):
        title: str

    outputs = {**OUTPUTS, "Reporting Analyst": 'Final Answer: {"title": "Agents"}'}
    crew = research_crew(FakeLLM(model="fake", outputs=outputs), output_pydantic=Report)
    async with serve(crew_handler(crew)):
        # The data of the message are inputs.
        events = [
            e async for e in caller.stream([{"text": "write"}, {"data": {"topic": "agents"}}])
        ]
    assert Stream(events).artifacts["answer"] == [DataPart({"title": "Agents"})]


async def test_failures_and_cancellation(serve: Serve, caller: Caller) -> None:
    loop = asyncio.get_running_loop()
    started, ended, release = asyncio.Event(), asyncio.Event(), threading.Event()
    calls: list[str] = []

    class SlowLLM(FakeLLM):
        def call(self, messages: Any, *args: Any, **more: Any) -> str:
            calls.append(str(messages))
            loop.call_soon_threadsafe(started.set)
            release.wait(60)
            loop.call_soon_threadsafe(ended.set)
            return "Final Answer: done"

    class BrokenLLM(FakeLLM):
        def call(self, *args: Any, **more: Any) -> str:
            raise RuntimeError("no credit")

    def inputs(task: ParleyTask) -> dict[str, str]:
        return {"topic": task.text}

    async with serve(crew_handler(research_crew(BrokenLLM(model="fake")), to_inputs=inputs)):
        failed = await caller.send("agents")
    assert (failed.states[-1], failed.says[-1]) == (
        TaskState.FAILED,
        "the agent failed in an unexpected way",
    )
    async with serve(crew_handler(research_crew(SlowLLM(model="fake")), to_inputs=inputs)):
        canceled = await caller.send_and_cancel("agents", started)
        assert canceled.states[-1] is TaskState.CANCELED
        release.set()
        await ended.wait()
    assert len(calls) == 1
