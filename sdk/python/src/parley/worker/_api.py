"""The API for workers. Each request is sent once: the worker knows which may be repeated."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from .._async._transport import AsyncTransport
from .._request import Request, join
from .._time import parse_time
from .._trace import Trace
from ..content import Message, Sender
from ..errors import APIConnectionError, UnexpectedResponseError

REPORT_TIMEOUT = 15.0

Report = dict[str, Any]
"""What a worker reports on a task: WorkReport in the OpenAPI document."""

T = TypeVar("T")

log = logging.getLogger("parley.worker")


@dataclass(frozen=True)
class ClaimedTask:
    """A task that this worker has a lease for, as the server describes it."""

    id: str
    lease: str
    attempt: int
    max_attempts: int
    deadline: datetime | None
    sender: Sender
    sender_task_id: str
    context_id: str
    message: Message
    history: Sequence[Message]
    metadata: Mapping[str, Any]
    accepted_output_modes: Sequence[str]
    seen: int
    trace: Trace | None

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> ClaimedTask:
        """Read a claimed task."""
        parent = wire.get("traceparent")
        deadline = wire.get("deadline")
        return cls(
            id=wire["id"],
            lease=wire["lease"],
            attempt=wire.get("attempt", 1),
            max_attempts=wire.get("max_attempts", 3),
            deadline=parse_time(deadline) if deadline else None,
            sender=Sender.parse(wire.get("sender") or ""),
            sender_task_id=wire.get("sender_task_id") or "",
            context_id=wire.get("context_id") or "",
            message=Message.from_wire(wire["message"]),
            history=tuple(map(Message.from_wire, wire.get("history") or ())),
            metadata=wire.get("metadata") or {},
            accepted_output_modes=wire.get("accepted_output_modes") or (),
            seen=wire.get("seen") or 0,
            trace=Trace(parent, wire.get("tracestate") or "") if parent else None,
        )


@dataclass(frozen=True)
class DirectMessage:
    """A message to the agent that is not a task: the sender expects no response."""

    id: str
    sender: Sender
    message: Message
    at: str

    @property
    def text(self) -> str:
        """The text of the message."""
        return self.message.text

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> DirectMessage:
        """Read a direct message."""
        sender = Sender.parse(wire.get("from") or "")
        return cls(wire["id"], sender, Message.from_wire(wire["message"]), wire.get("at") or "")


def entries_of(response: Mapping[str, Any], name: str) -> Sequence[Any]:
    """Return a list in a response; an empty one if it is missing or is not a list."""
    entries = response.get(name)
    return entries if isinstance(entries, list) else ()


def read_entry(read: Callable[[Any], T], entry: Any, what: str) -> T | None:
    """Read an entry of a list. One that cannot be read is logged, and does not affect others."""
    try:
        return read(entry)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        name = entry.get("id") if isinstance(entry, dict) else None
        log.error("cannot read %s %s of a response: %r", what, name or "", error)  # noqa: TRY400
        return None


class WorkAPI:
    """The requests of the workers of one agent."""

    def __init__(self, transport: AsyncTransport, agent: str) -> None:
        self._transport = transport
        self._base = ("api", "v1", "agents", agent)

    async def claim(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Take tasks and direct messages, and wait for them if there are none."""
        return await self._post(("claim",), body, REPORT_TIMEOUT, waits=body["wait_seconds"])

    async def report(self, lease: str, report: Report, timeout: float) -> Mapping[str, Any]:
        """Report on a task."""
        return await self._post(("leases", lease), report, timeout)

    async def exchange(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Report on several tasks and take the next ones."""
        return await self._post(("work",), body, REPORT_TIMEOUT)

    async def hand_back(self, lease: str) -> None:
        """Return a task to the queue. It does not count as an attempt."""
        path = join(*self._base, "leases", lease)
        await self._send(Request("DELETE", path, in_org=False), REPORT_TIMEOUT)

    async def _post(
        self, path: Sequence[str], body: Mapping[str, Any], timeout: float, waits: float = 0
    ) -> Mapping[str, Any]:
        request = Request("POST", join(*self._base, *path), in_org=False, body=body, waits=waits)
        response = await self._send(request, timeout + waits)
        if not isinstance(response, dict):
            raise UnexpectedResponseError("the response is not a JSON object")
        return response

    async def _send(self, request: Request, timeout: float) -> Any:
        try:
            return await asyncio.wait_for(self._transport.send(request), timeout)
        except asyncio.TimeoutError:
            server = self._transport.server
            raise APIConnectionError(f"no response from {server} in {timeout:.0f} s") from None
