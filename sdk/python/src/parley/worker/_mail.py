"""Direct messages: which ones have arrived, and which ones to acknowledge."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from ._api import DirectMessage, read_entry

_KEPT_IDS = 1000
_MAX_ACKS = 1000


class Mail:
    """Recognizes messages that several responses deliver until a request acknowledges them."""

    def __init__(self) -> None:
        self._acks: dict[str, None] = {}
        self._seen: deque[str] = deque(maxlen=_KEPT_IDS)

    def unacknowledged(self) -> list[str]:
        """Return the ids to acknowledge with the next request."""
        return list(self._acks)[:_MAX_ACKS]

    def receive(self, acknowledged: Sequence[str], entries: Iterable[Any]) -> list[DirectMessage]:
        """Process the response to a request with these acknowledgements. Return what is new.

        A message that cannot be read is acknowledged too: the server would send it forever.
        """
        for known in acknowledged:
            self._acks.pop(known, None)
        fresh = []
        for entry in entries:
            id = entry.get("id") if isinstance(entry, dict) else None  # noqa: A001
            if isinstance(id, str):
                if id in self._seen:
                    continue
                self._acks[id] = None
                self._seen.append(id)
            message = read_entry(DirectMessage.from_wire, entry, "direct message")
            if message is not None:
                fresh.append(message)
        return fresh
