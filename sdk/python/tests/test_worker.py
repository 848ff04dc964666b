"""Workers against a real server. ../../conformance has the tests under faults."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator

import pytest
from conftest import Agent, Server, working

from parley import (
    APIConnectionError,
    APIError,
    AsyncClient,
    AuthenticationError,
    Client,
    ConfigurationError,
    DataPart,
    DirectMessage,
    Fail,
    FilePart,
    InterruptedTaskError,
    Interruption,
    Message,
    Reject,
    SentTask,
    SyncTask,
    Task,
    TaskState,
    TextPart,
    Worker,
)


async def test_the_returned_string_completes_the_task(agent: Agent, sender: AsyncClient) -> None:
    worker = agent.worker()

    @worker.handler
    async def handle(task: Task) -> str:
        return f"You said: {task.text}"

    async with working(worker):
        task = await sender.agent(agent.id).send("Hello", wait=20)
    assert (task.state, task.text) == (TaskState.COMPLETED, "You said: Hello")


async def test_a_handler_may_return_parts(agent: Agent, sender: AsyncClient) -> None:
    worker = agent.worker()

    @worker.handler
    async def handle(task: Task) -> list[object]:
        return ["text", {"number": 1}, *task.message.files]

    file = FilePart(b"\x00\xff", "data.bin", "application/octet-stream")
    async with working(worker):
        task = await sender.agent(agent.id).send(["Look", file], wait=20)
    assert list(task.artifacts[0].parts) == [TextPart("text"), DataPart({"number": 1}), file]


async def test_plain_functions_run_in_threads(agent: Agent, sender: AsyncClient) -> None:
    worker = agent.worker(concurrency=2)
    both = threading.Barrier(2)

    @worker.handler
    def handle(task: SyncTask) -> str:
        both.wait(timeout=20)  # passes only if both handlers run at a time
        task.progress("half")
        with task.open_artifact("log") as log:
            log.append("a")
            log.write("b")
        task.send_artifact("whole", id="whole")
        return threading.current_thread().name

    async with working(worker):
        to = sender.agent(agent.id)
        tasks = await asyncio.gather(to.send("1", wait=20), to.send("2", wait=20))
    for task in tasks:
        assert task.state is TaskState.COMPLETED
        assert [a.text for a in task.artifacts] == ["ab", "whole", "parley-handler"]


@pytest.mark.parametrize(
    ("error", "state", "text"),
    [
        (Fail("an order has a unit"), TaskState.FAILED, "an order has a unit"),
        (Reject("no"), TaskState.REJECTED, "no"),
        (ValueError("secret"), TaskState.FAILED, "the agent failed in an unexpected way"),
    ],
)
async def test_only_the_text_of_a_deliberate_error_reaches_the_sender(
    agent: Agent,
    sender: AsyncClient,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    state: TaskState,
    text: str,
) -> None:
    worker = agent.worker()

    @worker.handler
    async def handle(task: Task) -> None:
        raise error

    async with working(worker):
        task = await sender.agent(agent.id).send("x", wait=20)
    assert (task.state, said(task)) == (state, text)
    assert ("secret" in caplog.text) == isinstance(error, ValueError)


async def test_an_async_generator_makes_an_artifact_that_grows(
    agent: Agent, sender: AsyncClient
) -> None:
    worker = agent.worker()
    seen = asyncio.Event()

    @worker.handler
    async def handle(task: Task) -> AsyncIterator[object]:
        yield "one "
        await seen.wait()  # the sender sees the first chunk before the second one is made
        yield "two"
        yield {"three": 3}

    async with working(worker):
        parts = []
        async for event in sender.agent(agent.id).stream("x"):
            if event.artifact:
                seen.set()
                parts += event.artifact.parts
                last = event.last_chunk
        task = await sender.agent(agent.id).get(event.task_id)
    assert parts[:3] == [TextPart("one "), TextPart("two"), DataPart({"three": 3})]
    assert last
    assert (task.state, [artifact.id for artifact in task.artifacts]) == (
        TaskState.COMPLETED,
        ["result"],
    )


async def test_a_generator_runs_in_a_thread(agent: Agent, sender: AsyncClient) -> None:
    worker = agent.worker()

    @worker.handler
    def handle(task: SyncTask) -> Iterator[str]:
        yield "in "
        yield threading.current_thread().name

    async with working(worker):
        task = await sender.agent(agent.id).send("x", wait=20)
    assert (task.state, task.text) == (TaskState.COMPLETED, "in parley-handler")


async def test_an_interruption_closes_a_generator(agent: Agent, sender: AsyncClient) -> None:
    worker = agent.worker()
    closed = asyncio.Event()

    @worker.handler
    async def handle(task: Task) -> AsyncIterator[str]:
        try:
            yield "begun"
            await asyncio.sleep(600)
        finally:
            closed.set()

    async with working(worker):
        async for event in sender.agent(agent.id).stream("x"):
            if event.artifact:
                await sender.agent(agent.id).cancel(event.task_id)
        await asyncio.wait_for(closed.wait(), 10)


async def test_a_plain_function_has_a_blocking_client(agent: Agent, sender: AsyncClient) -> None:
    worker = agent.worker()
    clients: list[Client] = []

    @worker.handler
    def handle(task: SyncTask) -> str:
        clients.append(task.client)
        return task.client.me()["principal"]

    async with working(worker):
        for _ in range(2):
            task = await sender.agent(agent.id).send("x", wait=20)
            assert task.text == f"agent:{agent.id}"
    assert clients[0] is clients[1]


async def test_a_server_without_tls_ends_the_worker(server: Server) -> None:
    worker = Worker("nobody", server=server.url.replace("http:", "https:"), key="parley_wrong")
    worker.handler(_nothing)
    with pytest.raises(APIConnectionError, match="cannot reach https"):
        await asyncio.wait_for(worker.serve(), 20)


async def test_a_result_that_is_no_json_fails_the_task(agent: Agent, sender: AsyncClient) -> None:
    worker = agent.worker()

    @worker.handler
    async def handle(task: Task) -> DataPart:
        return DataPart(object())

    async with working(worker):
        task = await sender.agent(agent.id).send("x", wait=20)
    assert task.state is TaskState.FAILED
    assert "not JSON serializable" in said(task)


def said(task: SentTask) -> str:
    assert task.status.message is not None
    return task.status.message.text


async def test_cancellation_reaches_a_coroutine(agent: Agent, sender: AsyncClient) -> None:
    worker = agent.worker()
    started, seen = asyncio.Event(), asyncio.Event()
    reasons: list[object] = []

    @worker.handler
    async def handle(task: Task) -> None:
        started.set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            reasons.append(task.interruption)
            seen.set()
            raise

    async with working(worker):
        to = sender.agent(agent.id)
        task = await to.send("x")
        await started.wait()
        await to.cancel(task.id)
        await asyncio.wait_for(seen.wait(), 10)
        assert (await to.get(task.id)).state is TaskState.CANCELED
    assert reasons == [Interruption.CANCELED]


async def test_cancellation_reaches_a_plain_function(agent: Agent, sender: AsyncClient) -> None:
    worker = agent.worker()
    started, reasons = threading.Event(), []

    @worker.handler
    def handle(task: SyncTask) -> None:
        started.set()
        try:
            task.sleep(600)
        except InterruptedTaskError as error:
            reasons.append((error.reason, task.interrupted))
            raise

    async with working(worker):
        to = sender.agent(agent.id)
        task = await to.send("x")
        await asyncio.to_thread(started.wait)
        await to.cancel(task.id)
        assert (await to.get(task.id)).state is TaskState.CANCELED
        while not reasons:
            await asyncio.sleep(0.01)
    assert reasons == [(Interruption.CANCELED, True)]


async def test_a_question_is_asked_once_and_answered_in_the_next_run(
    agent: Agent, sender: AsyncClient
) -> None:
    worker = agent.worker()
    runs: list[str] = []

    @worker.handler
    async def handle(task: Task) -> str:
        runs.append(task.text)
        await task.progress("thinking")
        try:
            city = await task.ask("Which city?")
        except Exception:  # handlers cannot catch the suspension by accident
            return "caught"
        street = await task.ask("Which street?")
        return f"{task.text} to {street.text}, {city.text}"

    async with working(worker):
        to = sender.agent(agent.id)
        asked = await to.send("Tea", wait=20)
        assert (asked.state, said(asked)) == (TaskState.INPUT_REQUIRED, "Which city?")
        asked = await to.send("Oslo", id=asked.id, wait=20)
        assert (asked.state, said(asked)) == (TaskState.INPUT_REQUIRED, "Which street?")
        done = await to.send("Storgata", id=asked.id, wait=20)
    assert (done.state, done.text) == (TaskState.COMPLETED, "Tea to Storgata, Oslo")
    assert runs == ["Tea", "Tea", "Tea"]


async def test_written_tokens_share_requests_and_arrive_in_order(
    agent: Agent, sender: AsyncClient
) -> None:
    worker = agent.worker()

    @worker.handler
    async def handle(task: Task) -> None:
        async with task.open_artifact("answer", name="Answer") as answer:
            for i in range(300):
                await answer.write(f"{i};")

    async with working(worker):
        events = [event async for event in sender.agent(agent.id).stream("x")]
    chunks = [event for event in events if event.artifact]
    assert "".join(e.artifact.text for e in chunks if e.artifact) == "".join(
        f"{i};" for i in range(300)
    )
    assert [event.append for event in chunks] == [False] + [True] * (len(chunks) - 1)
    assert chunks[-1].last_chunk
    assert len(chunks) < 150
    assert events[-1].final


async def test_further_messages_reach_the_handler(agent: Agent, sender: AsyncClient) -> None:
    worker = agent.worker()
    started = asyncio.Event()

    @worker.handler
    async def handle(task: Task) -> str:
        started.set()
        async for message in task.messages():
            return message.text
        return "none"

    async with working(worker):
        to = sender.agent(agent.id)
        task = await to.send("x")
        await started.wait()
        done = await to.send("more", id=task.id, wait=20)
    assert done.text == "more"


async def test_direct_messages_arrive_once(agent: Agent, sender: AsyncClient) -> None:
    worker = agent.worker()
    received: asyncio.Queue[DirectMessage] = asyncio.Queue()

    @worker.handler
    async def handle(task: Task) -> None: ...

    @worker.on_message
    async def read(message: DirectMessage) -> None:
        received.put_nowait(message)

    async with working(worker):
        await sender.agent(agent.id).message("Hi")
        message = await asyncio.wait_for(received.get(), 20)
        await sender.agent(agent.id).send("x", wait=20)
    assert (message.text, message.sender.ref) == ("Hi", "user:admin")
    assert received.empty()


async def test_a_stopping_worker_lets_handlers_finish(agent: Agent, sender: AsyncClient) -> None:
    worker = agent.worker(grace=60)
    started, go_on = asyncio.Event(), asyncio.Event()

    @worker.handler
    async def handle(task: Task) -> str:
        started.set()
        await go_on.wait()
        return "finished"

    serving = asyncio.create_task(worker.serve())
    task = await sender.agent(agent.id).send("x")
    await started.wait()
    worker.stop()
    go_on.set()
    await serving
    assert (await sender.agent(agent.id).get(task.id)).text == "finished"


async def test_a_stopped_worker_hands_tasks_back(agent: Agent, sender: AsyncClient) -> None:
    attempts: list[int] = []
    started = asyncio.Event()

    async def hang(task: Task) -> None:
        attempts.append(task.attempt)
        started.set()
        await asyncio.sleep(600)

    async def finish(task: Task) -> str:
        attempts.append(task.attempt)
        return "done"

    first = agent.worker(grace=0)
    first.handler(hang)
    async with working(first):
        task = await sender.agent(agent.id).send("x")
        await started.wait()
    second = agent.worker()
    second.handler(finish)
    async with working(second):
        done = await sender.agent(agent.id).get(task.id)
        while not done.state.terminal:
            await asyncio.sleep(0.02)
            done = await sender.agent(agent.id).get(task.id)
    assert done.text == "done"
    assert attempts == [1, 1]


async def test_a_cancelled_worker_stops_without_grace(agent: Agent, sender: AsyncClient) -> None:
    worker = agent.worker(grace=600)
    started = asyncio.Event()

    @worker.handler
    async def handle(task: Task) -> None:
        started.set()
        await asyncio.sleep(600)

    serving = asyncio.create_task(worker.serve())
    await sender.agent(agent.id).send("x")
    await started.wait()
    serving.cancel()
    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert time.monotonic() - began < 5


async def test_a_stop_before_the_start_is_not_lost(agent: Agent) -> None:
    worker = agent.worker()
    worker.handler(_nothing)
    worker.stop()
    await asyncio.wait_for(worker.serve(), 20)


def test_a_worker_runs_outside_of_the_main_thread(agent: Agent, client: Client) -> None:
    worker = agent.worker()

    @worker.handler
    async def handle(task: Task) -> str:
        return "done"

    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        assert client.agent(agent.id).send("x", wait=20).text == "done"
    finally:
        worker.stop()
        thread.join()


async def test_the_worker_survives_a_restart_of_the_server(own_server: Server) -> None:
    agent = own_server.hire()
    worker = agent.worker(concurrency=4)
    started, go_on = asyncio.Event(), asyncio.Event()

    @worker.handler
    async def handle(task: Task) -> str:
        started.set()
        await go_on.wait()
        return task.text

    async with AsyncClient(own_server.url, own_server.key) as sender, working(worker):
        first = await sender.agent(agent.id).send("before")
        await started.wait()
        own_server.kill()
        go_on.set()
        own_server.start()
        second = await sender.agent(agent.id).send("after", wait=30)
        assert second.text == "after"
        done = await sender.agent(agent.id).get(first.id)
        while not done.state.terminal:
            await asyncio.sleep(0.02)
            done = await sender.agent(agent.id).get(first.id)
        assert done.text == "before"


async def test_the_task_counts_as_the_occurrence_of_friction(
    agent: Agent, sender: AsyncClient
) -> None:
    worker = agent.worker()

    @worker.handler
    async def handle(task: Task) -> DataPart:
        about = {"title": "Slow", "problem": "It is slow."}
        outcomes = [await task.friction(f"slow:{agent.id}", **about) for _ in range(2)]
        return DataPart([outcome["counted"] for outcome in outcomes])

    async with working(worker):
        task = await sender.agent(agent.id).send("x", wait=20)
    assert task.artifacts[0].parts == (DataPart([True, False]),)


async def test_a_wrong_key_ends_the_worker(server: Server) -> None:
    worker = Worker("nobody", server=server.url, key="parley_wrong")
    worker.handler(_nothing)
    with pytest.raises(AuthenticationError) as raised:
        await worker.serve()
    assert "PARLEY_KEY" in raised.value.advice
    assert isinstance(raised.value, APIError)


async def _nothing(task: Task) -> None:
    """Complete the task."""


def test_configuration_errors_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLEY_SERVER", "localhost:8080")
    with pytest.raises(ConfigurationError, match="concurrency must be at least 1"):
        Worker("scout", concurrency=0)
    with pytest.raises(ConfigurationError, match="no handler"):
        Worker("scout").run()
    worker = Worker("scout")
    worker.handler(_nothing)
    with pytest.raises(ConfigurationError, match="must start with http"):
        worker.run()


def test_the_message_of_a_run_is_not_a_reply() -> None:
    assert Message((TextPart("a"), DataPart(1), TextPart("b"))).text == "a\nb"
