"""What all adapters share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from ..worker import Task

TaskHandler = Callable[[Task], Awaitable[None]]
"""A handler that reports the result of the task itself."""


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Name the extra to install if an import in the block fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"this adapter needs {error.name}; install it with: pip install 'parley-sdk[{extra}]'",
            name=error.name,
        ) from error
