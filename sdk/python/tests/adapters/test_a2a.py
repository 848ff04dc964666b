"""Executors of the A2A SDK, of the version that is installed."""

from __future__ import annotations

from caller import V1, Caller, Serve

from parley import TaskState
from parley.adapters.a2a import executor_handler

if V1:
    import executors_v1 as executors
else:
    import executors_v03 as executors


async def test_a_message_is_the_whole_result(serve: Serve, caller: Caller) -> None:
    async with serve(executor_handler(executors.HelloWorldAgentExecutor())):
        stream = await caller.send("hi")
    (message,) = [e.message for e in stream.events if e.message] or [None]
    if message is not None:
        assert (message.role, message.text) == ("agent", "Hello World")
    else:  # the stream had begun as a task
        assert stream.says == ["Hello World"]


async def test_chunks_become_a_growing_artifact(serve: Serve, caller: Caller) -> None:
    async with serve(executor_handler(executors.TravelAgentExecutor())):
        stream = await caller.send("Rome")
    texts = [(e.artifact.text, e.append, e.last) for e in stream.chunks if e.artifact]
    assert texts == [
        ("Day 1: ", False, False),
        ("Rome", True, False),
        (". Day 2: home.", True, True),
    ]
    assert stream.says == ["Looking at maps", "Have a good trip"]
    assert stream.states[-1] is TaskState.COMPLETED


async def test_a_question_continues_with_the_reply(serve: Serve, caller: Caller) -> None:
    executor = executors.CurrencyAgentExecutor()
    async with serve(executor_handler(executor)):
        asked = await caller.send("1 USD", context_id="trip")
        assert (asked.states[-1], asked.says) == (TaskState.INPUT_REQUIRED, ["To which currency?"])
        done = await caller.send("EUR", task_id=asked.task_id, context_id="trip")
    assert done.text("rate") == "1 USD to EUR: 0.9"
    assert done.states[-1] is TaskState.COMPLETED
    assert executor.seen == ["main/user:admin main/user:admin/trip"] * 2


async def test_cancel_interrupts_and_calls_the_executor(serve: Serve, caller: Caller) -> None:
    executor = executors.SlowAgentExecutor()
    async with serve(executor_handler(executor)):
        stream = await caller.send_and_cancel("work", executor.started)
        assert stream.states[-1] is TaskState.CANCELED
        await executor.canceled.wait()
    assert executor.interrupted


async def test_failures_end_the_task(serve: Serve, caller: Caller) -> None:
    async with serve(executor_handler(executors.RefusingAgentExecutor())):
        for text, state, said in [
            ("raise", TaskState.FAILED, "the agent failed in an unexpected way"),
            ("fail", TaskState.FAILED, "no"),
            ("reject", TaskState.REJECTED, "no"),
        ]:
            stream = await caller.send(text)
            assert (stream.states[-1], stream.says[-1]) == (state, said)
