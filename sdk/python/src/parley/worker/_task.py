"""The task that a handler gets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from .._trace import Trace
from ..content import (
    Message,
    Part,
    PartLike,
    Sender,
    SentTask,
    TaskPolicy,
    TaskState,
    TextPart,
    to_parts,
)
from ..errors import Interruption
from ._api import ClaimedTask, Report
from ._artifacts import ArtifactWriter, SyncArtifactWriter
from ._blocking import BlockingClient
from ._lease import Lease

if TYPE_CHECKING:
    from .. import types as t
    from .._async._agent import AsyncAgentClient
    from .._async._client import AsyncClient
    from .._sync._agent import AgentClient
    from .._sync._client import Client

T = TypeVar("T")


class Suspend(BaseException):
    """Ends the run of a handler that waits for its sender.

    It is not an `Exception`, so that handlers do not catch it by accident.
    """


def _question_id(task_id: str, number: int) -> str:
    return f"{task_id}-question-{number}"


def _request_of(claimed: ClaimedTask) -> Message:
    """Return the message that the handler works on: the same in each run that `ask` leads to."""
    first_question = _question_id(claimed.id, 1)
    request = claimed.message
    for message in claimed.history:
        if message.id == first_question:
            return request
        if message.role == "user":
            request = message
    return claimed.message


class _TaskFields:
    """What the server says about a task."""

    id: str
    """The platform's id of the task; the same for every attempt."""
    context_id: str
    """Groups tasks of the sender."""
    sender: Sender
    """Who sent the task."""
    sender_task_id: str
    """The sender's id of the task."""
    attempt: int
    """From 1; more than 1 if an earlier worker was lost or failed."""
    max_attempts: int
    """How often the task is tried. After a failure in the last attempt it is over."""
    deadline: datetime | None
    """When the task fails and its lease ends; `None` if never."""
    message: Message
    """The latest message of the sender that is not a reply to `ask`."""
    history: Sequence[Message]
    """The whole conversation, oldest first, including `message`."""
    metadata: Mapping[str, Any]
    """Of the sender's latest request that had any."""
    accepted_output_modes: Sequence[str]
    """Media types that the sender accepts; empty if unknown."""
    trace: Trace | None
    """The trace that the task belongs to (W3C Trace Context)."""

    def __init__(self, claimed: ClaimedTask, lease: Lease) -> None:
        self.id = claimed.id
        self.context_id = claimed.context_id
        self.sender = claimed.sender
        self.sender_task_id = claimed.sender_task_id
        self.attempt = claimed.attempt
        self.max_attempts = claimed.max_attempts
        self.deadline = claimed.deadline
        self.message = _request_of(claimed)
        self.history = claimed.history
        self.metadata = claimed.metadata
        self.accepted_output_modes = claimed.accepted_output_modes
        self.trace = claimed.trace
        self._lease = lease

    @property
    def text(self) -> str:
        """The text of `message`."""
        return self.message.text

    @property
    def interruption(self) -> Interruption | None:
        """Why the worker interrupted the handler; None if it did not."""
        return self._lease.interruption

    @property
    def interrupted(self) -> bool:
        """Whether to stop: the task was canceled, the lease was lost, or the worker is stopping."""
        return self._lease.interruption is not None

    @property
    def finished(self) -> bool:
        """Whether the task was ended, by the handler or by an interruption."""
        return self._lease.over

    def check(self) -> None:
        """Raise `InterruptedTaskError` if the handler was interrupted; see `interruption`."""
        if self.interrupted:
            self._lease.check()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} attempt {self.attempt}>"


class Task(_TaskFields):
    """A task of the agent, for a coroutine function.

    The methods may be called from several coroutines; reports arrive in the order of the calls.
    The handler gets `asyncio.CancelledError` when the task was canceled, the lease was lost, or the
    worker is stopping; `interruption` says which.
    """

    def __init__(self, claimed: ClaimedTask, lease: Lease, client: AsyncClient) -> None:
        super().__init__(claimed, lease)
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._questions = 0
        self._friction_reports: list[Future[t.FrictionOutcome]] = []

    @property
    def client(self) -> AsyncClient:
        """The client of the worker, to call other agents or to submit proposals."""
        return self._client

    def agent(self, id: str) -> AsyncAgentClient:  # noqa: A002 - the name of the field
        """Return a client for another agent, of this agent's org or a public one.

        The server knows its calls as part of this task, and refuses those that go too deep: agents
        that call each other in a loop come to an end. The key needs the scope svc:a2a:write.
        """
        return self._client.agent(id, parent=self.id)

    async def call(
        self,
        agent: str,
        message: Message | PartLike | Iterable[PartLike],
        *,
        id: str | None = None,  # noqa: A002 - the name of the field
        context_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        policy: TaskPolicy | None = None,
        wait: float = 60,
    ) -> SentTask:
        """Send a task to another agent as part of this one, and return it.

        Args:
            agent: The agent's id.
            message: A text, parts, or a whole message.
            id: The id of the new task; by default a random one. With an id of your own a second
                attempt of this task does not send it again.
            context_id: Groups tasks.
            metadata: A JSON object for the other agent.
            policy: The deadline of the new task, and when it is tried again; by default that of
                the other agent.
            wait: How many seconds to wait for the task to rest, up to 60.
        """
        return await self.agent(agent).send(
            message, id=id, context_id=context_id, metadata=metadata, policy=policy, wait=wait
        )

    async def progress(self, *parts: PartLike) -> None:
        """Report progress to the sender, as a message of the agent."""
        message = _message(parts)
        await self._lease.report(lambda _: {"status": TaskState.WORKING.value, "message": message})

    async def send_artifact(
        self,
        *parts: PartLike,
        id: str | None = None,  # noqa: A002 - the name of the field
        name: str | None = None,
        description: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Deliver a whole output. It replaces an earlier one with the same id."""
        artifact = {
            "artifact_id": id,
            "name": name,
            "description": description,
            "metadata": metadata,
            "parts": [part.to_wire() for part in to_parts(parts)],
            "last_chunk": True,
        }
        artifact = {key: value for key, value in artifact.items() if value is not None}
        await self._lease.report(lambda _: {"artifacts": [artifact]})

    def open_artifact(
        self,
        id: str = "result",  # noqa: A002 - the name of the field
        *,
        name: str | None = None,
        description: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> ArtifactWriter:
        """Return an output that the sender sees growing."""
        return ArtifactWriter(
            self._lease, id, name=name, description=description, metadata=metadata
        )

    async def ask(self, question: PartLike | Message) -> Message:
        """Ask the sender, and return the reply.

        The first time, it reports the question and ends this run of the handler. When the sender
        has replied, the handler is called again from its start with the same `message`, maybe in
        another process, and the same call returns the reply. So do what has side effects after the
        questions, or make it idempotent. Several questions are told apart by their order.
        """
        self._questions += 1
        question_id = _question_id(self.id, self._questions)
        if (reply := self._reply_to(question_id)) is not None:
            return reply
        message = question if isinstance(question, Message) else Message(to_parts(question))
        wire = {**message.to_wire(), "role": "agent", "messageId": question_id}
        await self._finish(TaskState.INPUT_REQUIRED, wire)
        raise Suspend

    def _reply_to(self, question_id: str) -> Message | None:
        messages = iter(self.history)
        if not any(message.id == question_id for message in messages):
            return None
        return next((message for message in messages if message.role == "user"), None)

    async def complete(
        self, *parts: PartLike, message: PartLike | Iterable[PartLike] | None = None
    ) -> None:
        """Complete the task.

        Args:
            parts: The last artifact of the task, if any.
            message: What the agent says about the result, if anything.
        """
        said = to_parts(message)
        await self._lease.report(lambda _: _completed(parts, said), ends=True)

    async def reply(self, *parts: PartLike) -> None:
        """Complete the task with a message as the whole result."""
        report = {"status": "completed", "message": _message(parts), "reply": True}
        await self._lease.report(lambda _: dict(report), ends=True)

    async def fail(self, reason: str = "") -> None:
        """End the task as failed."""
        await self._finish(TaskState.FAILED, _said(reason))

    async def reject(self, reason: str = "") -> None:
        """End the task as rejected: the agent does not do such tasks."""
        await self._finish(TaskState.REJECTED, _said(reason))

    async def require_input(self, *question: PartLike) -> None:
        """Ask the sender and end this run of the handler; return after it.

        The handler is called again when the sender has replied, with the whole conversation in
        `history`. `ask` does the same and finds the reply.
        """
        await self._finish(TaskState.INPUT_REQUIRED, _message(question))

    async def require_auth(self, *what: PartLike) -> None:
        """Tell the sender which authorization the agent needs; return after it.

        The handler is called again when the sender has sent a message.
        """
        await self._finish(TaskState.AUTH_REQUIRED, _message(what))

    async def _finish(self, state: TaskState, message: dict[str, Any] | None) -> None:
        def make(_: bool) -> Report:
            report: Report = {"status": state.value}
            if message is not None:
                report["message"] = message
            return report

        await self._lease.report(make, ends=True)

    async def messages(self) -> AsyncIterator[Message]:
        """Iterate over further messages of the sender while the task goes on."""
        while (message := await self.next_message()) is not None:
            yield message

    async def next_message(self) -> Message | None:
        """Wait for a further message of the sender. None means that the task is over."""
        turns = self._lease.turns
        message = await turns.get()
        if message is None:
            turns.put_nowait(None)  # for the next caller
        return message

    async def friction(
        self,
        fingerprint: str,
        *,
        title: str,
        problem: str,
        suggested_fix: str | None = None,
        evidence: str | None = None,
        category: t.Category = "process",
        priority: t.Priority | None = None,
        occurrence: str | None = None,
    ) -> t.FrictionOutcome:
        """Report something that got in the agent's way.

        Call it each time with the same fingerprint. Each task counts once. The report that reaches
        the org's threshold, by default that of the third task, files a proposal with the collected
        evidence. The key also needs the scope svc:tasks:write.

        Args:
            fingerprint: Identifies the friction, such as "registry:timeout".
            title: Title of the proposal.
            problem: What is wrong.
            suggested_fix: What to do about it.
            evidence: What was seen this time, up to 4 KiB.
            category: Category of the proposal.
            priority: Priority of the proposal.
            occurrence: Identifies this time, which then counts once; by default the task, so that
                a second attempt does not count again.
        """
        return await self._client.friction.report(
            fingerprint=fingerprint,
            title=title,
            problem=problem,
            suggested_fix=suggested_fix,
            evidence=evidence,
            category=category,
            priority=priority,
            occurrence=occurrence or self.id,
        )

    def submit_friction(self, **report: Any) -> Future[t.FrictionOutcome]:
        """Report friction from any thread. The worker waits for it before the task is over.

        It is for `report_friction`.
        """
        sent = asyncio.run_coroutine_threadsafe(self.friction(**report), self._loop)
        self._friction_reports.append(sent)
        return sent

    async def wait_for_friction(self) -> None:
        """Wait until everything that `submit_friction` got is reported. The worker calls it."""
        reports = map(asyncio.wrap_future, self._friction_reports)
        await asyncio.gather(*reports, return_exceptions=True)


def _completed(parts: Sequence[PartLike], said: Sequence[Part]) -> Report:
    report: Report = {"status": TaskState.COMPLETED.value}
    if said:
        report["message"] = _message(said)
    if parts:
        wire = [part.to_wire() for part in to_parts(parts)]
        report["artifacts"] = [{"parts": wire, "last_chunk": True}]
    return report


def _message(parts: Sequence[PartLike]) -> dict[str, Any]:
    return {"parts": [part.to_wire() for part in to_parts(parts)]}


def _said(text: str) -> dict[str, Any] | None:
    return {"parts": [TextPart(text).to_wire()]} if text else None


class SyncTask(_TaskFields):
    """A task of the agent, for a plain function, which runs in a thread of its own.

    When the task was canceled, the lease was lost, or the worker is stopping, `interrupted` becomes
    true, and `check`, `sleep` and the reports raise `InterruptedTaskError`.
    """

    def __init__(self, task: Task, claimed: ClaimedTask, client: BlockingClient) -> None:
        super().__init__(claimed, task._lease)
        self._task = task
        self._client = client
        self._interruption = threading.Event()

    def _run(self, operation: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(operation, self._task._loop).result()

    @property
    def client(self) -> Client:
        """A client of the worker's server, to call other agents or to submit proposals."""
        return self._client.get()

    def agent(self, id: str) -> AgentClient:  # noqa: A002 - the name of the field
        """Return a client for another agent; see `Task.agent`."""
        return self.client.agent(id, parent=self.id)

    def call(
        self,
        agent: str,
        message: Message | PartLike | Iterable[PartLike],
        *,
        id: str | None = None,  # noqa: A002 - the name of the field
        context_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        policy: TaskPolicy | None = None,
        wait: float = 60,
    ) -> SentTask:
        """Send a task to another agent as part of this one, and return it; see `Task.call`."""
        return self.agent(agent).send(
            message, id=id, context_id=context_id, metadata=metadata, policy=policy, wait=wait
        )

    def wake(self) -> None:
        """Wake a `sleep`. The worker calls it."""
        self._interruption.set()

    def sleep(self, seconds: float) -> None:
        """Wait, and raise `InterruptedTaskError` as soon as the handler is interrupted."""
        self._interruption.wait(seconds)
        self.check()

    def progress(self, *parts: PartLike) -> None:
        """Report progress to the sender, as a message of the agent."""
        self._run(self._task.progress(*parts))

    def send_artifact(
        self,
        *parts: PartLike,
        id: str | None = None,  # noqa: A002 - the name of the field
        name: str | None = None,
        description: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Deliver a whole output. It replaces an earlier one with the same id."""
        self._run(
            self._task.send_artifact(
                *parts, id=id, name=name, description=description, metadata=metadata
            )
        )

    def open_artifact(
        self,
        id: str = "result",  # noqa: A002 - the name of the field
        *,
        name: str | None = None,
        description: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> SyncArtifactWriter:
        """Return an output that the sender sees growing."""
        writer = self._task.open_artifact(id, name=name, description=description, metadata=metadata)
        return SyncArtifactWriter(writer, self._run)

    def ask(self, question: PartLike | Message) -> Message:
        """Ask the sender, and return the reply; see `Task.ask`."""
        return self._run(self._task.ask(question))

    def complete(
        self, *parts: PartLike, message: PartLike | Iterable[PartLike] | None = None
    ) -> None:
        """Complete the task; see `Task.complete`."""
        self._run(self._task.complete(*parts, message=message))

    def reply(self, *parts: PartLike) -> None:
        """Complete the task with a message as the whole result."""
        self._run(self._task.reply(*parts))

    def fail(self, reason: str = "") -> None:
        """End the task as failed."""
        self._run(self._task.fail(reason))

    def reject(self, reason: str = "") -> None:
        """End the task as rejected: the agent does not do such tasks."""
        self._run(self._task.reject(reason))

    def require_input(self, *question: PartLike) -> None:
        """Ask the sender and end this run of the handler; see `Task.require_input`."""
        self._run(self._task.require_input(*question))

    def require_auth(self, *what: PartLike) -> None:
        """Tell the sender which authorization the agent needs; see `Task.require_auth`."""
        self._run(self._task.require_auth(*what))

    def messages(self) -> Iterator[Message]:
        """Iterate over further messages of the sender while the task goes on."""
        while (message := self.next_message()) is not None:
            yield message

    def next_message(self) -> Message | None:
        """Wait for a further message of the sender. None means that the task is over."""
        return self._run(self._task.next_message())

    def friction(
        self,
        fingerprint: str,
        *,
        title: str,
        problem: str,
        suggested_fix: str | None = None,
        evidence: str | None = None,
        category: t.Category = "process",
        priority: t.Priority | None = None,
        occurrence: str | None = None,
    ) -> t.FrictionOutcome:
        """Report something that got in the agent's way; see `Task.friction`."""
        return self._run(
            self._task.friction(
                fingerprint,
                title=title,
                problem=problem,
                suggested_fix=suggested_fix,
                evidence=evidence,
                category=category,
                priority=priority,
                occurrence=occurrence,
            )
        )
