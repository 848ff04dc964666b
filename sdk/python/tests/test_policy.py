"""Deadlines, retries and reruns of tasks."""

import asyncio
from datetime import datetime, timedelta, timezone

import pytest
from conftest import Agent, working

from parley import (
    AsyncClient,
    ConflictError,
    Fail,
    Interruption,
    SentTask,
    Task,
    TaskPolicy,
    TaskState,
    ValidationError,
)


def said(task: SentTask) -> str:
    assert task.status.message is not None
    return task.status.message.text


async def test_a_failed_attempt_is_followed_by_another(agent: Agent, sender: AsyncClient) -> None:
    worker = agent.worker()

    @worker.handler
    async def handle(task: Task) -> str:
        if task.attempt < 2:
            raise Fail("not yet")
        return f"attempt {task.attempt} of {task.max_attempts}"

    policy: TaskPolicy = {"retry": {"max_attempts": 4, "backoff_seconds": 0, "on": ["failed"]}}
    async with working(worker):
        task = await sender.agent(agent.id).send("x", policy=policy, wait=20)
    assert (task.state, task.text) == (TaskState.COMPLETED, "attempt 2 of 4")
    assert task.metadata["parley.dev/policy"] == policy


async def test_an_agent_has_a_default(agent: Agent, sender: AsyncClient) -> None:
    await sender.agents.update(
        agent.id, policy={"timeout_seconds": 3600, "retry": {"max_attempts": 7}}
    )
    worker = agent.worker()

    @worker.handler
    async def handle(task: Task) -> str:
        assert task.deadline is not None
        left = task.deadline - datetime.now(timezone.utc)
        return f"{task.max_attempts} attempts, {round(left / timedelta(hours=1))} h"

    async with working(worker):
        task = await sender.agent(agent.id).send("x", wait=20)
    assert task.text == "7 attempts, 1 h"


async def test_a_deadline_ends_the_handler_and_the_task(agent: Agent, sender: AsyncClient) -> None:
    worker = agent.worker()
    reasons: list[object] = []

    @worker.handler
    async def handle(task: Task) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            reasons.append(task.interruption)

    async with working(worker):
        task = await sender.agent(agent.id).send("x", policy={"timeout_seconds": 2}, wait=20)
        assert task.state is TaskState.FAILED
        assert said(task).startswith("The deadline ")
        while not reasons:
            await asyncio.sleep(0.02)
    assert reasons == [Interruption.LEASE_LOST]


async def test_a_wrong_policy_is_refused(agent: Agent, sender: AsyncClient) -> None:
    with pytest.raises(ValidationError) as raised:
        await sender.agent(agent.id).send("x", policy={"retry": {"max_attempts": 11}})
    (field,) = raised.value.fields
    assert "max_attempts" in field.name
    assert "from 1 to 10" in field.detail


async def test_a_failed_task_is_sent_again(agent: Agent, sender: AsyncClient) -> None:
    worker = agent.worker()

    @worker.handler
    async def handle(task: Task) -> str:
        if "parley.dev/rerun_of" not in task.metadata:
            raise Fail("no")
        return f"{task.text}, again"

    to = sender.agent(agent.id)
    async with working(worker):
        assert (await to.send("x", id="job-1", wait=20)).state is TaskState.FAILED
        first = await to.rerun("job-1", idempotency_key=f"again-{agent.id}")
        same = await to.rerun("job-1", idempotency_key=f"again-{agent.id}")
        assert (first["id"], same["uid"]) == ("job-1.2", first["uid"])
        async for _ in to.subscribe("job-1.2"):
            pass
        task = await to.get("job-1.2")
    assert (task.state, task.text) == (TaskState.COMPLETED, "x, again")
    assert task.metadata["parley.dev/rerun_of"] == "job-1"
    with pytest.raises(ConflictError) as raised:
        await to.rerun("job-1.2")
    assert raised.value.code == "task.not_rerunnable"
