"""Workers whose requests fail or hang at a bad moment."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest
from conftest import Agent, Server, working

from parley import AsyncClient, SentTask, Task
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
