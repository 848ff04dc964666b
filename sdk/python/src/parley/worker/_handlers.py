"""Calls the function of the user: a coroutine function, a plain one, or a generator of either."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterable
from contextlib import aclosing, closing
from typing import Any, Protocol, TypeVar, cast

from ..content import PartLike
from ._api import ClaimedTask, DirectMessage
from ._blocking import BlockingClient
from ._task import SyncTask, Task

Result = PartLike | Iterable[PartLike] | None
"""What a handler returns: the content of the last artifact, or nothing."""

AsyncHandler = Callable[[Task], Awaitable[Result] | AsyncIterator[PartLike]]
PlainHandler = Callable[[SyncTask], Result]
Handler = AsyncHandler | PlainHandler
MessageHandler = Callable[[DirectMessage], Awaitable[None] | None]

T = TypeVar("T")

current_task: contextvars.ContextVar[Task | None] = contextvars.ContextVar(
    "parley_task", default=None
)
"""The task of the handler that runs."""


class Run(Protocol):
    """One call of a handler."""

    async def result(self) -> Result:
        """Call the handler, and return what it returns."""

    def interrupt(self) -> None:
        """Tell the handler to stop."""


class _AsyncRun:
    def __init__(self, handler: AsyncHandler, task: Task) -> None:
        self._task = asyncio.create_task(contained(_await(handler, task)))

    async def result(self) -> Result:
        await asyncio.wait({self._task})
        return self._task.result()

    def interrupt(self) -> None:
        self._task.cancel()


async def contained(operation: Awaitable[T]) -> T:
    """Await the code of the user. If it exits, only the operation fails.

    A task that raises SystemExit would end the event loop under the worker. KeyboardInterrupt comes
    from the terminal, and does end it.
    """
    try:
        return await operation
    except SystemExit as error:
        raise RuntimeError(f"the handler raised {error!r}") from error


async def _await(handler: AsyncHandler, task: Task) -> Result:
    called = handler(task)
    if isinstance(called, Awaitable):
        return await called
    generator = cast("AsyncGenerator[PartLike, None]", called)
    async with aclosing(generator) as parts, task.open_artifact() as result:
        async for part in parts:
            if isinstance(part, str):
                await result.write(part)
            else:
                await result.append(part)
    return None


def _call(handler: PlainHandler, task: SyncTask) -> Result:
    called = handler(task)
    if not isinstance(called, Generator):
        return called
    with closing(called) as parts, task.open_artifact() as result:
        for part in parts:
            if isinstance(part, str):
                result.write(part)
            else:
                result.append(part)
    return None


class _PlainRun:
    def __init__(self, handler: PlainHandler, task: SyncTask) -> None:
        self._task = task
        self._future = in_thread(lambda: _call(handler, task))

    async def result(self) -> Result:
        return await self._future

    def interrupt(self) -> None:
        self._task.wake()


def is_async(function: Callable[..., Any]) -> bool:
    """Whether the function is a coroutine function or an asynchronous generator."""
    call = getattr(function, "__call__", None)  # noqa: B004 - of an object that can be called
    return any(
        inspect.iscoroutinefunction(form) or inspect.isasyncgenfunction(form)
        for form in (inspect.unwrap(function), call)
    )


def start(handler: Handler, task: Task, claimed: ClaimedTask, client: BlockingClient) -> Run:
    """Call a handler, in a thread of its own if it is a plain function."""
    current_task.set(task)
    if is_async(handler):
        return _AsyncRun(handler, task)  # type: ignore[arg-type]
    return _PlainRun(handler, SyncTask(task, claimed, client))  # type: ignore[arg-type]


def in_thread(function: Callable[[], T]) -> asyncio.Future[T]:
    """Call a function in a new thread.

    A daemon thread, unlike those of an executor, does not keep the process alive if it hangs.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def call() -> None:
        result: T | None = None
        failure: BaseException | None = None
        try:
            result = context.run(function)
        except (StopIteration, SystemExit, KeyboardInterrupt) as error:
            # A future does not take the first. The others would end the event loop.
            failure = RuntimeError(f"the handler raised {error!r}")
            failure.__cause__ = error
        except BaseException as error:
            failure = error
        try:
            loop.call_soon_threadsafe(settle, result, failure)
        except RuntimeError:  # the loop is closed: nobody waits
            pass

    threading.Thread(target=call, name="parley-handler", daemon=True).start()
    return future
