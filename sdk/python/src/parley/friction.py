"""Reports what gets in the way of work."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import aclosing
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar, cast

from ._async._client import AsyncClient
from ._sync._client import Client
from .worker._handlers import current_task

if TYPE_CHECKING:
    from . import types as t

__all__ = ["report_friction"]

P = ParamSpec("P")
R = TypeVar("R")

_MAX_EVIDENCE = 4096  # bytes
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")  # refused by the server

log = logging.getLogger("parley.friction")


class _Report(TypedDict):
    fingerprint: str
    title: str
    problem: str
    suggested_fix: str | None
    category: t.Category
    priority: t.Priority | None


class report_friction:  # noqa: N801 - used as a function: a decorator and a context manager
    """Reports each failure of a function or a block as friction.

        @report_friction("registry:timeout", title="Slow registry", problem="Pulls time out.")
        def pull(image: str) -> None: ...

        async with report_friction("registry:timeout", title=..., problem=...):
            ...

    Each exception is a report, with the traceback as evidence, and is raised again. The report that
    reaches the org's threshold, by default the third, files a proposal.

    In the handler of a worker the report belongs to the task: each task counts once, no matter how
    often the function fails in it. The report goes to the server of the worker. Elsewhere it goes
    to that of `client`, or of PARLEY_SERVER and PARLEY_KEY. If the report fails, that is only
    logged. A function that is called in an event loop does not wait for the report.

    Args:
        fingerprint: Identifies the friction, such as "registry:timeout".
        title: Title of the proposal.
        problem: What is wrong.
        suggested_fix: What to do about it.
        category: Category of the proposal.
        priority: Priority of the proposal.
        exceptions: Which exceptions are friction.
        client: Sends the reports: an `AsyncClient` for coroutines, otherwise a `Client`.
    """

    def __init__(
        self,
        fingerprint: str,
        *,
        title: str,
        problem: str,
        suggested_fix: str | None = None,
        category: t.Category = "process",
        priority: t.Priority | None = None,
        exceptions: type[Exception] | tuple[type[Exception], ...] = Exception,
        client: Client | AsyncClient | None = None,
    ) -> None:
        self._report = _Report(
            fingerprint=fingerprint,
            title=title,
            problem=problem,
            suggested_fix=suggested_fix,
            category=category,
            priority=priority,
        )
        self._exceptions = exceptions
        self._client = client

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function, a coroutine function, or a generator of either."""
        if inspect.isasyncgenfunction(function):

            @wraps(function)
            async def iterate(*args: P.args, **kwargs: P.kwargs) -> AsyncIterator[Any]:
                async with self, aclosing(function(*args, **kwargs)) as items:
                    async for item in items:
                        yield item

            return cast("Callable[P, R]", iterate)
        if inspect.isgeneratorfunction(function):

            @wraps(function)
            def delegate(*args: P.args, **kwargs: P.kwargs) -> Iterator[Any]:
                with self:
                    yield from function(*args, **kwargs)

            return cast("Callable[P, R]", delegate)
        if inspect.iscoroutinefunction(function):
            coroutine = cast("Callable[P, Awaitable[Any]]", function)

            @wraps(function)
            async def run(*args: P.args, **kwargs: P.kwargs) -> Any:
                async with self:
                    return await coroutine(*args, **kwargs)

            return cast("Callable[P, R]", run)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return function(*args, **kwargs)

        return call

    def __enter__(self) -> None:
        if isinstance(self._client, AsyncClient):
            raise TypeError("report_friction with an AsyncClient needs async with, or async def")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not isinstance(error, self._exceptions):
            return
        try:
            self._send(_evidence(error))
        except Exception:
            log.exception("could not report friction %s", self._report["fingerprint"])

    async def __aenter__(self) -> None:
        if isinstance(self._client, Client):
            raise TypeError("report_friction with a Client needs with, or def; use an AsyncClient")

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not isinstance(error, self._exceptions):
            return
        try:
            await self._send_async(_evidence(error))
        except Exception:
            log.exception("could not report friction %s", self._report["fingerprint"])

    def _send(self, evidence: str) -> None:
        task = current_task.get()
        occurrence = task.id if task else None
        if isinstance(self._client, Client):
            self._client.friction.report(**self._report, evidence=evidence, occurrence=occurrence)
        elif task is not None:
            sent = task.submit_friction(**self._report, evidence=evidence)
            if _in_event_loop():
                sent.add_done_callback(self._log_failure)
            else:
                sent.result()
        else:
            with Client() as client:
                client.friction.report(**self._report, evidence=evidence, occurrence=occurrence)

    async def _send_async(self, evidence: str) -> None:
        task = current_task.get()
        occurrence = task.id if task else None
        if isinstance(self._client, AsyncClient):
            await self._client.friction.report(
                **self._report, evidence=evidence, occurrence=occurrence
            )
        elif task is not None:
            # The caller may have an event loop of its own.
            await asyncio.wrap_future(task.submit_friction(**self._report, evidence=evidence))
        else:
            async with AsyncClient() as client:
                await client.friction.report(**self._report, evidence=evidence)

    def _log_failure(self, sent: Future[t.FrictionOutcome]) -> None:
        if not sent.cancelled() and (error := sent.exception()) is not None:
            log.error("could not report friction %s", self._report["fingerprint"], exc_info=error)


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _evidence(error: BaseException) -> str:
    """Return the end of the traceback, which names the error, as the server accepts it."""
    text = _CONTROL.sub("?", "".join(traceback.format_exception(error)))
    return text.encode(errors="replace")[-_MAX_EVIDENCE:].decode(errors="ignore")
