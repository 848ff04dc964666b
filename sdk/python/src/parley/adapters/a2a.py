"""Runs an `AgentExecutor` of the A2A SDK, of version 0.3 or 1.

    from parley import Worker
    from parley.adapters.a2a import executor_handler

    worker = Worker("scout")
    worker.handler(executor_handler(HelloWorldAgentExecutor()))
    worker.run()

The executor needs no changes, and no server, task store or queue of the A2A SDK: Parley has them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from ..content import Artifact, DataPart, FilePart, Message, Part, TaskState, TaskStatus, TextPart
from ..errors import Interruption
from ..worker import ArtifactWriter, Task
from ._adapter import TaskHandler, needs
from ._conversation import conversation_id
from ._prompt import base64_of, history_of

with needs("a2a"):
    from a2a import types as _types
    from a2a.auth.user import User
    from a2a.server.agent_execution import AgentExecutor, RequestContext
    from a2a.server.context import ServerCallContext
    from a2a.server.events import EventQueue
    from google.protobuf import json_format

types: Any = _types  # protobuf messages in version 1, pydantic models in 0.3
_V1 = hasattr(types.Message, "DESCRIPTOR")

log = logging.getLogger("parley.adapters.a2a")


def executor_handler(executor: AgentExecutor) -> TaskHandler:
    """Return a handler that runs an executor.

    The events of the executor become artifacts, progress, questions and the end of the task.
    `context_id` of its `RequestContext` includes the sender, so that an executor may use it as the
    key of a conversation. When the sender cancels the task, `execute` gets
    `asyncio.CancelledError`, and then `cancel` is called.

    Args:
        executor: The executor. It runs several tasks at a time if the worker does.
    """

    async def handle(task: Task) -> None:
        context, queue = _request_context(task), _TaskQueue(task)
        try:
            await executor.execute(context, queue)
        except asyncio.CancelledError:
            if task.interruption is Interruption.CANCELED:
                await _cancel(executor, context, queue)
            raise

    return handle


async def _cancel(executor: AgentExecutor, context: RequestContext, queue: EventQueue) -> None:
    try:
        await executor.cancel(context, queue)
    except Exception as error:  # many executors cannot cancel, and the task is over anyway
        log.debug("the executor does not cancel task %s: %s", context.task_id, error)


class _TaskQueue(EventQueue):
    """Reports the events of an executor at once, so that it is no faster than the server."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self._task = task
        self._artifacts: dict[str, ArtifactWriter] = {}

    async def enqueue_event(self, event: Any) -> None:
        wire = _to_wire(event)
        if self._task.finished:
            log.debug("task %s is finished; dropped an event: %s", self._task.id, wire)
        elif isinstance(event, types.Message):
            await self._task.reply(*Message.from_wire(wire).parts)
        elif isinstance(event, types.TaskArtifactUpdateEvent):
            await self._report_artifact(wire["artifact"], wire.get("append"), wire.get("lastChunk"))
        else:  # a status, or a whole task
            for artifact in wire.get("artifacts") or ():
                await self._report_artifact(artifact, append=False, last=True)
            await self._report_status(TaskStatus.from_wire(wire["status"]))

    async def _report_artifact(
        self, wire: Mapping[str, Any], append: bool | None, last: bool | None
    ) -> None:
        artifact = Artifact.from_wire(wire)
        if not append or artifact.id not in self._artifacts:
            self._artifacts[artifact.id] = self._task.open_artifact(
                artifact.id,
                name=artifact.name,
                description=artifact.description,
                metadata=dict(artifact.metadata) if artifact.metadata else None,
            )
        await self._artifacts[artifact.id].append(*artifact.parts, last=bool(last))

    async def _report_status(self, status: TaskStatus) -> None:
        parts = status.message.parts if status.message else ()
        text = status.message.text if status.message else ""
        if status.state is TaskState.COMPLETED:
            await self._task.complete(message=parts)
        elif status.state in (TaskState.FAILED, TaskState.CANCELED):  # only the sender may cancel
            await self._task.fail(text or f"the agent ended the task as {status.state}")
        elif status.state is TaskState.REJECTED:
            await self._task.reject(text)
        elif status.state is TaskState.INPUT_REQUIRED:
            await self._task.require_input(*parts)
        elif status.state is TaskState.AUTH_REQUIRED:
            await self._task.require_auth(*parts)
        elif parts:
            await self._task.progress(*parts)


class _Sender(User):
    """The sender of a task, as the A2A SDK describes users."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def is_authenticated(self) -> bool:
        return True

    @property
    def user_name(self) -> str:
        return self._name


def _request_context(task: Task) -> RequestContext:
    context_id = conversation_id(task)
    ids = {"taskId": task.id, "contextId": context_id}
    request = {
        "message": {**_from_message(task.message), **ids},
        "metadata": dict(task.metadata),
        "configuration": {"acceptedOutputModes": list(task.accepted_output_modes)},
    }
    current: Any = None
    history = history_of(task)
    if sum(message.role == "user" for message in history) > 1:  # the sender continues the task
        asked = history[-2].role == "agent"
        state = TaskState.INPUT_REQUIRED if asked else TaskState.WORKING
        current = _parse(
            "Task",
            {
                "id": task.id,
                "contextId": context_id,
                "status": {"state": state.v1 if _V1 else state.value},
                "history": [{**_from_message(message), **ids} for message in history],
            },
        )
    return RequestContext(
        call_context=ServerCallContext(user=_Sender(str(task.sender))),
        request=_parse("SendMessageRequest" if _V1 else "MessageSendParams", request),
        task_id=task.id,
        context_id=context_id,
        task=current,
    )


def _parse(name: str, wire: dict[str, Any]) -> Any:
    """Return an object of the A2A SDK from its JSON."""
    kind = getattr(types, name)
    return json_format.ParseDict(wire, kind()) if _V1 else kind.model_validate(wire)


def _to_wire(value: Any) -> dict[str, Any]:
    """Return the JSON of an object of the A2A SDK."""
    wire: dict[str, Any]
    if _V1:
        wire = json_format.MessageToDict(value)
    else:
        wire = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return wire


def _from_message(message: Message) -> dict[str, Any]:
    wire = message.to_wire()
    wire["messageId"] = message.id or ""
    wire["role"] = f"ROLE_{message.role.upper()}" if _V1 else message.role
    wire["parts"] = [_from_part_v1(p) if _V1 else _from_part_v03(p) for p in message.parts]
    return wire


def _from_part_v1(part: Part) -> dict[str, Any]:
    wire: dict[str, Any]
    if isinstance(part, TextPart):
        wire = {"text": part.text}
    elif isinstance(part, DataPart):
        wire = {"data": part.data}
    else:
        wire = {"filename": part.name or ""}
        wire |= {"url": part.url} if part.content is None else {"raw": base64_of(part.content)}
    return wire | {"mediaType": part.media_type or "", "metadata": dict(part.metadata or {})}


def _from_part_v03(part: Part) -> dict[str, Any]:
    wire = part.to_wire()
    wire["kind"] = wire.pop("type")
    if isinstance(part, FilePart) and part.content is None and part.url is None:
        wire["file"]["bytes"] = ""
    if isinstance(part, DataPart) and not isinstance(part.data, Mapping):
        wire["data"] = {"value": part.data}  # version 0.3 has only objects
    return wire
