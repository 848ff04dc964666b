"""Tests a server with the Python SDK 1.x, over each binding of version 1.0.

Only the SDK's AuthInterceptor gets the key, so the card must declare that it is needed and how it
is sent.
"""
import asyncio
import uuid
from contextlib import aclosing

import grpc
import httpx
from a2a.client import ClientCallContext, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, CredentialService, InMemoryContextCredentialStore
from a2a.types import a2a_pb2 as pb
from a2a.utils.signing import create_signature_verifier
from google.protobuf.json_format import MessageToDict, ParseDict
from jwt.api_jwk import PyJWK

import lib
from lib import AGENT, BASE, KEY, NONE, ONLY, Answer, Event, equal, failure, step, text


class Key(CredentialService):
    def __init__(self, key):
        self.key = key

    async def get_credentials(self, security_scheme_name, context):
        return self.key


async def connect(binding, credentials, address=AGENT, streaming=True, **options):
    """Create a client from the card at a URL, which must offer the binding."""
    config = ClientConfig(
        streaming=streaming,
        httpx_client=httpx.AsyncClient(timeout=60),
        grpc_channel_factory=grpc.aio.insecure_channel,
        supported_protocol_bindings=[binding],
    )
    interceptors = [AuthInterceptor(credentials)] if credentials else None
    return await ClientFactory(config).create_from_url(address, interceptors=interceptors, **options)


def to_part(p):
    part = pb.Part(filename=p.get("name", ""), media_type=p.get("type", ""))
    ParseDict({k: p[k] for k in ("text", "data", "raw", "url", "metadata") if k in p}, part)
    return part


def from_part(part):
    names = {"filename": "name", "mediaType": "type"}
    return {names.get(k, k): v for k, v in MessageToDict(part).items()}


def from_parts(parts):
    return [from_part(p) for p in parts]


def state(s):
    return pb.TaskState.Name(s).removeprefix("TASK_STATE_").lower().replace("_", "-")


def say(status):
    return lib.text_of(from_parts(status.message.parts))


def answer(a):
    if isinstance(a, pb.Message):
        return Answer("message", from_parts(a.parts), context_id=a.context_id)
    return Answer(
        "task", [from_part(p) for x in a.artifacts for p in x.parts], a.id, a.context_id, state(a.status.state), say(a.status),
        a.artifacts[0].name if a.artifacts else "", [(from_parts(m.parts), MessageToDict(m.metadata)) for m in a.history],
        MessageToDict(a.metadata),
    )


def event(e):
    which = e.WhichOneof("payload")
    value = getattr(e, which)
    if which == "task":
        return Event(value.id, value.context_id, task=answer(value))
    if which == "message":
        return Event(value.task_id, value.context_id, task=answer(value))
    if which == "status_update":
        return Event(value.task_id, value.context_id, state=state(value.status.state), say=say(value.status))
    return Event(value.task_id, value.context_id, parts=from_parts(value.artifact.parts), append=value.append, last=value.last_chunk)


def request(parts, task_id="", context_id="", wait=True, push=None, metadata=None, message_metadata=None):
    message = pb.Message(message_id=str(uuid.uuid4()), role=pb.ROLE_USER, task_id=task_id, context_id=context_id,
                         parts=[to_part(p) for p in parts], metadata=message_metadata)
    configuration = pb.SendMessageConfiguration(return_immediately=not wait)
    if push:
        configuration.task_push_notification_config.CopyFrom(pb.TaskPushNotificationConfig(**push))
    return pb.SendMessageRequest(message=message, configuration=configuration, metadata=metadata)


def from_push(p):
    got = {"id": p.id, "url": p.url}
    if p.token:
        got["token"] = p.token
    if p.HasField("authentication"):
        got |= {"scheme": p.authentication.scheme, "credentials": p.authentication.credentials}
    return got


class Adapter:
    has_list = True
    zero_is_all = False

    def __init__(self, client, streaming):
        self.client, self.streaming = client, streaming

    async def send(self, parts, **options):
        async for e in self.client.send_message(request(parts, **options)):
            return answer(getattr(e, e.WhichOneof("payload")))

    async def stream(self, parts, **options):
        async with aclosing(self.streaming.send_message(request(parts, **options))) as events:
            async for e in events:
                yield event(e)

    async def resubscribe(self, task_id):
        async for e in self.streaming.subscribe(pb.SubscribeToTaskRequest(id=task_id)):
            yield event(e)

    async def get(self, task_id, history_length=None):
        return answer(await self.client.get_task(pb.GetTaskRequest(id=task_id, history_length=history_length)))

    async def cancel(self, task_id):
        return answer(await self.client.cancel_task(pb.CancelTaskRequest(id=task_id)))

    async def list(self, context_id, page_size, page_token):
        page = await self.client.list_tasks(
            pb.ListTasksRequest(context_id=context_id, page_size=page_size, page_token=page_token))
        return [answer(t) for t in page.tasks], page.next_page_token, page.total_size

    async def set_push(self, task_id, config):
        p = {k: v for k, v in config.items() if k not in ("scheme", "credentials")}
        if "scheme" in config:
            p["authentication"] = pb.AuthenticationInfo(scheme=config["scheme"], credentials=config["credentials"])
        return from_push(await self.client.create_task_push_notification_config(pb.TaskPushNotificationConfig(task_id=task_id, **p)))

    async def get_push(self, task_id, config_id):
        return from_push(await self.client.get_task_push_notification_config(
            pb.GetTaskPushNotificationConfigRequest(task_id=task_id, id=config_id)))

    async def list_push(self, task_id):
        page = await self.client.list_task_push_notification_configs(pb.ListTaskPushNotificationConfigsRequest(task_id=task_id))
        return [from_push(p) for p in page.configs]

    async def delete_push(self, task_id, config_id):
        await self.client.delete_task_push_notification_config(
            pb.DeleteTaskPushNotificationConfigRequest(task_id=task_id, id=config_id))

    async def extended_card(self):
        card = await self.client.get_extended_agent_card(pb.GetExtendedAgentCardRequest())
        return card.name, card.provider.organization

    def pushed(self, body):
        e = event(ParseDict(body, pb.StreamResponse()))
        return e.id, e.state


def published_key(kid, jku):
    """Return the key of the server with the id."""
    keys = {k["kid"]: k for k in lib.get_json(f"{BASE}/.well-known/jwks.json")["keys"]}
    return PyJWK.from_dict(keys[kid])


async def check_binding(binding):
    name = f"1.0 {binding}"
    c = Adapter(await connect(binding, Key(KEY), streaming=False), await connect(binding, Key(KEY)))
    await lib.check_calls(name, c)
    await lib.check_mistakes(name, c, lambda error, _: type(error).__name__)

    async def session_store():
        store = InMemoryContextCredentialStore()
        await store.set_credentials("a-session", "bearer", KEY)
        client = await connect(binding, store, streaming=False)
        events = client.send_message(request(text("kinds")), context=ClientCallContext(state={"sessionId": "a-session"}))
        equal([state(e.task.status.state) async for e in events], ["completed"])

    await step(f"{name}: the key in the SDK's own store is sent for the scheme 'bearer'", session_store)

    async def version():
        client = await connect(binding, Key(KEY))
        context = ClientCallContext(service_parameters={"A2A-Version": "9.9"})
        error = await failure(client.get_task(pb.GetTaskRequest(id="x"), context=context))
        equal(type(error).__name__, "VersionNotSupportedError")

    if binding != "GRPC":  # over gRPC the SDK also sends its own version
        await step(f"{name}: a version from the future is a VersionNotSupportedError", version)

    for what, credentials, http, status in [
        ("no key", None, 401, "UNAUTHENTICATED"),
        ("a key that may not call", Key(NONE), 403, "PERMISSION_DENIED"),
    ]:
        async def refused(credentials=credentials, http=http, status=status):
            stranger = await connect(binding, credentials, streaming=False)
            error = await failure(Adapter(stranger, stranger).send(text("kinds")))
            assert (status if binding == "GRPC" else str(http)) in str(error), repr(error)

        await step(f"{name}: {what} is {http}", refused)

    async def restricted():
        own = await connect(binding, Key(ONLY), streaming=False)
        equal((await Adapter(own, own).send(text("kinds"))).state, "completed")

    await step(f"{name}: a key for one agent calls it", restricted)

    async def signed():
        verifier = create_signature_verifier(published_key, ["ES256"])
        client = await connect(binding, Key(KEY), signature_verifier=verifier)
        await client.get_extended_agent_card(pb.GetExtendedAgentCardRequest(), signature_verifier=verifier)

    await step(f"{name}: the card and the extended card are signed with the published key", signed)


async def run():
    await asyncio.gather(*(check_binding(b) for b in ("JSONRPC", "HTTP+JSON", "GRPC")))


lib.main(run)
