"""Outputs that grow while the handler runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any

from ..content import Part, PartLike, TextPart, to_parts
from ._api import Report
from ._lease import Lease


class ArtifactWriter:
    """An output that the sender sees growing.

    As a context manager it marks the artifact as complete at the end:

        async with task.open_artifact("answer") as answer:
            async for token in model:
                await answer.write(token)

    The first chunk of each attempt replaces the artifact, so that a second attempt does not
    continue the text of a lost one.
    """

    def __init__(
        self,
        lease: Lease,
        id: str,  # noqa: A002 - the name of the field
        *,
        name: str | None = None,
        description: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self.id = id
        self._lease = lease
        self._about: dict[str, Any] = {"artifact_id": id}
        optional = {"name": name, "description": description, "metadata": metadata}
        self._about.update((key, value) for key, value in optional.items() if value is not None)
        self._sent: list[Part] = []
        self._complete = False
        self._buffer: list[str] = []
        self._flush: asyncio.Task[None] | None = None

    async def append(self, *parts: PartLike, last: bool = False) -> None:
        """Add parts, and return when the server has them.

        Args:
            parts: What to add: texts, data or files.
            last: The artifact is complete.
        """
        await self._drain()
        await self._append(list(to_parts(parts)), last)

    async def write(self, text: str) -> None:
        """Add text, and return at once unless an earlier text failed.

        Texts that are written while a request is in flight share the next one, so that a model may
        write single tokens.
        """
        self._buffer.append(text)
        if self._flush is not None and self._flush.done():
            await self._drain()
        if self._flush is None:
            self._flush = asyncio.create_task(self._flush_buffer())
            self._flush.add_done_callback(_retrieve)
        await asyncio.sleep(0)

    async def _flush_buffer(self) -> None:
        while text := "".join(self._buffer):
            self._buffer.clear()
            await self._append([TextPart(text)], last=False)

    async def _drain(self) -> None:
        """Wait until everything that was written has arrived."""
        flush, self._flush = self._flush, None
        if flush is not None:
            await flush
        await self._flush_buffer()

    async def _append(self, parts: list[Part], last: bool) -> None:
        if not parts:
            return
        earlier = list(self._sent)
        self._sent += parts
        self._complete = self._complete or last

        def make(unsure: bool) -> Report:
            # Appending again could duplicate the chunk; send the whole artifact instead.
            append = bool(earlier) and not unsure
            chosen = parts if append else earlier + parts
            chunk = {**self._about, "parts": [part.to_wire() for part in chosen]}
            if append:
                chunk["append"] = True
            if last:
                chunk["last_chunk"] = True
            return {"artifacts": [chunk]}

        await self._lease.report(make)

    async def close(self) -> None:
        """Mark the artifact as complete."""
        flush, self._flush = self._flush, None
        if flush is not None:
            await flush
        rest = "".join(self._buffer)
        self._buffer.clear()
        if rest or (self._sent and not self._complete):
            await self._append([TextPart(rest)], last=True)  # a chunk has at least one part

    async def __aenter__(self) -> ArtifactWriter:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            await self.close()
        elif self._flush is not None:
            self._flush.cancel()


def _retrieve(flush: asyncio.Task[None]) -> None:
    """Look at the error, which asyncio would log if the handler ended before it came up."""
    if not flush.cancelled():
        flush.exception()


class SyncArtifactWriter:
    """`ArtifactWriter` for plain functions."""

    def __init__(
        self, writer: ArtifactWriter, run: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        self.id = writer.id
        self._writer = writer
        self._run = run

    def append(self, *parts: PartLike, last: bool = False) -> None:
        """Add parts, and return when the server has them."""
        self._run(self._writer.append(*parts, last=last))

    def write(self, text: str) -> None:
        """Add text, and return at once unless an earlier text failed."""
        self._run(self._writer.write(text))

    def close(self) -> None:
        """Mark the artifact as complete."""
        self._run(self._writer.close())

    def __enter__(self) -> SyncArtifactWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._run(self._writer.__aexit__(kind, error, traceback))
