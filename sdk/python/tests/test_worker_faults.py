"""Workers whose requests fail or hang at a bad moment."""

import asyncio
import json
import math
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest
from conftest import Agent, Server, working

from parley import AsyncClient, DataPart, DirectMessage, SentTask, Task, TaskState
from parley.worker._api import Report, WorkAPI
from parley.worker._lease import Lease

Send = Callable[[httpx.Request], Awaitable[httpx.Response]]


class Proxy(httpx.AsyncBaseTransport):
    """Passes the requests of a worker to the server by way of a function of the test."""

    def __init__(self, handle: Callable[[httpx.Request, Send], Awaitable[httpx.Response]]) -> None:
        self._server = httpx.AsyncHTTPTransport()
        self._handle = handle

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._handle(request, self._server.handle_async_request)

    async def aclose(self) -> None:
        await self._server.aclose()


@pytest.fixture
async def sender(server: Server) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(server.url, server.key) as client:
        yield client


async def result_of(sender: AsyncClient, agent: Agent, task: SentTask) -> SentTask:
    while not task.state.terminal:
        await asyncio.sleep(0.02)
        task = await sender.agent(agent.id).get(task.id)
    return task


async def test_heartbeats_go_on_after_a_report_that_replaced_one() -> None:
    beats: asyncio.Queue[None] = asyncio.Queue()

    class CountingAPI(WorkAPI):
        def __init__(self) -> None: ...

        async def report(self, _lease: str, report: Report, _timeout: float) -> object:
            if "status" not in report:
                beats.put_nowait(None)
            return {"seen": 0}

    api = CountingAPI()
    lease = Lease("token", "task", 0, seconds=1, api=api, deliver=lambda *_: api.report("", {}, 1))
    assert lease._timer is not None
    lease._timer.cancel()
    lease._beat()
    await lease.report(lambda _: {"status": "working"})  # cancels the heartbeat before it runs
    for _ in range(3):
        await asyncio.wait_for(beats.get(), 5)
    await lease.report(lambda _: {"status": "completed"}, ends=True)


async def test_a_stop_hands_back_what_a_request_in_flight_claims(
    agent: Agent, sender: AsyncClient
) -> None:
    claimed, go_on = asyncio.Event(), asyncio.Event()
    attempts: list[tuple[str, int]] = []

    async def delay_exchange(request: httpx.Request, send: Send) -> httpx.Response:
        response = await send(request)
        if request.url.path.endswith("/work"):
            await response.aread()
            claimed.set()
            await go_on.wait()
        return response

    async def handle(task: Task) -> str:
        attempts.append((task.text, task.attempt))
        return task.text

    tasks = [await sender.agent(agent.id).send(text) for text in ("first", "second")]
    async with httpx.AsyncClient(transport=Proxy(delay_exchange)) as http:
        first = agent.worker(lease=600, http_client=http)
        first.handler(handle)
        serving = asyncio.create_task(first.serve())
        await claimed.wait()
        first.stop()
        for _ in range(20):  # the worker begins to wait for its handlers
            await asyncio.sleep(0)
        go_on.set()
        await serving
    second = agent.worker()
    second.handler(handle)
    async with working(second):
        done = await asyncio.wait_for(result_of(sender, agent, tasks[1]), 20)
    assert done.text == "second"
    assert attempts == [("first", 1), ("second", 1)]


async def test_a_task_whose_result_is_refused_goes_to_another_worker(
    agent: Agent, sender: AsyncClient
) -> None:
    attempts: list[int] = []

    async def refuse_results(request: httpx.Request, send: Send) -> httpx.Response:
        if request.method == "POST" and attempts == [1]:
            body = json.loads(await request.aread())
            if "reports" in body or "status" in body:
                return httpx.Response(403, json={"detail": "no", "status": 403}, request=request)
        return await send(request)

    async with httpx.AsyncClient(transport=Proxy(refuse_results)) as http:
        worker = agent.worker(lease=1, http_client=http)

        @worker.handler
        async def handle(task: Task) -> str:
            attempts.append(task.attempt)
            return "done"

        async with working(worker):
            task = await sender.agent(agent.id).send("x")
            done = await asyncio.wait_for(result_of(sender, agent, task), 20)
    assert done.text == "done"
    assert attempts == [1, 2]


def rewriting(path: str, rewrite: Callable[[Any], bytes]) -> Proxy:
    """Return a proxy that changes the responses to requests for a path."""

    async def handle(request: httpx.Request, send: Send) -> httpx.Response:
        response = await send(request)
        if request.url.path.endswith(path) and response.is_success:
            content = rewrite(json.loads(await response.aread()))
            return httpx.Response(200, content=content, request=request)
        return response

    return Proxy(handle)


async def test_a_number_with_thousands_of_digits_does_not_stop_the_worker(
    agent: Agent, sender: AsyncClient
) -> None:
    digits = b"9" * 5_000
    got: list[object] = []

    def enlarge(body: Any) -> bytes:
        return json.dumps(body).replace('"number"', "@").encode().replace(b"@", digits)

    async with httpx.AsyncClient(transport=rewriting("/claim", enlarge)) as http:
        worker = agent.worker(http_client=http)

        @worker.handler
        async def handle(task: Task) -> str:
            got.extend(part.data for part in task.message.parts if isinstance(part, DataPart))
            return "done"

        async with working(worker):
            task = await sender.agent(agent.id).send({"n": "number"}, wait=10)
    assert task.text == "done"
    assert got == [{"n": math.inf}]


@pytest.mark.parametrize(
    "damage",
    [
        lambda task: task.pop("lease"),
        lambda task: task.update(message=None),
        lambda task: task["message"].update(parts=[{"raw": "a"}]),
    ],
)
async def test_a_claimed_task_that_cannot_be_read_does_not_affect_others(
    agent: Agent, sender: AsyncClient, damage: Callable[[Any], object]
) -> None:
    def damage_first(body: Any) -> bytes:
        for task in body["tasks"]:
            if task["message"]["parts"][0]["text"] == "bad":
                damage(task)
        return json.dumps(body).encode()

    bad = await sender.agent(agent.id).send("bad")
    good = await sender.agent(agent.id).send("good")
    async with httpx.AsyncClient(transport=rewriting("/claim", damage_first)) as http:
        worker = agent.worker(concurrency=2, http_client=http)

        @worker.handler
        async def handle(task: Task) -> str:
            return task.text

        async with working(worker):
            done = await asyncio.wait_for(result_of(sender, agent, good), 20)
    assert done.text == "good"
    assert not (await sender.agent(agent.id).get(bad.id)).state.terminal


@pytest.mark.parametrize(
    "content", [b"<html>", b"null", b"{}", b"[]", b"7", b'{"tasks": 7}', b'{"tasks": [null]}']
)
async def test_the_worker_pauses_after_strange_responses_to_claims(
    agent: Agent, sender: AsyncClient, content: bytes
) -> None:
    claims = 0
    strange = True

    async def respond(request: httpx.Request, send: Send) -> httpx.Response:
        nonlocal claims
        if strange and request.url.path.endswith("/claim"):
            claims += 1
            return httpx.Response(200, content=content, request=request)
        return await send(request)

    async with httpx.AsyncClient(transport=Proxy(respond)) as http:
        worker = agent.worker(http_client=http)

        @worker.handler
        async def handle(task: Task) -> str:
            return task.text

        async with working(worker):
            await asyncio.sleep(0.5)
            assert 1 <= claims <= 5
            strange = False
            task = await sender.agent(agent.id).send("x", wait=10)
    assert task.text == "x"


async def test_a_message_that_cannot_be_read_is_acknowledged(agent: Agent) -> None:
    acknowledged: list[str] = []
    read: asyncio.Queue[str] = asyncio.Queue()

    async def respond(request: httpx.Request, send: Send) -> httpx.Response:
        if not request.url.path.endswith("/claim"):
            return await send(request)
        body = json.loads(await request.aread())
        acknowledged.extend(body["ack"])
        if acknowledged:
            return await send(request)
        messages = [
            {"id": "bad", "message": None},
            {"id": "good", "message": {"parts": [{"text": "hello"}]}},
            None,
        ]
        return httpx.Response(200, json={"tasks": [], "messages": messages}, request=request)

    async with httpx.AsyncClient(transport=Proxy(respond)) as http:
        worker = agent.worker(http_client=http)
        worker.handler(_echo)

        @worker.on_message
        async def listen(message: DirectMessage) -> None:
            read.put_nowait(message.text)

        async with working(worker):
            assert await asyncio.wait_for(read.get(), 10) == "hello"
            while not acknowledged:
                await asyncio.sleep(0.01)
    assert set(acknowledged) == {"bad", "good"}


async def _echo(task: Task) -> str:
    return task.text


@pytest.mark.parametrize(
    "content", [b"null", b"{}", b'{"reports": 1}', b'{"reports": [null]}', b"<html>"]
)
async def test_a_strange_response_to_a_result_is_repeated(
    agent: Agent, sender: AsyncClient, content: bytes
) -> None:
    async def lose_first(request: httpx.Request, send: Send) -> httpx.Response:
        nonlocal lost
        if request.url.path.endswith("/work") and not lost:
            lost = True
            return httpx.Response(200, content=content, request=request)
        return await send(request)

    lost = False
    async with httpx.AsyncClient(transport=Proxy(lose_first)) as http:
        worker = agent.worker(http_client=http)
        worker.handler(_echo)
        async with working(worker):
            task = await sender.agent(agent.id).send("x", wait=10)
    assert lost
    assert task.text == "x"


async def test_a_further_message_that_cannot_be_read_is_left_out(
    agent: Agent, sender: AsyncClient
) -> None:
    def damage(body: Any) -> bytes:
        messages = [m for m in body.get("messages") or () if m["parts"][0]["text"] == "more"]
        if messages:
            body["messages"] = [None, {"parts": 1}, *messages]
        return json.dumps(body).encode()

    async def handle(request: httpx.Request, send: Send) -> httpx.Response:
        response = await send(request)
        if "/leases/" in request.url.path and request.method == "POST" and response.is_success:
            content = damage(json.loads(await response.aread()))
            return httpx.Response(200, content=content, request=request)
        return response

    async with httpx.AsyncClient(transport=Proxy(handle)) as http:
        worker = agent.worker(http_client=http)
        started = asyncio.Event()

        @worker.handler
        async def wait_for_more(task: Task) -> str:
            started.set()
            async for message in task.messages():
                return message.text
            return "nothing"

        async with working(worker):
            task = await sender.agent(agent.id).send("x")
            await started.wait()  # else the first claim may have both messages
            await sender.agent(agent.id).send("more", id=task.id)
            done = await asyncio.wait_for(result_of(sender, agent, task), 20)
    assert done.text == "more"


async def test_sys_exit_in_a_handler_fails_only_its_task(agent: Agent, sender: AsyncClient) -> None:
    worker = agent.worker()

    @worker.handler
    async def handle(task: Task) -> str:
        if task.text == "exit":
            sys.exit(3)
        return task.text

    async with working(worker):
        exited = await sender.agent(agent.id).send("exit", wait=10)
        task = await sender.agent(agent.id).send("x", wait=10)
    assert exited.state is TaskState.FAILED
    assert task.text == "x"


@pytest.mark.parametrize("plain", [False, True])
async def test_sys_exit_in_on_message_does_not_end_the_worker(
    agent: Agent, sender: AsyncClient, plain: bool
) -> None:
    worker = agent.worker()
    worker.handler(_echo)
    read: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def listen(message: DirectMessage) -> None:
        loop.call_soon_threadsafe(read.put_nowait, message.text)
        sys.exit(3)

    async def listen_async(message: DirectMessage) -> None:
        listen(message)

    if plain:
        worker.on_message(listen)
    else:
        worker.on_message(listen_async)
    async with working(worker):
        for text in ("one", "two"):
            await sender.agent(agent.id).message(text)
            assert await asyncio.wait_for(read.get(), 10) == text


_STUBBORN = """
import asyncio
from parley import Worker

worker = Worker({agent!r}, server={url!r}, key={key!r}, grace=0)

@worker.handler
async def handle(task):
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            print("cancelled", flush=True)
        else:
            break

async def stop_soon(task):
    asyncio.get_running_loop().call_later(0.2, worker.stop)
    return await handle(task)

worker.handler(stop_soon)
worker.run()
print("returned", flush=True)
"""


async def test_run_returns_although_a_handler_ignores_cancellation(
    agent: Agent, sender: AsyncClient
) -> None:
    program = _STUBBORN.format(agent=agent.id, url=agent.server.url, key=agent.key)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE
    )
    try:
        task = await sender.agent(agent.id).send("x")
        output, _ = await asyncio.wait_for(process.communicate(), 20)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
    assert (process.returncode, output.splitlines()[-1]) == (0, b"returned")
    back = await sender.agent(agent.id).get(task.id)
    assert not back.state.terminal
