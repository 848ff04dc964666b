"""The results of several handlers in one request, which also asks for the next tasks."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Protocol

from .._trace import current_trace
from ..errors import APIError, ParleyError, UnexpectedResponseError, problem_error
from ._api import Report, WorkAPI, entries_of
from ._backoff import may_pass
from ._lease import Lease

_GATHER_FOR = 0.001
"""How long a result waits for those of other handlers."""
_MAX_REPORTS = 100
_MAX_BYTES = 1 << 20
"""Limits of one request. A larger result has a request of its own."""
_SLOW = 0.5
"""A further request is sent if the last one got no response for this long."""
_MAX_FLYING = 4
_SINGLE_FOR = 300.0
"""How long results are sent alone to a server that does not know exchanges."""
_WARN_EVERY = 10.0

log = logging.getLogger("parley.worker")


class Slots(Protocol):
    """What the exchange needs to know of the tasks of the worker."""

    @property
    def running(self) -> int:
        """How many tasks have no result yet."""

    def leave(self, leases: Sequence[Lease]) -> None:
        """Give the slots of these tasks to new ones."""

    def stay(self, lease: Lease) -> None:
        """Take the slot back, because the result was not accepted."""

    def reserve(self) -> Mapping[str, Any] | None:
        """Return a claim for the free slots; None if there is none."""

    def release(self, claim: Mapping[str, Any] | None) -> None:
        """Give the slots of a claim back."""

    def take(self, claim: Mapping[str, Any], response: Mapping[str, Any]) -> int:
        """Process the tasks and messages in the response to a claim. Return how many there are."""


@dataclass(eq=False)
class _Result:
    """A report that ends a lease, and what became of it: None means to send it alone."""

    lease: Lease
    entry: Mapping[str, Any]
    size: int
    done: asyncio.Future[Any] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def settle(self, progress: Any) -> None:
        if not self.done.done():
            self.done.set_result(progress)

    def fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)


class Outbox:
    """The results that wait to be sent."""

    def __init__(self, api: WorkAPI, slots: Slots) -> None:
        self._api = api
        self._slots = slots
        self._waiting: list[_Result] = []
        self._flying: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._began = 0.0
        self._single_until = 0.0
        self._warned = -_WARN_EVERY
        self._closed = False
        self.heard = monotonic()
        """When the server last responded."""

    @property
    def flights(self) -> Iterable[asyncio.Task[None]]:
        """The requests in flight."""
        return tuple(self._flying)

    async def deliver(self, lease: Lease, report: Report) -> Mapping[str, Any]:
        """Send a report that ends its lease, together with others if possible."""
        size = len(json.dumps(report))
        if size > _MAX_BYTES or monotonic() < self._single_until or self._closed:
            return await lease.send_alone(report)
        entry: dict[str, Any] = {"lease": lease.token, "report": report}
        if trace := current_trace.get():
            entry |= trace.headers()
        result = _Result(lease, entry, size)
        self._waiting.append(result)
        self._wake.set()
        try:
            progress = await result.done
        except asyncio.CancelledError:
            if result in self._waiting:
                self._waiting.remove(result)
            raise
        if progress is None:
            return await lease.send_alone(report)
        if not isinstance(progress, dict):
            raise UnexpectedResponseError("cannot read the response to a report")
        return progress

    async def run(self) -> None:
        """Send results until the task is canceled."""
        try:
            while True:
                self._wake.clear()
                if 0 < len(self._waiting) < min(self._slots.running, _MAX_REPORTS):
                    await asyncio.sleep(_GATHER_FOR)
                if batch := self._next():
                    flight = asyncio.create_task(self._exchange(batch))
                    self._flying.add(flight)
                    flight.add_done_callback(self._landed)
                try:
                    await asyncio.wait_for(self._wake.wait(), _SLOW if self._waiting else None)
                except asyncio.TimeoutError:
                    pass
        finally:
            self._closed = True
            for flight in self._flying:
                flight.cancel()

    def _landed(self, flight: asyncio.Task[None]) -> None:
        self._flying.discard(flight)
        self._wake.set()
        if not flight.cancelled():
            flight.result()

    def _next(self) -> list[_Result]:
        """Take the results for the next request, if it is time for one."""
        busy = len(self._flying)
        if busy >= _MAX_FLYING or (busy and monotonic() - self._began < _SLOW):
            return []
        count = size = 0
        for result in self._waiting[:_MAX_REPORTS]:
            size += result.size
            if count and size > _MAX_BYTES:
                break
            count += 1
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        if batch:
            self._began = monotonic()
        return batch

    async def _exchange(self, batch: list[_Result]) -> None:
        """Send results and ask for tasks for their slots."""
        self._slots.leave([result.lease for result in batch])
        claim = self._slots.reserve()
        body: dict[str, Any] = {"reports": [result.entry for result in batch]}
        if claim is not None:
            body["claim"] = claim
        try:
            response = await self._api.exchange(body)
            if len(entries_of(response, "reports")) != len(batch):
                raise UnexpectedResponseError("the server responded with a wrong number of results")
        except ParleyError as error:
            self._fail(batch, error)
        except BaseException:
            for result in batch:
                result.done.cancel()
            raise
        else:
            self.heard = monotonic()
            self._settle(batch, response)
            if claim is not None:
                self._slots.take(claim, response)
        finally:
            self._slots.release(claim)

    def _fail(self, batch: list[_Result], error: ParleyError) -> None:
        """Fail the results of a request.

        If trying again cannot help, each is sent alone, so that one bad result does not affect the
        others.
        """
        if isinstance(error, APIError) and error.status in (404, 405):
            self._single_until = monotonic() + _SINGLE_FOR
        for result in batch:
            self._slots.stay(result.lease)
            if may_pass(error):
                result.fail(error)
            else:
                result.settle(None)

    def _settle(self, batch: list[_Result], response: Mapping[str, Any]) -> None:
        for result, outcome in zip(batch, response["reports"], strict=True):
            problem, progress = _outcome(outcome)
            if progress is not None:
                result.settle(progress)
                continue
            self._slots.stay(result.lease)
            if problem is not None:
                result.fail(problem)
            else:
                result.settle(None)
        claim_problem = response.get("claim_problem")
        if isinstance(claim_problem, dict) and monotonic() - self._warned > _WARN_EVERY:
            self._warned = monotonic()
            log.warning("claim failed: %s", claim_problem.get("detail"))


def _outcome(entry: Any) -> tuple[ParleyError | None, Mapping[str, Any] | None]:
    """Return the error of a report, or the response to it."""
    try:
        if problem := entry.get("problem"):
            return problem_error(problem, status=int(problem["status"])), None
        return None, entry.get("progress")
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        return UnexpectedResponseError("cannot read the response to a report"), None
