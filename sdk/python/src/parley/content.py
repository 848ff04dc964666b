"""The content of tasks: messages, parts and artifacts, as in A2A.

These classes are the same for workers and for senders. They read the JSON of all versions of A2A.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypedDict

from . import types as t

__all__ = [
    "Artifact",
    "DataPart",
    "FilePart",
    "Message",
    "Part",
    "PartLike",
    "Sender",
    "SentTask",
    "TaskState",
    "TaskStatus",
    "TextPart",
]

JSONObject = Mapping[str, Any]


class TaskState(str, Enum):
    """The state of a task."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input-required"
    AUTH_REQUIRED = "auth-required"
    COMPLETED = "completed"
    FAILED = "failed"
    REJECTED = "rejected"
    CANCELED = "canceled"
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return self.value

    @property
    def terminal(self) -> bool:
        """Whether the task is over."""
        return self in _TERMINAL

    @property
    def rests(self) -> bool:
        """Whether the task is over or waits for its sender."""
        return self in _TERMINAL or self in (TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED)

    @classmethod
    def from_wire(cls, name: str) -> TaskState:
        """Read a state as any version of A2A spells it."""
        name = name.removeprefix("TASK_STATE_").lower().replace("_", "-")
        return cls(name) if name in cls._value2member_map_ else cls.UNKNOWN

    @property
    def v1(self) -> str:
        """The state as A2A 1.0 spells it."""
        return "TASK_STATE_" + self.value.upper().replace("-", "_")


_TERMINAL = frozenset(
    {TaskState.COMPLETED, TaskState.FAILED, TaskState.REJECTED, TaskState.CANCELED}
)


@dataclass(frozen=True)
class TextPart:
    """A text."""

    text: str
    media_type: str | None = None
    metadata: JSONObject | None = None

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON of the part."""
        wire: dict[str, Any] = {"type": "text", "text": self.text.replace("\x00", "")}
        return _with(wire, mediaType=self.media_type, metadata=self.metadata)


@dataclass(frozen=True)
class DataPart:
    """Structured data: any JSON value."""

    data: Any
    media_type: str | None = None
    metadata: JSONObject | None = None

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON of the part."""
        wire: dict[str, Any] = {"type": "data", "data": self.data}
        return _with(wire, mediaType=self.media_type, metadata=self.metadata)


@dataclass(frozen=True)
class FilePart:
    """A file: its content, or the URL where it is."""

    content: bytes | None = None
    name: str | None = None
    media_type: str | None = None
    url: str | None = None
    metadata: JSONObject | None = None

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON of the part."""
        content = None if self.content is None else base64.b64encode(self.content).decode()
        file = _with({}, name=self.name, mimeType=self.media_type, bytes=content, uri=self.url)
        return _with({"type": "file", "file": file}, metadata=self.metadata)


Part = TextPart | DataPart | FilePart
"""A piece of a message or an artifact."""

PartLike = Part | str | Mapping[str, Any]
"""A part, or a string for a text part, or a mapping for a data part."""


def _with(wire: dict[str, Any], **optional: Any) -> dict[str, Any]:
    """Add the values that are not None."""
    wire.update((name, value) for name, value in optional.items() if value is not None)
    return wire


def to_part(value: PartLike) -> Part:
    """Return a string as a text part and a mapping as a data part."""
    if isinstance(value, str):
        return TextPart(value)
    if isinstance(value, (TextPart, DataPart, FilePart)):
        return value
    if isinstance(value, Mapping):
        return DataPart(value)
    raise TypeError(f"a part must be a part, a string or a mapping, not {type(value).__name__}")


def to_parts(values: PartLike | Iterable[PartLike] | None) -> tuple[Part, ...]:
    """Return the parts of a result."""
    if values is None:
        return ()
    if isinstance(values, (str, Mapping, TextPart, DataPart, FilePart)):
        return (to_part(values),)
    return tuple(to_part(value) for value in values)


def part_from_wire(wire: JSONObject) -> Part:
    """Read a part."""
    metadata, media_type = wire.get("metadata"), wire.get("mediaType")
    if (text := wire.get("text")) is not None:
        return TextPart(text, media_type, metadata)
    file: JSONObject | None = wire.get("file")
    if file is not None:
        raw, url, name = file.get("bytes"), file.get("uri"), file.get("name")
        media_type = file.get("mimeType") or media_type
    elif "data" in wire:
        return DataPart(wire["data"], media_type, metadata)
    else:  # A2A 1.0
        raw, url, name = wire.get("raw"), wire.get("url"), wire.get("filename")
    content = None if raw is None else base64.b64decode(raw)
    return FilePart(content, name, media_type, url, metadata)


def _text_of(parts: Iterable[Part], separator: str) -> str:
    return separator.join(part.text for part in parts if isinstance(part, TextPart))


@dataclass(frozen=True)
class Message:
    """One turn of a conversation."""

    parts: Sequence[Part]
    role: str = "user"
    """`user` is the sender of the task, `agent` the agent."""
    id: str | None = None
    reference_task_ids: Sequence[str] = ()
    extensions: Sequence[str] = ()
    metadata: JSONObject | None = None

    @property
    def text(self) -> str:
        """The text parts, one per line."""
        return _text_of(self.parts, "\n")

    @property
    def files(self) -> list[FilePart]:
        """The file parts."""
        return [part for part in self.parts if isinstance(part, FilePart)]

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON of the message."""
        return _with(
            {"parts": [part.to_wire() for part in self.parts], "role": self.role},
            messageId=self.id,
            referenceTaskIds=list(self.reference_task_ids) or None,
            extensions=list(self.extensions) or None,
            metadata=self.metadata,
        )

    @classmethod
    def from_wire(cls, wire: JSONObject) -> Message:
        """Read a message."""
        return cls(
            tuple(map(part_from_wire, wire.get("parts") or ())),
            (wire.get("role") or "user").removeprefix("ROLE_").lower(),
            wire.get("messageId"),
            wire.get("referenceTaskIds") or (),
            wire.get("extensions") or (),
            wire.get("metadata"),
        )


def to_message(value: Message | PartLike | Iterable[PartLike]) -> Message:
    """Return a message of the sender."""
    return value if isinstance(value, Message) else Message(to_parts(value))


@dataclass(frozen=True)
class Artifact:
    """An output of a task."""

    parts: Sequence[Part]
    id: str = ""
    name: str | None = None
    description: str | None = None
    metadata: JSONObject | None = None

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return _text_of(self.parts, "")

    @classmethod
    def from_wire(cls, wire: JSONObject) -> Artifact:
        """Read an artifact."""
        return cls(
            tuple(map(part_from_wire, wire.get("parts") or ())),
            wire.get("artifactId") or "",
            wire.get("name"),
            wire.get("description"),
            wire.get("metadata"),
        )


@dataclass(frozen=True)
class TaskStatus:
    """The state of a task, since when, and the agent's message about it."""

    state: TaskState
    message: Message | None = None
    timestamp: str | None = None

    @classmethod
    def from_wire(cls, wire: JSONObject) -> TaskStatus:
        """Read a status."""
        message = wire.get("message")
        return cls(
            TaskState.from_wire(wire.get("state") or ""),
            Message.from_wire(message) if message else None,
            wire.get("timestamp"),
        )


@dataclass(frozen=True)
class SentTask:
    """A task as its sender sees it. Workers get a `parley.Task`."""

    id: str
    context_id: str
    status: TaskStatus
    artifacts: Sequence[Artifact] = ()
    history: Sequence[Message] = ()
    metadata: JSONObject | None = None

    @property
    def state(self) -> TaskState:
        """The state of the task."""
        return self.status.state

    @property
    def text(self) -> str:
        """The text of all artifacts, one per line."""
        return "\n".join(artifact.text for artifact in self.artifacts)

    @classmethod
    def from_wire(cls, wire: JSONObject) -> SentTask:
        """Read a task."""
        return cls(
            wire.get("id") or "",
            wire.get("contextId") or "",
            TaskStatus.from_wire(wire.get("status") or {}),
            tuple(map(Artifact.from_wire, wire.get("artifacts") or ())),
            tuple(map(Message.from_wire, wire.get("history") or ())),
            wire.get("metadata"),
        )


@dataclass(frozen=True)
class Sender:
    """A principal anywhere on the platform, such as `main/user:ada`."""

    org: str
    kind: str
    """`user`, `agent` or `service`."""
    id: str

    def __str__(self) -> str:
        return f"{self.org}/{self.ref}"

    @property
    def ref(self) -> str:
        """The principal within its org, such as `user:ada`."""
        return f"{self.kind}:{self.id}"

    @classmethod
    def parse(cls, text: str) -> Sender:
        """Read `<org>/<kind>:<id>`."""
        org, _, ref = text.partition("/")
        kind, _, id = ref.partition(":")  # noqa: A001 - the name of the field
        return cls(org, kind, id)


class TaskPolicy(TypedDict, total=False):
    """How long a task may take and how often it is tried."""

    deadline: t.Timestamp
    """When the task fails unless it is over (RFC 3339)."""
    timeout_seconds: int
    """The time from the creation of the task to its deadline; instead of `deadline`."""
    retry: t.RetryPolicy
    """When the task is tried again; by default up to 3 attempts if workers are lost."""
