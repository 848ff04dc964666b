"""Runs a crew of CrewAI.

    from parley import Worker
    from parley.adapters.crewai import crew_handler

    worker = Worker("scout")
    worker.handler(crew_handler(ResearchCrew().crew(), to_inputs=lambda task: {"topic": task.text}))
    worker.run()

CrewAI calls models in threads. When the sender cancels a task, a call that has begun continues, but
the crew does nothing after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from ..content import DataPart, PartLike
from ..worker import Task
from ._adapter import TaskHandler, needs
from ._answer import ARTIFACT_ID

with needs("crewai"):
    from crewai import Crew, CrewOutput, TaskOutput
    from crewai.types.streaming import CrewStreamingOutput, StreamChunkType


def _default_inputs(task: Task) -> Mapping[str, Any]:
    """Return the data of the message, and its text as `message`."""
    inputs: dict[str, Any] = {"message": task.text}
    for part in task.message.parts:
        if isinstance(part, DataPart) and isinstance(part.data, Mapping):
            inputs.update(part.data)
    return inputs


def crew_handler(
    crew: Crew, *, to_inputs: Callable[[Task], Mapping[str, Any]] = _default_inputs
) -> TaskHandler:
    """Return a handler that runs a crew.

    The text of the models becomes an artifact that grows. When a task of the crew ends, its output
    is progress, and the artifact starts anew; at the end it is the output of the crew. A crew has
    no conversations; give it what it should know as inputs.

    Args:
        crew: The crew. Each task runs a copy of it.
        to_inputs: Returns the inputs of a run. By default these are the data of the message, and
            its text as `message`.
    """

    async def handle(task: Task) -> None:
        run = _Run(crew, dict(to_inputs(task)))
        try:
            await _report(run, task)
        finally:
            await run.stop()

    return handle


async def _report(run: _Run, task: Task) -> None:
    answer, text, done = task.open_artifact(ARTIFACT_ID), "", 0
    while (item := await run.events.get()) is not None:
        if isinstance(item, str):
            text += item
            await answer.write(item)
            continue
        done += 1
        if done < run.size:
            await task.progress(f"{item.agent}: {item.raw}")
            await answer.close()
            answer, text = task.open_artifact(ARTIFACT_ID), ""
    output = await run.output
    result = _to_part(output)
    await answer.close()
    if text != result:
        await task.send_artifact(result, id=ARTIFACT_ID)


class _Run:
    """One run of a copy of a crew, in a task of its own.

    `events` has the text of models and the outputs of tasks, and None at the end.
    """

    def __init__(self, crew: Crew, inputs: dict[str, Any]) -> None:
        self.size = len(crew.tasks)
        self.events: asyncio.Queue[str | TaskOutput | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._notify = crew.task_callback
        self._crew = crew.copy()
        self._crew.stream = True
        self._crew.task_callback = self._task_done
        self.output = asyncio.create_task(self._kickoff(inputs))

    async def stop(self) -> None:
        """End the run, unless it is over."""
        self.output.cancel()
        await asyncio.wait({self.output})

    async def _kickoff(self, inputs: dict[str, Any]) -> CrewOutput:
        try:
            chunks = await self._crew.akickoff(inputs)
            assert isinstance(chunks, CrewStreamingOutput)  # noqa: S101 - because of stream
            async for chunk in chunks:
                if chunk.chunk_type is StreamChunkType.TEXT and chunk.content:
                    self.events.put_nowait(chunk.content)
            return chunks.result
        finally:
            self.events.put_nowait(None)

    def _task_done(self, output: TaskOutput) -> Any:
        self._loop.call_soon_threadsafe(self.events.put_nowait, output)
        return self._notify(output) if self._notify is not None else None


def _to_part(output: CrewOutput) -> PartLike:
    """Return the output of a crew: data if its last task has a model of it, or else text."""
    if output.pydantic is not None:
        return output.pydantic.model_dump(mode="json")
    return output.json_dict or output.raw
