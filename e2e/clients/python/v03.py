"""Tests a server with the Python SDK 0.3, over its bindings of version 0.3.

Over JSON-RPC only the SDK's AuthInterceptor gets the key. Over HTTP+JSON and gRPC this version of
the SDK does not call interceptors (its source has a TODO), so the HTTP client and the channel
send the key.
"""
import asyncio
import uuid
from contextlib import aclosing

import grpc
import httpx
from a2a import types
from a2a.client import A2ACardResolver, ClientCallContext, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, CredentialService, InMemoryContextCredentialStore
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError

import lib
from lib import AGENT, BASE, KEY, NONE, ONLY, Answer, Event, equal, failure, step, text


class Key(CredentialService):
    def __init__(self, key):
        self.key = key

    async def get_credentials(self, security_scheme_name, context):
        return self.key


def channel(key):
    """Return a factory of channels that send the key with every call."""
    def authorized(call):
        return call._replace(metadata=[*(call.metadata or []), ("authorization", f"Bearer {key}")])

    class Unary(grpc.aio.UnaryUnaryClientInterceptor):
        async def intercept_unary_unary(self, continuation, call, request):
            return await continuation(authorized(call), request)

    class Stream(grpc.aio.UnaryStreamClientInterceptor):
        async def intercept_unary_stream(self, continuation, call, request):
            return await continuation(authorized(call), request)

    return lambda url: grpc.aio.insecure_channel(url, interceptors=[Unary(), Stream()] if key else [])


async def connect(binding, key, streaming=True, credentials=None, push=None):
    """Create a client from the agent's card, which must offer the binding."""
    interceptors, headers = [], {}
    if binding == "JSONRPC":
        interceptors = [AuthInterceptor(credentials or Key(key))]
    elif binding == "HTTP+JSON" and key:
        headers = {"Authorization": f"Bearer {key}"}
    http = httpx.AsyncClient(timeout=60, headers=headers)
    config = ClientConfig(streaming=streaming, httpx_client=http, supported_transports=[binding], grpc_channel_factory=channel(key),
                          push_notification_configs=[push] if push else [])
    card = await A2ACardResolver(http, AGENT).get_agent_card()
    if binding == "GRPC":  # cards of 0.3 do not offer it, since only a key for one agent can use it
        card.additional_interfaces.append(types.AgentInterface(transport="GRPC", url=BASE.removeprefix("http://")))
    return ClientFactory(config).create(card, interceptors=interceptors)


def to_part(p):
    more = {"metadata": p.get("metadata")}
    if "text" in p:
        return types.Part(types.TextPart(text=p["text"], **more))
    if "data" in p:
        return types.Part(types.DataPart(data=p["data"], **more))
    file = {"name": p["name"], "mime_type": p["type"]}
    file = types.FileWithBytes(bytes=p["raw"], **file) if "raw" in p else types.FileWithUri(uri=p["url"], **file)
    return types.Part(types.FilePart(file=file, **more))


def from_part(part):
    p = part.root
    more = {"metadata": p.metadata} if p.metadata else {}
    if isinstance(p, types.TextPart):
        return {"text": p.text, **more}
    if isinstance(p, types.DataPart):
        return {"data": p.data, **more}
    content = {"raw": p.file.bytes} if isinstance(p.file, types.FileWithBytes) else {"url": p.file.uri}
    return {**content, "name": p.file.name, "type": p.file.mime_type, **more}


def from_parts(parts):
    return [from_part(p) for p in parts]


def say(status):
    return lib.text_of(from_parts(status.message.parts)) if status.message else ""


def answer(a):
    if isinstance(a, types.Message):
        return Answer("message", from_parts(a.parts), context_id=a.context_id or "")
    artifacts = a.artifacts or []
    return Answer(
        a.kind, [from_part(p) for x in artifacts for p in x.parts], a.id, a.context_id, a.status.state.value, say(a.status),
        artifacts[0].name or "" if artifacts else "", [(from_parts(m.parts), m.metadata) for m in a.history or []], a.metadata or {},
    )


def event(e):
    if isinstance(e, types.Message):
        return Event(e.task_id or "", e.context_id or "", task=answer(e))
    task, update = e
    if update is None:
        return Event(task.id, task.context_id, task=answer(task))
    about = update.task_id, update.context_id
    if isinstance(update, types.TaskStatusUpdateEvent):
        return Event(*about, state=update.status.state.value, say=say(update.status))
    return Event(*about, parts=from_parts(update.artifact.parts), append=bool(update.append), last=bool(update.last_chunk))


def to_push(config):
    p = {k: v for k, v in config.items() if k not in ("scheme", "credentials")}
    if "scheme" in config:
        p["authentication"] = types.PushNotificationAuthenticationInfo(schemes=[config["scheme"]], credentials=config["credentials"])
    return types.PushNotificationConfig(**p)


def from_push(config):
    p = config.push_notification_config
    got = {"id": p.id, "url": p.url, "token": p.token}
    if p.authentication:
        got |= {"scheme": p.authentication.schemes[0], "credentials": p.authentication.credentials}
    return got


class Adapter:
    has_list = False  # nor calls to list and delete push configurations
    zero_is_all = False

    def __init__(self, client, streaming, with_push=None):
        self.client, self.streaming, self.with_push = client, streaming, with_push

    @staticmethod
    def request(client, parts, task_id=None, context_id=None, wait=True, metadata=None, message_metadata=None):
        message = types.Message(message_id=str(uuid.uuid4()), role=types.Role.user, task_id=task_id, context_id=context_id,
                                parts=[to_part(p) for p in parts], metadata=message_metadata)
        configuration = types.MessageSendConfiguration(blocking=wait)
        return client.send_message(message, configuration=configuration, request_metadata=metadata)

    async def send(self, parts, push=None, **options):
        client = await self.with_push(to_push(push)) if push else self.client
        async for e in self.request(client, parts, **options):
            return answer(e if isinstance(e, types.Message) else e[0])

    async def stream(self, parts, **options):
        async with aclosing(self.request(self.streaming, parts, **options)) as events:
            async for e in events:
                yield event(e)

    async def resubscribe(self, task_id):
        async for e in self.streaming.resubscribe(types.TaskIdParams(id=task_id)):
            yield event(e)

    async def get(self, task_id, history_length=None):
        return answer(await self.client.get_task(types.TaskQueryParams(id=task_id, history_length=history_length)))

    async def cancel(self, task_id):
        return answer(await self.client.cancel_task(types.TaskIdParams(id=task_id)))

    async def set_push(self, task_id, config):
        return from_push(await self.client.set_task_callback(
            types.TaskPushNotificationConfig(task_id=task_id, push_notification_config=to_push(config))))

    async def get_push(self, task_id, config_id):
        return from_push(await self.client.get_task_callback(
            types.GetTaskPushNotificationConfigParams(id=task_id, push_notification_config_id=config_id)))

    async def extended_card(self):
        card = await self.client.get_card()
        return card.name, card.provider.organization

    def pushed(self, body):
        task = types.Task.model_validate(body)
        return task.id, task.status.state.value


CODES = {-32001: "TaskNotFoundError", -32002: "TaskNotCancelableError", -32004: "UnsupportedOperationError", -32602: "InvalidParamsError"}
STATUSES = {"TaskNotFoundError": 404, "TaskNotCancelableError": 400, "UnsupportedOperationError": 400, "InvalidParamsError": 400}


GRPC = {
    "TaskNotFoundError": grpc.StatusCode.NOT_FOUND, "TaskNotCancelableError": grpc.StatusCode.FAILED_PRECONDITION,
    "UnsupportedOperationError": grpc.StatusCode.FAILED_PRECONDITION, "InvalidParamsError": grpc.StatusCode.INVALID_ARGUMENT,
}


def kind(error, want):
    """Name of an error, from its code over JSON-RPC and from its status otherwise."""
    if isinstance(error, A2AClientJSONRPCError):
        return CODES.get(error.error.code)
    if isinstance(error, A2AClientHTTPError) and error.status_code == STATUSES[want]:
        return want
    if isinstance(error, A2AClientHTTPError) and "Invalid SSE response" in error.message:
        return want  # over HTTP+JSON the SDK ignores the status of a resubscription
    if isinstance(error, grpc.aio.AioRpcError) and error.code() == GRPC[want]:
        return want
    return type(error).__name__


async def check_binding(binding):
    name = f"0.3 {binding}"
    key = ONLY if binding == "GRPC" else KEY
    c = Adapter(await connect(binding, key, streaming=False), await connect(binding, key),
                lambda push: connect(binding, key, streaming=False, push=push))
    c.zero_is_all = binding == "GRPC"  # an unset history length is 0
    await lib.check_calls(name, c)
    await lib.check_mistakes(name, c, kind)

    async def session_store():
        store = InMemoryContextCredentialStore()
        await store.set_credentials("a-session", "bearer", KEY)
        client = await connect(binding, "", streaming=False, credentials=store)
        context = ClientCallContext(state={"sessionId": "a-session"})
        equal((await client.get_task(types.TaskQueryParams(id=done.id), context=context)).status.state.value, "completed")

    if binding == "JSONRPC":
        done = await c.send(text("kinds"))
        await step(f"{name}: the key in the SDK's own store is sent for the scheme 'bearer'", session_store)

    for what, key, http in [("no key", "", 401), ("a key that may not call", NONE, 403)]:
        async def refused(key=key, http=http):
            stranger = await connect(binding, key, streaming=False)
            error = await failure(Adapter(stranger, stranger).send(text("kinds")))
            if binding == "GRPC":
                equal(error.code(), grpc.StatusCode.UNAUTHENTICATED if http == 401 else grpc.StatusCode.PERMISSION_DENIED)
            else:
                equal(getattr(error, "status_code", repr(error)), http)

        await step(f"{name}: {what} is {http}", refused)

    async def restricted():
        own = await connect(binding, ONLY, streaming=False)
        equal((await Adapter(own, own).send(text("kinds"))).state, "completed")

    await step(f"{name}: a key for one agent calls it", restricted)


async def run():
    await asyncio.gather(*(check_binding(b) for b in ("JSONRPC", "HTTP+JSON", "GRPC")))


lib.main(run)
