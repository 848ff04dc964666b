"""Server-sent events, without input or output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .errors import UnexpectedResponseError

SILENCE = 45.0
"""How long a stream may be silent. The server sends a comment every 15 seconds."""

MAX_EVENT = 64 << 20
"""How many bytes an event may have. A server without an end of the line would fill the memory."""


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
        self._size = 0  # of the event so far
        self._event = ServerSentEvent()
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[ServerSentEvent]:
        """Yield the events that the chunk ends.

        Raises:
            UnexpectedResponseError: an event is too large, or is not UTF-8.
        """
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._add(line)
            whole, self._rest = b"".join(self._rest), []
            try:
                text = whole.removesuffix(b"\r").decode()
            except UnicodeDecodeError as error:
                raise UnexpectedResponseError("an event of the stream is not UTF-8") from error
            if (event := self._line(text)) is not None:
                yield event
        self._add(rest)

    def _add(self, fragment: bytes) -> None:
        self._size += len(fragment)
        if self._size > MAX_EVENT:
            raise UnexpectedResponseError(f"an event is larger than {MAX_EVENT} bytes")
        self._rest.append(fragment)

    def _line(self, line: str) -> ServerSentEvent | None:
        if not line:
            event, self._event = self._event, ServerSentEvent()
            if self._data:
                event.data = "\n".join(self._data)
            self._data, self._size = [], 0
            return event if event.data is not None or event.id else None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "id":
            self._event.id = value
        elif name == "event":
            self._event.name = value
        elif name == "retry" and value.isdecimal():
            self.retry = float(value) / 1000  # int limits the number of digits
        return None
