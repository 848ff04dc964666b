"""Reports what gets in the way of work."""

from __future__ import annotations

import inspect
import logging
import traceback
from collections.abc import Awaitable, Callable
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar, cast

from ._async._client import AsyncClient
from ._sync._client import Client
from .worker._handlers import current_task
from .worker._task import SyncTask, Task

if TYPE_CHECKING:
    from . import types as t

__all__ = ["report_friction"]

P = ParamSpec("P")
R = TypeVar("R")

_MAX_EVIDENCE = 4000

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
    reaches the org's threshold, by default the third, files a proposal. In the handler of a worker
    the report belongs to the task, so that a second attempt does not count again. Elsewhere it uses
    `client`, or a client of PARLEY_SERVER and PARLEY_KEY. If the report fails, that is only logged.

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
        """Decorate a function or a coroutine function."""
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
        elif isinstance(task, SyncTask):
            task.friction(**self._report, evidence=evidence)
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
        elif isinstance(task, Task):
            await task.friction(**self._report, evidence=evidence)
        else:
            async with AsyncClient() as client:
                await client.friction.report(**self._report, evidence=evidence)


def _evidence(error: BaseException) -> str:
    """Return the end of the traceback, which names the error."""
    return "".join(traceback.format_exception(error))[-_MAX_EVIDENCE:]
