"""Agents that call other agents as part of their tasks."""

from conftest import Agent, working

from parley import APIError, AsyncClient, DataPart, Fail, SyncTask, Task, TaskState

CHAIN = "parley.dev/chain"


async def test_a_call_is_part_of_the_task(caller: Agent, agent: Agent, sender: AsyncClient) -> None:
    front, back = caller.worker(), agent.worker()

    @front.handler
    async def call(task: Task) -> DataPart:
        called = await task.call(agent.id, task.text, metadata={"order": 7}, context_id="orders")
        assert called.state is TaskState.COMPLETED
        return DataPart(called.artifacts[0].parts[0].data)  # type: ignore[union-attr]

    @back.handler
    async def describe(task: Task) -> DataPart:
        return DataPart(
            {
                "text": task.text,
                "sender": task.sender.ref,
                "context": task.context_id,
                "metadata": dict(task.metadata),
            }
        )

    async with working(front), working(back):
        task = await sender.agent(caller.id).send("Hello", wait=20)
    assert task.artifacts[0].parts == (
        DataPart(
            {
                "text": "Hello",
                "sender": f"agent:{caller.id}",
                "context": "orders",
                "metadata": {"order": 7, CHAIN: {"depth": 1, "agents": [caller.id]}},
            }
        ),
    )


async def test_a_plain_function_calls_other_agents(
    caller: Agent, agent: Agent, sender: AsyncClient
) -> None:
    front, back = caller.worker(), agent.worker()

    @front.handler
    def call(task: SyncTask) -> str:
        return task.call(agent.id, "Hello").text

    @back.handler
    def depth(task: SyncTask) -> str:
        return f"depth {task.metadata[CHAIN]['depth']}"

    async with working(front), working(back):
        task = await sender.agent(caller.id).send("x", wait=20)
    assert (task.state, task.text) == (TaskState.COMPLETED, "depth 1")


async def test_a_loop_of_calls_ends(caller: Agent, sender: AsyncClient) -> None:
    worker = caller.worker(concurrency=16)

    @worker.handler
    async def call_itself(task: Task) -> str:
        try:
            return (await task.call(caller.id, "again")).text
        except APIError as refusal:
            return f"{refusal.code} at depth {task.metadata[CHAIN]['depth']}"

    async with working(worker):
        task = await sender.agent(caller.id).send("x", wait=40)
    assert task.text == "chain.too_deep at depth 8"


async def test_a_second_attempt_does_not_repeat_a_call_with_an_id(
    caller: Agent, agent: Agent, sender: AsyncClient
) -> None:
    front, back = caller.worker(), agent.worker()
    calls = []

    @front.handler
    async def call(task: Task) -> str:
        called = await task.call(agent.id, "pay", id=f"{task.id}-pay")
        if task.attempt == 1:
            raise Fail("lost the receipt")
        return called.text

    @back.handler
    async def pay(task: Task) -> str:
        calls.append(task.id)
        return f"paid {len(calls)}"

    async with working(front), working(back):
        retry = {"retry": {"max_attempts": 2, "on": ["failed"]}}
        task = await sender.agent(caller.id).send("x", policy=retry, wait=20)  # type: ignore[arg-type]
    assert (task.text, len(calls)) == ("paid 1", 1)
