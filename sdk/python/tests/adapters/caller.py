"""An official A2A client, with the same interface for both versions of the A2A SDK."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from a2a import types
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, CredentialService
from google.protobuf import json_format

from parley import Artifact, Message, Part, SentTask, TaskState, TaskStatus
from parley.adapters._adapter import TaskHandler

V1 = hasattr(types.Message, "DESCRIPTOR")

Serve = Callable[[TaskHandler], AbstractAsyncContextManager[None]]


@dataclass
class Event:
    """One event of a stream, of one kind."""

    task: SentTask | None = None
    message: Message | None = None
    status: TaskStatus | None = None
    artifact: Artifact | None = None
    append: bool = False
    last: bool = False
    task_id: str = ""
    context_id: str = ""


@dataclass
class Stream:
    """What a client saw of a task."""

    events: list[Event] = field(default_factory=list)

    @property
    def task_id(self) -> str:
        return self.events[0].task_id

    @property
    def context_id(self) -> str:
        return self.events[0].context_id

    @property
    def states(self) -> list[TaskState]:
        """The states, without repetitions."""
        states = [e.status.state for e in self.events if e.status]
        return [s for i, s in enumerate(states) if i == 0 or states[i - 1] != s]

    @property
    def says(self) -> list[str]:
        """The texts of the messages of the agent about its status."""
        return [e.status.message.text for e in self.events if e.status and e.status.message]

    @property
    def chunks(self) -> list[Event]:
        return [e for e in self.events if e.artifact]

    @property
    def artifacts(self) -> dict[str, list[Part]]:
        """The artifacts as a client assembles them."""
        artifacts: dict[str, list[Part]] = {}
        for e in self.chunks:
            assert e.artifact
            before = artifacts.get(e.artifact.id, []) if e.append else []
            artifacts[e.artifact.id] = before + list(e.artifact.parts)
        return artifacts

    def text(self, artifact: str) -> str:
        return "".join(getattr(part, "text", "") for part in self.artifacts[artifact])


class Caller:
    def __init__(self, client: Any) -> None:
        self._client = client

    async def send(self, text: str, *, task_id: str = "", context_id: str = "") -> Stream:
        """Send a message and follow the task until it ends or asks."""
        parts = [{"text": text}]
        return Stream([e async for e in self.stream(parts, task_id=task_id, context_id=context_id)])

    async def stream(
        self, parts: Sequence[dict[str, Any]], *, task_id: str = "", context_id: str = ""
    ) -> AsyncIterator[Event]:
        wire: dict[str, Any] = {"messageId": str(uuid.uuid4()), "parts": list(parts)}
        wire |= {"taskId": task_id} if task_id else {}
        wire |= {"contextId": context_id} if context_id else {}
        request: Any
        if V1:
            wire["role"] = "ROLE_USER"
            request = json_format.ParseDict({"message": wire}, types.SendMessageRequest())
        else:
            wire["role"] = "user"
            wire["parts"] = [{"kind": next(iter(part)), **part} for part in parts]
            request = types.Message.model_validate(wire)
        async with aclosing(self._client.send_message(request)) as events:
            async for event in events:
                yield _read_v1(event) if V1 else _read_v03(event)

    async def send_and_cancel(self, text: str, started: asyncio.Event) -> Stream:
        """Send a message, and cancel the task when the agent has started with it."""
        stream = Stream()
        async for event in self.stream([{"text": text}]):
            if not stream.events:
                await started.wait()
                await self.cancel(event.task_id)
            stream.events.append(event)
        return stream

    async def cancel(self, task_id: str) -> TaskState:
        if V1:
            task = await self._client.cancel_task(types.CancelTaskRequest(id=task_id))
        else:
            task = await self._client.cancel_task(types.TaskIdParams(id=task_id))
        return SentTask.from_wire(_wire(task)).state


def _wire(value: Any) -> dict[str, Any]:
    if V1:
        return json_format.MessageToDict(value)
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def _read_v1(response: Any) -> Event:
    kind, wire = next(iter(_wire(response).items()))
    return _read(kind, wire)


def _read_v03(response: Any) -> Event:
    if isinstance(response, types.Message):
        return _read("message", _wire(response))
    task, update = response
    if update is None:
        return _read("task", _wire(task))
    kind = "statusUpdate" if isinstance(update, types.TaskStatusUpdateEvent) else "artifactUpdate"
    return _read(kind, _wire(update))


def _read(kind: str, wire: dict[str, Any]) -> Event:
    ids = {"task_id": wire.get("taskId", ""), "context_id": wire.get("contextId", "")}
    if kind == "task":
        return Event(task=SentTask.from_wire(wire), **(ids | {"task_id": wire["id"]}))
    if kind == "message":
        return Event(message=Message.from_wire(wire), **ids)
    if kind == "statusUpdate":
        return Event(status=TaskStatus.from_wire(wire["status"]), **ids)
    return Event(
        artifact=Artifact.from_wire(wire["artifact"]),
        append=wire.get("append", False),
        last=wire.get("lastChunk", False),
        **ids,
    )


class _Key(CredentialService):
    def __init__(self, key: str) -> None:
        self._key = key

    async def get_credentials(self, security_scheme_name: str, context: Any) -> str:
        return self._key


@asynccontextmanager
async def connect(url: str, key: str) -> AsyncIterator[Caller]:
    """Connect as the card of an agent says."""
    async with httpx.AsyncClient(timeout=60) as http:
        factory = ClientFactory(ClientConfig(streaming=True, httpx_client=http))
        authorization = {"headers": {"Authorization": f"Bearer {key}"}}  # the agent is private
        card = await A2ACardResolver(http, url).get_agent_card(http_kwargs=authorization)
        yield Caller(factory.create(card, interceptors=[AuthInterceptor(_Key(key))]))
