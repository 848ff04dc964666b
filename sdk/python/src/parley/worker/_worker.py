"""The worker of an agent."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TypeVar, overload

import httpx

from .._async._client import AsyncClient
from .._sync._client import Client
from ..errors import ConfigurationError
from ._api import WorkAPI
from ._blocking import BlockingClient
from ._handlers import AsyncHandler, Handler, MessageHandler, PlainHandler
from ._loop import run_loop
from ._shift import Settings, Shift

A = TypeVar("A", bound=AsyncHandler)
P = TypeVar("P", bound=PlainHandler)
M = TypeVar("M", bound=MessageHandler)

_MAX_LEASE = 3600
_USER_AGENT = "parley-worker"


class Worker:
    """Claims the tasks of an agent, calls a function for each, and reports the results.

        worker = Worker("scout")

        @worker.handler
        async def handle(task: Task) -> str:
            return f"You said: {task.text}"

        worker.run()

    What the handler returns completes the task: a string, a part, several of them, or nothing. What
    a generator yields becomes an artifact that grows while the sender watches. `parley.Fail` fails
    the task with a text for the sender, `parley.Reject` rejects it, and any other exception fails
    it and is logged. A plain function runs in a thread of its own and gets a `SyncTask`.

    The worker keeps the leases of its tasks alive. A coroutine gets `asyncio.CancelledError` when
    the sender canceled the task, the lease was lost, or the worker is stopping; `task.interruption`
    says which. When a worker is lost, its tasks go to another one, so a handler must be able to run
    again for the same task.

    Claims are repeated forever, and reports for as long as the lease lasts, with growing pauses.
    Only a permanent problem, such as a wrong key or a certificate that is not trusted, ends the
    worker with an error.

    Args:
        agent: Id of the agent.
        server: URL of the server; by default PARLEY_SERVER, or http://127.0.0.1:8080.
        key: A key with the scope svc:a2a:serve, of the agent itself or of another principal with
            the scope agent:<id>; by default PARLEY_KEY.
        concurrency: How many tasks run at a time.
        name: Identifies this worker of the agent; by default the host name and the process id.
        lease: How many seconds a task stays with this worker when the server hears nothing of it.
            The worker extends its leases, so they need not be as long as the work.
        grace: How many seconds handlers may continue after the worker begins to stop.
        http_client: Sends all requests instead of a client of its own, besides those of
            `SyncTask.client`.
    """

    def __init__(
        self,
        agent: str,
        *,
        server: str | None = None,
        key: str | None = None,
        concurrency: int = 1,
        name: str | None = None,
        lease: int = 30,
        grace: float = 5.0,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        if not agent:
            raise ConfigurationError("agent is required: the id of the agent")
        if concurrency < 1:
            raise ConfigurationError(f"concurrency must be at least 1; it is {concurrency}")
        if not 1 <= lease <= _MAX_LEASE:
            raise ConfigurationError(f"lease must be from 1 to {_MAX_LEASE} seconds; it is {lease}")
        self._settings = Settings(agent, name or _default_name(), concurrency, lease, max(0, grace))
        self._address = (server, key)
        self._http_client = http_client
        self._handler: Handler | None = None
        self._on_message: MessageHandler | None = None
        self._shift: tuple[Shift, asyncio.AbstractEventLoop] | None = None
        self._stop_requested = False

    @property
    def agent(self) -> str:
        """Id of the agent."""
        return self._settings.agent

    @overload
    def handler(self, function: A) -> A: ...
    @overload
    def handler(self, function: P) -> P: ...
    def handler(self, function: Handler) -> Handler:
        """Set the function that does the tasks. Use it as a decorator."""
        self._handler = function
        return function

    def on_message(self, function: M) -> M:
        """Set the function that gets direct messages, one at a time. Use it as a decorator."""
        self._on_message = function
        return function

    def run(self) -> None:
        """Work until SIGINT or SIGTERM.

        Handlers may finish for the grace period. Then they are interrupted, and their tasks go back
        to the queue, which does not count as an attempt. A second signal ends the process at once.
        Outside of the main thread, where Python has no signals, call `stop`.
        """
        run_loop(self._run_until_signal)

    async def _run_until_signal(self) -> None:
        main = threading.current_thread() is threading.main_thread()
        with _signals(self.stop) if main else nullcontext():
            await self.serve()

    async def serve(self) -> None:
        """Work until `stop` is called, in a running event loop. Signals are up to the caller.

        If the coroutine is cancelled, the worker stops without the grace period. A handler that
        ignores its cancellation continues after that, and `asyncio.run` waits for it.
        """
        if self._handler is None:
            raise ConfigurationError("the worker has no handler; decorate one with @worker.handler")
        if self._shift is not None:
            raise RuntimeError("the worker is running already")
        server, key = self._address
        async with AsyncClient(
            server, key, user_agent=_USER_AGENT, http_client=self._http_client
        ) as client:
            blocking_client = BlockingClient(lambda: Client(server, key, user_agent=_USER_AGENT))
            api = WorkAPI(client.transport, self.agent)
            shift = Shift(
                self._settings, client, blocking_client, api, self._handler, self._on_message
            )
            self._shift = shift, asyncio.get_running_loop()
            if self._stop_requested:  # before the worker was running
                shift.stop()
            try:
                await shift.run()
            finally:
                self._shift, self._stop_requested = None, False
                blocking_client.close()

    def stop(self) -> None:
        """Stop cleanly, from any thread. `run` or `serve` returns when the worker has stopped."""
        self._stop_requested = True
        if self._shift is not None:
            shift, loop = self._shift
            loop.call_soon_threadsafe(shift.stop)


def _default_name() -> str:
    return f"{socket.gethostname()[:100] or 'worker'}-{os.getpid()}"


@contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call stop at the first SIGINT or SIGTERM. The next one has its usual effect."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    former = {number: signal.getsignal(number) for number in numbers}

    def restore() -> None:
        for number in numbers:
            signal.signal(number, former[number])

    def first(*_: object) -> None:
        restore()
        stop()

    for number in numbers:
        signal.signal(number, first)
    try:
        yield
    finally:
        restore()
