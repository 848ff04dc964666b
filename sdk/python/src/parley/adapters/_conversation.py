"""Conversations: the tasks of one sender with the same context id."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

from ..worker import Task


def conversation_id(task: Task) -> str:
    """Return the id under which a framework keeps the state of the conversation.

    Senders choose context ids, so the id includes the sender: one sender must not be able to
    continue the conversation of another.
    """
    return f"{task.sender}/{task.context_id}"


class Turns:
    """Lets the tasks of a conversation run one after another in this process.

    Frameworks load the state of a conversation, change it and save it, so that concurrent tasks
    would overwrite each other's changes.
    """

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, task: Task) -> asyncio.Lock:
        """Return the lock of the task's conversation; keep it for as long as the task runs."""
        return self._locks.setdefault(conversation_id(task), asyncio.Lock())
