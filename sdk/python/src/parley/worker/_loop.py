"""Runs an event loop that does not wait for stragglers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_STRAGGLERS_GET = 1.0
"""How many seconds tasks have to end after the loop has canceled them."""

T = TypeVar("T")

log = logging.getLogger("parley.worker")


def run_loop(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in an event loop of its own.

    Unlike `asyncio.run`, it does not wait forever for tasks that ignore their cancellation, nor for
    threads.
    """
    if _in_loop():
        raise RuntimeError("an event loop is running in this thread; use serve instead of run")
    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(main())
    finally:
        try:
            loop.run_until_complete(_end_tasks())
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _end_tasks() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        _, stragglers = await asyncio.wait(others, timeout=_STRAGGLERS_GET)
        for task in stragglers:
            log.error("a task ignores its cancellation; the worker ends without it: %r", task)
    closing = asyncio.create_task(asyncio.get_running_loop().shutdown_asyncgens())
    await asyncio.wait({closing}, timeout=_STRAGGLERS_GET)
