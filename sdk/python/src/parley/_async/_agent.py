"""Calls of one agent by A2A."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, cast

from .. import types as t
from .._events import TaskEvent
from .._request import Request, join, without_none
from ..content import Message, PartLike, SentTask, TaskPolicy, TaskState, to_message
from ._streams import task_events
from ._transport import AsyncTransport

_MAX_WAIT = 60


def _with_policy(
    metadata: Mapping[str, Any] | None, policy: TaskPolicy | None
) -> Mapping[str, Any] | None:
    if policy is None:
        return metadata
    return {**(metadata or {}), "parley.dev/policy": policy}


class AsyncAgentClient:
    """Calls one agent.

    The client chooses the id of a task, so that a repeated send makes no second task.
    """

    def __init__(self, transport: AsyncTransport, id: str, parent: str = "") -> None:  # noqa: A002
        self.id = id
        self._transport = transport
        self._parent = parent

    def _rpc(self, method: str, params: Any, *, repeatable: bool, v1: bool = True) -> Request:
        headers = {"A2A-Version": "1.0"} if v1 else {}
        if self._parent:
            headers["Parley-Parent-Task"] = self._parent
        return Request(
            "POST",
            join("a2a", self.id),
            in_org=False,
            rpc=method,
            body=params,
            headers=headers,
            repeatable=repeatable,
        )

    async def call(self, method: str, params: Any, *, repeatable: bool = False) -> Any:
        """Call any JSON-RPC method of the agent and return the result.

        Args:
            method: Name of the method, such as GetTask.
            params: Its parameters.
            repeatable: A second time does the same as the first, so that it may be repeated.
        """
        return await self._transport.call(self._rpc(method, params, repeatable=repeatable))

    async def send(
        self,
        message: Message | PartLike | Iterable[PartLike],
        *,
        id: str | None = None,  # noqa: A002 - the name of the field
        context_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        policy: TaskPolicy | None = None,
        history_length: int | None = None,
        wait: float = 0,
    ) -> SentTask:
        """Send a task, or a further message on one, and return the task.

        Args:
            message: A text, parts, or a whole message.
            id: The sender's id of the task; by default a new one. That of a live task sends a
                further message.
            context_id: Groups tasks.
            metadata: A JSON object for the agent.
            policy: The deadline of a new task, and when it is tried again; by default that of the
                agent.
            history_length: How many messages of the history the response has; by default none.
            wait: How many seconds to wait for the task to rest, up to 60.
        """
        metadata = _with_policy(metadata, policy)
        request = self._send("tasks/send", message, id, context_id, metadata, history_length)
        if wait > 0:
            request.waits = max(1, min(int(wait), _MAX_WAIT))
            request.headers["Prefer"] = f"wait={int(request.waits)}"
        return SentTask.from_wire(await self._transport.call(request))

    async def stream(
        self,
        message: Message | PartLike | Iterable[PartLike],
        *,
        id: str | None = None,  # noqa: A002 - the name of the field
        context_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        policy: TaskPolicy | None = None,
    ) -> AsyncIterator[TaskEvent]:
        """Send a task, or a further message on one, and iterate over its events until it rests.

        A task rests when it is over or waits for its sender. The stream survives broken connections
        and restarts of the server: each event comes once and in order. After eight connections in a
        row without an event it raises the error of the last one; `subscribe` continues later.
        """
        metadata = _with_policy(metadata, policy)
        first = self._send("tasks/sendSubscribe", message, id, context_id, metadata, None)
        task_id = first.body["id"]
        async for event in task_events(self._transport, first, lambda _: self._resume(task_id)):
            yield event

    async def subscribe(self, id: str, *, after: str = "") -> AsyncIterator[TaskEvent]:  # noqa: A002
        """Iterate over the events of a task that the caller sent, until it rests; see `stream`.

        Args:
            id: The sender's id of the task.
            after: Id of the last known event; by default the stream begins with the first event.
        """
        first = self._resume(id)
        async for event in task_events(self._transport, first, lambda _: self._resume(id), after):
            yield event

    def _resume(self, task_id: str) -> Request:
        return self._rpc("tasks/resubscribe", {"id": task_id}, repeatable=True, v1=False)

    def _send(
        self,
        method: str,
        message: Message | PartLike | Iterable[PartLike],
        task_id: str | None,
        context_id: str | None,
        metadata: Mapping[str, Any] | None,
        history_length: int | None,
    ) -> Request:
        params = {
            "id": task_id or f"py-{secrets.token_hex(10)}",
            "message": to_message(message).to_wire(),
        }
        params |= without_none(
            contextId=context_id, metadata=metadata, historyLength=history_length
        )
        return self._rpc(method, params, repeatable=True, v1=False)

    async def message(self, message: Message | PartLike | Iterable[PartLike]) -> str:
        """Send a message that is not a task, and return its id. It cannot be queried later."""
        wire = to_message(message).to_wire()
        wire.pop("messageId", None)  # with an id the result would be a task
        request = self._rpc("message/send", {"message": wire}, repeatable=False, v1=False)
        return str((await self._transport.call(request))["id"])

    async def get(self, id: str, *, history_length: int | None = None) -> SentTask:  # noqa: A002
        """Return a task that the caller sent.

        Args:
            id: The sender's id of the task.
            history_length: How many of the last messages to return; by default all.
        """
        params = {"id": id, **without_none(historyLength=history_length)}
        return SentTask.from_wire(await self.call("GetTask", params, repeatable=True))

    async def cancel(self, id: str) -> SentTask:  # noqa: A002 - the name of the field
        """Cancel a task that the caller sent."""
        return SentTask.from_wire(await self.call("CancelTask", {"id": id}))

    async def rerun(self, id: str, *, idempotency_key: str | None = None) -> t.OrgTask:  # noqa: A002
        """Send a task of the caller again that failed, was rejected or canceled.

        The new task has its own id, and names the old one in its metadata.

        Args:
            id: The sender's id of the task.
            idempotency_key: The same key makes one task; by default a new one for each call.
        """
        path = join("api", "v1", "agents", self.id, "tasks", id, "rerun")
        request = Request("POST", path, in_org=False, keyed=True)
        request.idempotency_key = idempotency_key
        return cast("t.OrgTask", await self._transport.call(request))

    async def tasks(
        self,
        *,
        context_id: str | None = None,
        state: TaskState | None = None,
        updated_after: t.Timestamp | None = None,
        history_length: int | None = None,
        include_artifacts: bool = False,
    ) -> AsyncIterator[SentTask]:
        """Iterate over the tasks that the caller sent to the agent, the latest change first."""
        params = without_none(
            contextId=context_id,
            status=state.v1 if state else None,
            statusTimestampAfter=updated_after,
            historyLength=history_length,
        )
        params |= {"includeArtifacts": include_artifacts, "pageSize": 100}
        while True:
            page = await self.call("ListTasks", params, repeatable=True)
            for task in page.get("tasks") or ():
                yield SentTask.from_wire(task)
            if not page.get("nextPageToken"):
                return
            params["pageToken"] = page["nextPageToken"]

    async def card(self) -> t.AgentCard:
        """Return the agent's card in the form of A2A 1.0."""
        request = Request("GET", join("a2a", self.id), in_org=False)
        request.headers["A2A-Version"] = "1.0"
        return cast("t.AgentCard", await self._transport.call(request))
