# Generated from parley._async by scripts/generate.py. Do not edit.
"""Streams that continue after broken connections."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from .. import types as t
from .._events import TaskEvent, is_newer, number_of
from .._json import parse_json
from .._request import Request
from .._sse import ServerSentEvent, SSEDecoder
from ..errors import (
    APIConnectionError,
    EventsReset,
    ParleyError,
    UnexpectedResponseError,
    problem_error,
    rpc_error,
)
from ._transport import Transport

_MAX_BROKEN = 8
"""How many connections of a task's stream may break in a row without an event."""


class _Reconnects:
    """Decides whether a stream connects again."""

    def __init__(self, transport: Transport, most: float) -> None:
        self._retry = transport.retry
        self._most = most
        self._broken = 0

    def worked(self) -> None:
        """Note that the connection was of use."""
        self._broken = 0

    def pause(self, error: ParleyError, decoder: SSEDecoder, *, repeatable: bool) -> None:
        """Wait before the next connection, or raise the error if there is none."""
        self._broken += 1
        pause = self._retry.pause(error, self._broken, repeatable=repeatable)
        if pause is None or self._broken >= self._most or self._retry.attempts == 1:
            raise error
        time.sleep(max(pause, min(decoder.retry, self._retry.max_retry_after)))


def task_events(
    transport: Transport, first: Request, resume: Callable[[str], Request], last: str = ""
) -> Iterator[TaskEvent]:
    """Yield the events of a task until it rests: it is over, or it waits for its sender.

    Args:
        transport: Connects to the server.
        first: Opens the stream.
        resume: Returns the request that continues the stream of a task.
        last: Id of the last known event.
    """
    reconnects = _Reconnects(transport, _MAX_BROKEN)
    task_id = ""
    request = first
    while True:
        decoder = SSEDecoder()
        if last:
            request.headers["Last-Event-ID"] = last
        try:
            for sent in transport.events(request, decoder):
                if sent.data is None or not is_newer(sent.id, last):
                    continue
                event = TaskEvent.from_wire(sent.id, _result(sent))
                last, task_id = sent.id or last, task_id or event.task_id
                reconnects.worked()
                yield event
                if event.final:
                    return
        except ParleyError as error:
            reconnects.pause(error, decoder, repeatable=bool(last) or first.repeatable)
        if last and task_id:
            request = resume(task_id)


def _result(sent: ServerSentEvent) -> Any:
    value = _json(sent)
    if error := value.get("error"):
        raise rpc_error(error, status=200)
    return value.get("result") or {}


def _json(sent: ServerSentEvent) -> dict[str, Any]:
    try:
        value = parse_json(sent.data or "")
    except ValueError as error:
        raise UnexpectedResponseError("an event of the stream is not JSON") from error
    if not isinstance(value, dict):
        raise UnexpectedResponseError("an event of the stream is not a JSON object")
    return value


def org_events(
    transport: Transport,
    make: Callable[[], Request],
    on_reset: Callable[[], None] | None,
) -> Iterator[t.Event]:
    """Yield the events of the org, and then new ones as they happen.

    Args:
        transport: Connects to the server.
        make: Returns the request for the stream.
        on_reset: Called when events are no longer kept; see `EventsReset`.
    """
    reconnects = _Reconnects(transport, math.inf)
    last: int | None = None
    while True:
        decoder = SSEDecoder()
        request = make()
        if last is not None:
            request.headers["Last-Event-ID"] = str(last)
        try:
            for sent in transport.events(request, decoder):
                if sent.name == "error":
                    raise _ending(transport.server, _json(sent))
                if (seq := number_of(sent.id)) is None:
                    continue
                if sent.name == "reset":
                    last = seq
                    if on_reset is None:
                        raise EventsReset(seq)
                    on_reset()
                elif last is None or seq > last:
                    last = seq
                    reconnects.worked()
                    if sent.data is not None:
                        event: Any = _json(sent)
                        yield event
        except ParleyError as error:
            reconnects.pause(error, decoder, repeatable=True)


def _ending(server: str, problem: dict[str, Any]) -> ParleyError:
    """Return the error that ends a stream. After one of the server the client connects again."""
    error = problem_error(problem, status=problem.get("status") or 500)
    if error.status >= 500:
        return APIConnectionError(f"{server} ended the stream: {error}")
    return error
