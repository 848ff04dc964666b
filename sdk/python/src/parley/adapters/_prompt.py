"""Messages of the sender as models read them."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

from ..content import FilePart, Message, Part, TextPart
from ..worker import Task


def history_of(task: Task) -> Sequence[Message]:
    """Return the conversation up to the latest message of the sender.

    What follows it are messages of the platform about lost workers.
    """
    history = list(task.history)
    while history and history[-1].role != "user":
        history.pop()
    return history


def text_of(part: Part) -> str:
    """Return a part as text: data as JSON, and a file as its name or URL."""
    if isinstance(part, TextPart):
        return part.text
    if isinstance(part, FilePart):
        return part.url or part.name or "file"
    return json.dumps(part.data, ensure_ascii=False)


def prompt(message: Message) -> str:
    """Return the text and the data of a message, one part per line."""
    return "\n".join(text_of(part) for part in message.parts if not isinstance(part, FilePart))


def media_type(file: FilePart) -> str:
    """Return the media type of a file."""
    return file.media_type or "application/octet-stream"


def base64_of(content: bytes) -> str:
    """Return content in base64, as the APIs of models take it."""
    return base64.b64encode(content).decode()
