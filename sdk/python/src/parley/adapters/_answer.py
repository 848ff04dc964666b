"""The text of a model as an output of a task."""

from __future__ import annotations

from collections.abc import Hashable
from types import TracebackType

from ..content import PartLike
from ..worker import Task

ARTIFACT_ID = "answer"


class Answer:
    """An artifact that grows while models write. Each of their messages is a paragraph.

    Use it as a context manager, which marks the artifact as complete at the end.
    """

    def __init__(self, task: Task) -> None:
        self._artifact = task.open_artifact(ARTIFACT_ID)
        self._message: Hashable = None
        self.empty = True

    async def write(self, text: str, message: Hashable) -> None:
        """Add text of a message; the message is any value that identifies it."""
        if not text:
            return
        if not self.empty and message != self._message:
            text = "\n\n" + text
        self._message, self.empty = message, False
        await self._artifact.write(text)

    async def add(self, *parts: PartLike, last: bool = False) -> None:
        """Add whole parts, such as files."""
        if parts:
            self.empty = False
            await self._artifact.append(*parts, last=last)

    async def __aenter__(self) -> Answer:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._artifact.__aexit__(kind, error, traceback)
