"""One run of a worker: it claims tasks, runs handlers, and stops cleanly."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .._trace import current_trace
from ..content import to_parts
from ..errors import Fail, FinishedError, InterruptedTaskError, Interruption, ParleyError, Reject
from ._api import ClaimedTask, DirectMessage, WorkAPI, entries_of, read_entry
from ._backoff import Backoff, may_pass
from ._blocking import BlockingClient
from ._exchange import Outbox
from ._handlers import Handler, MessageHandler, contained, in_thread, is_async, start
from ._lease import Lease
from ._mail import Mail
from ._task import Suspend, Task

if TYPE_CHECKING:
    from .._async._client import AsyncClient

_CLAIM_WAIT = 20
_MAX_CLAIM = 100
_TOO_SOON = 1.0
"""The server waits much longer before it responds to a claim without work."""
_FULL_FOR = 1.0
"""How long the worker must be full before it asks for direct messages alone.

That also tells the server that it is still alive.
"""
_STUCK_AFTER = 5.0
"""How long a handler may take to notice an interruption when the worker stops."""
_UNEXPECTED = "the agent failed in an unexpected way"
"""What the sender, maybe of another org, learns of an exception. The log has the rest."""

T = TypeVar("T")
Report = Callable[[], Awaitable[None]]

log = logging.getLogger("parley.worker")


@dataclass(frozen=True)
class Settings:
    """The settings of a worker."""

    agent: str
    name: str
    concurrency: int
    lease: int
    grace: float


class Shift:
    """One run of a worker."""

    def __init__(
        self,
        settings: Settings,
        client: AsyncClient,
        blocking_client: BlockingClient,
        api: WorkAPI,
        handler: Handler,
        on_message: MessageHandler | None,
    ) -> None:
        self._settings = settings
        self._client = client
        self._blocking_client = blocking_client
        self._api = api
        self._handler = handler
        self._on_message = on_message
        self._outbox = Outbox(api, self)
        self._mail = Mail()
        self._inbox: asyncio.Queue[DirectMessage] = asyncio.Queue()
        self._leases: dict[Lease, asyncio.Task[None]] = {}
        self._leaving: set[Lease] = set()  # their results are in flight
        self._settling: set[Lease] = set()  # their handlers have ended
        self._asked = 0  # tasks that requests in flight ask for
        self._freed = asyncio.Event()
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Claim nothing more, and end the run when the handlers have ended."""
        self._stopping.set()
        self._freed.set()  # wakes the claims of a full worker

    async def run(self) -> None:
        """Work until `stop` is called, or the server refuses the worker permanently."""
        settings = self._settings
        log.info("working for agent %s as %s", settings.agent, settings.name)
        sender = asyncio.create_task(self._outbox.run())
        reader = asyncio.create_task(self._read_messages())
        grace = settings.grace
        try:
            await self._claim_loop()
        except asyncio.CancelledError:
            grace = 0
            raise
        finally:
            self._stopping.set()
            await asyncio.shield(self._end(grace, sender, reader))

    async def _end(self, grace: float, *helpers: asyncio.Task[None]) -> None:
        await self._drain(grace)
        await self._confirm()
        for helper in helpers:
            helper.cancel()
        await asyncio.wait(helpers, timeout=_STUCK_AFTER)  # on_message may ignore it
        log.info("stopped working for agent %s", self._settings.agent)

    # Claims.

    async def _claim_loop(self) -> None:
        backoff = Backoff()
        while not self._stopping.is_set():
            await self._await_room()
            claim = self._reserve(_CLAIM_WAIT)
            began = monotonic()
            pause = 0.0
            try:
                response = await self._claim(claim)
                idle = response is not None and not self.take(claim, response)
            except ParleyError as error:
                if not may_pass(error):
                    log.error("the server refused this worker: %s", error)  # noqa: TRY400
                    raise
                pause = backoff.next(error)
                log.warning("claim failed; again in %.1f s: %s", pause, error)
            else:
                if idle and monotonic() - began < _TOO_SOON:  # not how a Parley server responds
                    pause = backoff.next()
                else:
                    backoff.reset()
            finally:
                self.release(claim)
            if pause:
                await unless(asyncio.sleep(pause), self._stopping.wait())

    async def _await_room(self) -> None:
        """Wait for a free slot, or until the server has not heard of this worker for a while."""
        quiet = _FULL_FOR
        while self._room() <= 0 and quiet > 0 and not self._stopping.is_set():
            try:
                await asyncio.wait_for(self._until_free(), quiet)
            except asyncio.TimeoutError:
                quiet = _FULL_FOR - (monotonic() - self._outbox.heard)

    async def _until_free(self) -> None:
        while self._room() <= 0 and not self._stopping.is_set():
            self._freed.clear()
            await self._freed.wait()

    async def _claim(self, claim: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Ask for work. Without a free slot ask for direct messages, until there is one."""
        request: Coroutine[Any, Any, Mapping[str, Any]] = self._api.claim(claim)
        if claim["max"]:
            return await unless(request, self._stopping.wait())
        return await unless(request, self._stopping.wait(), self._until_free())

    async def _confirm(self) -> None:
        """Acknowledge the last direct messages."""
        if not self._mail.unacknowledged():
            return
        try:
            await self._api.claim(self._request(0, 0))
        except ParleyError as error:
            log.warning("could not acknowledge direct messages; they will come again: %s", error)

    def _request(self, most: int, wait: int) -> dict[str, Any]:
        settings = self._settings
        return {
            "worker": settings.name,
            "max": most,
            "wait_seconds": wait,
            "lease_seconds": settings.lease,
            "capacity": settings.concurrency,
            "ack": self._mail.unacknowledged(),
        }

    # Slots.

    @property
    def running(self) -> int:
        """How many tasks have no result yet."""
        return len(self._leases) - len(self._leaving)

    def _room(self) -> int:
        return self._settings.concurrency - self.running - self._asked

    def _reserve(self, wait: int) -> dict[str, Any]:
        most = 0 if self._stopping.is_set() else max(0, min(self._room(), _MAX_CLAIM))
        self._asked += most
        return self._request(most, wait)

    def reserve(self) -> Mapping[str, Any] | None:
        """Return a claim for the free slots; None if there is none."""
        claim = self._reserve(wait=0)
        return claim if claim["max"] else None

    def release(self, claim: Mapping[str, Any] | None) -> None:
        """Give the slots of a claim back."""
        if claim is not None:
            self._asked -= claim["max"]
            self._freed.set()

    def leave(self, leases: Sequence[Lease]) -> None:
        """Give the slots of these tasks to new ones."""
        self._leaving.update(lease for lease in leases if lease in self._leases)

    def stay(self, lease: Lease) -> None:
        """Take the slot back, because the result was not accepted."""
        self._leaving.discard(lease)

    def take(self, claim: Mapping[str, Any], response: Mapping[str, Any]) -> int:
        """Process the tasks and messages in the response to a claim. Return how many there are.

        The lease of a task that cannot be read expires, which counts as an attempt.
        """
        messages = self._mail.receive(claim["ack"], entries_of(response, "messages"))
        for message in messages:
            self._inbox.put_nowait(message)
        entries = entries_of(response, "tasks")
        tasks = [read_entry(ClaimedTask.from_wire, entry, "task") for entry in entries]
        readable = [task for task in tasks if task is not None]
        for task in readable:
            self._begin(task)
        return len(messages) + len(readable)

    # Handlers.

    def _begin(self, claimed: ClaimedTask) -> None:
        lease = Lease(
            claimed.lease,
            claimed.id,
            claimed.seen,
            seconds=self._settings.lease,
            api=self._api,
            deliver=self._outbox.deliver,
        )
        work = lease.hand_back() if self._stopping.is_set() else self._work(claimed, lease)
        runner = asyncio.create_task(work)
        self._leases[lease] = runner
        runner.add_done_callback(lambda _: self._forget(lease))

    def _forget(self, lease: Lease) -> None:
        runner = self._leases.pop(lease)
        self._leaving.discard(lease)
        self._settling.discard(lease)
        self._freed.set()
        if not runner.cancelled() and (error := runner.exception()) is not None:
            log.error("unexpected error for task %s", lease.task_id, exc_info=error)

    async def _work(self, claimed: ClaimedTask, lease: Lease) -> None:
        """Run the handler of a task, and report its result."""
        current_trace.set(claimed.trace)
        task = Task(claimed, lease, self._client)
        report: Report | None = None
        # A handler that has reported its result may still run: wait for its slot.
        async with self._slots:
            if not lease.over:
                report = await self._call(claimed, task, lease)
        if report is not None and not lease.over:
            self._settling.add(lease)
            try:
                await self._settle(task, report)
            finally:
                # Without a result, the task counts as an attempt. Handed back, it could come again
                # without end.
                lease.abandon()
        await task.wait_for_friction()
        if lease.interruption is Interruption.STOPPING:
            await lease.hand_back()

    async def _call(self, claimed: ClaimedTask, task: Task, lease: Lease) -> Report | None:
        """Call the handler. Return what reports its result; None if there is nothing to report."""
        try:
            run = start(self._handler, task, claimed, self._blocking_client)
            lease.on_interrupt = run.interrupt
            parts = to_parts(await run.result())
        except Suspend:
            return None
        except Reject as error:
            return partial(task.reject, str(error))
        except Fail as error:
            return partial(task.fail, str(error))
        except BaseException:
            if lease.over:
                return None
            log.exception("the handler of task %s failed", task.id)
            return partial(task.fail, _UNEXPECTED)
        return partial(task.complete, *parts)

    async def _settle(self, task: Task, report: Report) -> None:
        """Report a result. If it cannot be sent, the task fails."""
        try:
            await report()
        except (InterruptedTaskError, FinishedError) as error:
            log.debug("the result of task %s is not reported: %s", task.id, error)
        except (ParleyError, TypeError, ValueError) as error:
            log.exception("could not report the result of task %s", task.id)
            try:
                await task.fail(f"the result could not be sent: {error}")
            except (ParleyError, ValueError):
                log.exception("could not report the failure of task %s", task.id)

    # The end.

    async def _drain(self, grace: float) -> None:
        """Let handlers finish, then interrupt them, then stop waiting."""
        if await self._all_ended(grace):
            return
        for lease in list(self._leases):
            if lease not in self._settling:
                lease.interrupt(Interruption.STOPPING)
        if await self._all_ended(_STUCK_AFTER):
            return
        for lease in self._leases:
            log.error("a handler ignores its interruption; task %s goes back", lease.task_id)
        await asyncio.gather(*(lease.hand_back() for lease in self._leases))

    async def _all_ended(self, timeout: float) -> bool:
        try:
            await asyncio.wait_for(self._until_ended(), timeout)
        except asyncio.TimeoutError:
            return False
        return True

    async def _until_ended(self) -> None:
        # A request in flight may still claim tasks, which then go back to the queue.
        while waiting := [*self._leases.values(), *self._outbox.flights]:
            await asyncio.wait(waiting)
            await asyncio.sleep(0)  # lets done callbacks run
        await self._inbox.join()

    async def _read_messages(self) -> None:
        while True:
            message = await self._inbox.get()
            try:
                await self._read(message)
            except Exception:
                log.exception("on_message failed for direct message %s", message.id)
            finally:
                self._inbox.task_done()

    async def _read(self, message: DirectMessage) -> None:
        handler = self._on_message
        if handler is None:
            log.warning("dropped direct message %s: the worker has no on_message", message.id)
        elif is_async(handler):
            await contained(cast("Awaitable[None]", handler(message)))
        else:
            await in_thread(partial(handler, message))


async def unless(operation: Coroutine[Any, Any, T], *signals: Coroutine[Any, Any, Any]) -> T | None:
    """Return the result of an operation, or None if a signal comes first."""
    wanted = asyncio.create_task(operation)
    others = [asyncio.create_task(signal) for signal in signals]
    try:
        await asyncio.wait({wanted, *others}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (wanted, *others):
            task.cancel()
    await asyncio.wait({wanted})
    return None if wanted.cancelled() else wanted.result()
