"""The client of plain functions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._sync._client import Client


class BlockingClient:
    """A client that all handlers of a worker share, made when the first of them needs it."""

    def __init__(self, make: Callable[[], Client]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._client: Client | None = None

    def get(self) -> Client:
        """Return the client, in any thread."""
        with self._lock:
            if self._client is None:
                self._client = self._make()
            return self._client

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()
