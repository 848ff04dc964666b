"""Executors for the A2A SDK 0.3, written as its samples are."""

from __future__ import annotations

import asyncio

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import Part, TaskState, TextPart
from a2a.utils import new_agent_text_message, new_task


def new_text_part(text: str) -> Part:
    return Part(root=TextPart(text=text))


class HelloWorldAgentExecutor(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        await event_queue.enqueue_event(new_agent_text_message("Hello World"))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise Exception("cancel not supported")


class TravelAgentExecutor(AgentExecutor):
    """Streams its answer in chunks of one artifact."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = context.current_task or new_task(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work(updater.new_agent_message([new_text_part("Looking at maps")]))
        chunks = ["Day 1: ", context.get_user_input(), ". Day 2: home."]
        for number, chunk in enumerate(chunks):
            await updater.add_artifact(
                [new_text_part(chunk)],
                artifact_id="plan",
                name="Plan",
                append=number > 0,
                last_chunk=number == len(chunks) - 1,
            )
        await updater.complete(updater.new_agent_message([new_text_part("Have a good trip")]))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise Exception("cancel not supported")


class CurrencyAgentExecutor(AgentExecutor):
    """Asks when it needs to know more."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.seen.append(f"{context.call_context.user.user_name} {context.context_id}")
        task = context.current_task
        if not task:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        if task.status.state != TaskState.input_required:
            question = updater.new_agent_message([new_text_part("To which currency?")])
            await updater.requires_input(question)
            return
        first = task.history[0].parts[0].root.text
        answer = f"{first} to {context.get_user_input()}: 0.9"
        await updater.add_artifact([new_text_part(answer)], artifact_id="rate", name="Rate")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise Exception("cancel not supported")


class SlowAgentExecutor(AgentExecutor):
    def __init__(self) -> None:
        self.interrupted = False
        self.started, self.canceled = asyncio.Event(), asyncio.Event()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work(updater.new_agent_message([new_text_part("on it")]))
        self.started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.interrupted = True
            raise

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()
        self.canceled.set()


class RefusingAgentExecutor(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if context.get_user_input() == "raise":
            raise ValueError("out of paper")
        message = updater.new_agent_message([new_text_part("no")])
        if context.get_user_input() == "fail":
            await updater.failed(message)
        else:
            await updater.reject(message)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise Exception("cancel not supported")
