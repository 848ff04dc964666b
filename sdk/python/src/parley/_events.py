"""Events of tasks and of the org, without input or output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .content import Artifact, SentTask, TaskStatus

__all__ = ["TaskEvent"]

_MAX_DIGITS = 19


@dataclass(frozen=True)
class TaskEvent:
    """A change of a task: a new status, or a new or growing artifact."""

    id: str
    """Number of the event, after which a stream can continue."""
    task_id: str
    context_id: str
    status: TaskStatus | None = None
    artifact: Artifact | None = None
    append: bool = False
    """The artifact's parts are added to those of earlier events."""
    last_chunk: bool = False
    """The artifact is complete."""
    task: SentTask | None = None
    """The whole task, when a stream of A2A 1.0 begins."""
    final: bool = False
    """The task rests, and the stream ends here."""

    @classmethod
    def from_wire(cls, id: str, wire: Mapping[str, Any]) -> TaskEvent:  # noqa: A002
        """Read an event as any version of A2A spells it."""
        if (whole := wire.get("task")) is not None:
            task = SentTask.from_wire(whole)
            return cls(id, task.id, task.context_id, task=task, final=task.state.terminal)
        v1 = wire.get("statusUpdate") or wire.get("artifactUpdate")
        body: Mapping[str, Any] = wire if v1 is None else v1
        status = TaskStatus.from_wire(body["status"]) if body.get("status") else None
        artifact: Mapping[str, Any] = body.get("artifact") or {}
        final = bool(body.get("final"))
        if v1 is not None and status is not None:
            final = status.state.rests
        return cls(
            id=id,
            task_id=body.get("taskId") or body.get("id") or "",
            context_id=body.get("contextId") or "",
            status=status,
            artifact=Artifact.from_wire(artifact) if artifact else None,
            append=bool(body.get("append") or artifact.get("append")),
            last_chunk=bool(body.get("lastChunk") or artifact.get("lastChunk")),
            final=final,
        )


def is_newer(id: str, last: str) -> bool:  # noqa: A002 - the name of the field
    """Whether an event comes after the last one."""
    number, known = number_of(id), number_of(last)
    return number is None or known is None or number > known


def number_of(id: str) -> int | None:  # noqa: A002 - the name of the field
    """Return the number of an event; None if the id is not a number of 64 bits."""
    return int(id) if id.isdecimal() and len(id) <= _MAX_DIGITS else None
