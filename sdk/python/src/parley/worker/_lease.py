"""The lease of one task: reports in order, heartbeats, and the end of it."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from time import monotonic
from typing import Any

from ..content import Message
from ..errors import (
    ConflictError,
    FinishedError,
    InterruptedTaskError,
    Interruption,
    ParleyError,
    UnexpectedResponseError,
)
from ._api import REPORT_TIMEOUT, Report, WorkAPI, entries_of, read_entry
from ._backoff import Backoff, may_have_arrived, may_pass

_BEAT_EVERY = 1.5
"""How often to ask whether the task was canceled: it must be noticed within two seconds."""

_MAX_BEAT_TIMEOUT = 5.0

log = logging.getLogger("parley.worker")

MakeReport = Callable[[bool], Report]
"""Makes a report. It gets whether an earlier attempt to send it may have arrived."""

Deliver = Callable[["Lease", Report], Awaitable[Mapping[str, Any]]]
"""Sends a report that ends a lease."""


class _Finished(Enum):
    FINISHED = "finished"


class Lease:
    """This worker's lease of one task."""

    def __init__(
        self, token: str, task_id: str, seen: int, *, seconds: int, api: WorkAPI, deliver: Deliver
    ) -> None:
        self.token = token
        self.task_id = task_id
        self.turns: asyncio.Queue[Message | None] = asyncio.Queue()
        """Further messages of the sender. None is the end."""
        self.on_interrupt: Callable[[], None] | None = None
        self._seen = seen  # later messages are delivered again until a response arrives
        self._seconds = seconds
        self._api = api
        self._deliver = deliver
        self._expires = monotonic() + seconds  # by the local clock
        self._over: Interruption | _Finished | None = None
        self._handed_back = False
        # Held while a report is sent: reports arrive in order, and no heartbeat overtakes the last.
        self._sending = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._beating: asyncio.Task[None] | None = None
        self._schedule_beat()

    @property
    def over(self) -> bool:
        """Whether nothing more can be reported."""
        return self._over is not None

    @property
    def interruption(self) -> Interruption | None:
        """Why the handler was interrupted; None if it was not."""
        return self._over if isinstance(self._over, Interruption) else None

    def check(self) -> None:
        """Raise an error if the lease is over."""
        if isinstance(self._over, Interruption):
            raise InterruptedTaskError(self._over)
        if self._over is not None:
            raise FinishedError

    def interrupt(self, reason: Interruption) -> None:
        """End the lease and interrupt the handler. Only the first end has an effect."""
        if self._end(reason):
            log.debug("interrupted task %s: %s", self.task_id, reason)
            if self.on_interrupt is not None:
                self.on_interrupt()

    def _end(self, why: Interruption | _Finished) -> bool:
        if self._over is not None:
            return False
        self._over = why
        self.turns.put_nowait(None)
        if self._timer is not None:
            self._timer.cancel()
        return True

    async def report(self, make: MakeReport, *, ends: bool = False) -> None:
        """Send a report, and repeat it while the lease lasts.

        Args:
            make: Makes the report.
            ends: The report ends the lease. A refusal after an attempt that may have arrived then
                means that it did arrive.
        """
        if self._beating is not None:
            self._beating.cancel()  # the report has the same effect
        async with self._sending:
            unsure = False
            backoff = Backoff()
            while True:
                self.check()
                report = make(unsure)
                if not ends:
                    self._extend(report)
                try:
                    await self._send(report, REPORT_TIMEOUT, ends=ends)
                except ConflictError:
                    if ends and unsure:
                        self._end(_Finished.FINISHED)
                        return
                    self.interrupt(Interruption.LEASE_LOST)
                except ParleyError as error:
                    if not may_pass(error):
                        raise
                    unsure = unsure or may_have_arrived(error)
                    await self._pause(backoff.next(error), error)
                else:
                    if ends and self._end(_Finished.FINISHED):
                        return
                    if self._over is None:
                        return
                await asyncio.sleep(0)  # lets an interruption reach the handler as a cancellation

    async def _pause(self, seconds: float, error: Exception) -> None:
        if monotonic() + seconds > self._expires:
            log.warning("lost the lease of task %s: %s", self.task_id, error)
            self.interrupt(Interruption.LEASE_LOST)
            return
        log.warning("report on task %s failed; again in %.1f s: %s", self.task_id, seconds, error)
        await asyncio.sleep(seconds)

    async def _send(self, report: Report, timeout: float, *, ends: bool = False) -> None:
        began = monotonic()  # the server counts from a later time
        report["seen"] = self._seen
        if ends:
            progress = await self._deliver(self, report)
        else:
            remaining = max(1.0, self._expires - began)
            progress = await self.send_alone(report, min(timeout, remaining))
        seen = progress.get("seen")
        if not isinstance(seen, int):
            raise UnexpectedResponseError("the response to a report lacks the field seen")
        if extension := report.get("extend_seconds"):
            self._expires = began + extension
        self._seen = seen
        for entry in entries_of(progress, "messages"):
            message = read_entry(Message.from_wire, entry, "message")
            if message is not None:
                self.turns.put_nowait(message)
        if progress.get("canceled"):
            self.interrupt(Interruption.CANCELED)

    async def send_alone(
        self, report: Report, timeout: float = REPORT_TIMEOUT
    ) -> Mapping[str, Any]:
        """Send a report in a request of its own."""
        return await self._api.report(self.token, report, timeout)

    def _extend(self, report: Report) -> None:
        """Extend the lease when half of it has passed. It is a write, so not each time."""
        if self._expires - monotonic() <= self._seconds / 2:
            report["extend_seconds"] = self._seconds

    def _schedule_beat(self) -> None:
        every = min(_BEAT_EVERY, self._seconds / 4) * random.uniform(0.9, 1)
        self._timer = asyncio.get_running_loop().call_later(every, self._beat)

    def _beat(self) -> None:
        if self._over is not None:
            return
        if self._sending.locked():  # a report is being sent, which has the same effect
            self._schedule_beat()
            return
        self._beating = asyncio.create_task(self._ask())
        # Not in the task itself: one that is canceled before its first step runs no line of it.
        self._beating.add_done_callback(self._beat_again)

    def _beat_again(self, _: asyncio.Task[None]) -> None:
        self._beating = None
        if self._over is None:
            self._schedule_beat()

    async def _ask(self) -> None:
        """Keep the lease alive, and receive cancellations and further messages."""
        try:
            async with self._sending:
                report: Report = {}
                self._extend(report)
                await self._send(report, max(1.0, min(_MAX_BEAT_TIMEOUT, self._seconds / 2)))
        except ConflictError:
            self.interrupt(Interruption.LEASE_LOST)
        except ParleyError as error:
            log.warning("heartbeat of task %s failed: %s", self.task_id, error)
            if monotonic() > self._expires:
                self.interrupt(Interruption.LEASE_LOST)

    def abandon(self) -> None:
        """Let the lease expire: the task goes to another worker, as a further attempt."""
        if self._end(Interruption.LEASE_LOST):
            log.warning("task %s goes to another worker when its lease expires", self.task_id)

    async def hand_back(self) -> None:
        """Return the task to the queue."""
        if self._handed_back or self._over not in (None, Interruption.STOPPING):
            return
        self._handed_back = True
        self._end(Interruption.STOPPING)
        try:
            await self._api.hand_back(self.token)
        except ConflictError:
            pass
        except ParleyError as error:
            log.warning(
                "could not hand task %s back; it returns when its lease expires: %s",
                self.task_id,
                error,
            )
        else:
            log.info("handed task %s back to the queue", self.task_id)
