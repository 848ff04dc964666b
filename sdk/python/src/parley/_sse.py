"""Server-sent events, without input or output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

SILENCE = 45.0
"""How long a stream may be silent. The server sends a comment every 15 seconds."""


@dataclass
class ServerSentEvent:
    """An event. One without data only sets the position of the stream."""

    id: str = ""
    name: str = ""
    data: str | None = None


class SSEDecoder:
    """Turns the bytes of a stream into events.

    It splits lines itself: `str.splitlines` and `httpx` also split at characters that may occur in
    the JSON of an event, such as U+0085.
    """

    def __init__(self) -> None:
        self.retry = 0.0
        """How many seconds the server wants the client to wait before it connects again."""
        self._rest: list[bytes] = []
        self._event = ServerSentEvent()

    def feed(self, chunk: bytes) -> Iterator[ServerSentEvent]:
        """Yield the events that the chunk ends."""
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._rest.append(line)
            whole, self._rest = b"".join(self._rest), []
            if (event := self._line(whole.removesuffix(b"\r").decode())) is not None:
                yield event
        self._rest.append(rest)

    def _line(self, line: str) -> ServerSentEvent | None:
        if not line:
            event, self._event = self._event, ServerSentEvent()
            return event if event.data is not None or event.id else None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            known = self._event.data
            self._event.data = value if known is None else f"{known}\n{value}"
        elif name == "id":
            self._event.id = value
        elif name == "event":
            self._event.name = value
        elif name == "retry" and value.isdecimal():
            self.retry = float(value) / 1000  # int limits the number of digits
        return None
