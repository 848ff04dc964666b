"""Direct messages: which ones have arrived, and which ones to acknowledge."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from ._api import DirectMessage

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

    def receive(
        self, acknowledged: Sequence[str], messages: Iterable[DirectMessage]
    ) -> list[DirectMessage]:
        """Process the response to a request with these acknowledgements. Return what is new."""
        for known in acknowledged:
            self._acks.pop(known, None)
        fresh = [message for message in messages if message.id not in self._seen]
        for message in fresh:
            self._acks[message.id] = None
            self._seen.append(message.id)
        return fresh
