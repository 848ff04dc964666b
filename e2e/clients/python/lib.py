"""Shared code of the scripts: their settings, a receiver of pushes, and the checks.

The checks are the same for all versions of the protocol. An adapter (v1.py, v03.py) gives a
client of the SDK this interface:

    await send(parts, task_id=, context_id=, wait=, push=, metadata=, message_metadata=) → Answer
    stream(parts), resubscribe(id) → Events, asynchronously
    await get(id, history_length), await cancel(id) → Answer
    await list(context_id, page_size, page_token) → (answers, next, total); has_list reports whether the client has it
    await set_push(id, config), get_push(id, config_id); where has_list, also list_push(id), delete_push(id, config_id)
    await extended_card() → (name, organization)
    pushed(body) → (id of the task, state or None)

zero_is_all means that a history length of 0 requests the whole history.
A part is {"text"}, {"data"}, {"raw", "name", "type"} or {"url", "name", "type"}, with "metadata".
"""
import asyncio
import base64
import json
import os
import sys
import threading
import traceback
import urllib.request
from contextlib import aclosing
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from standardwebhooks import Webhook

BASE = os.environ["PARLEY_URL"]
AGENT = f"{BASE}/a2a/{os.environ['PARLEY_AGENT']}"
KEY = os.environ["PARLEY_KEY"]  # may call every agent
ONLY = os.environ["PARLEY_ONLY_KEY"]  # may call only this agent
NONE = os.environ["PARLEY_NONE_KEY"]  # may call no agent


@dataclass
class Answer:
    kind: str  # task or message
    parts: list
    id: str = ""
    context_id: str = ""
    state: str = ""
    say: str = ""
    artifact: str = ""
    history: list = field(default_factory=list)  # of (parts, metadata)
    metadata: dict = field(default_factory=dict)


@dataclass
class Event:
    id: str
    context_id: str
    task: Answer | None = None
    state: str = ""
    say: str = ""
    parts: list | None = None
    append: bool = False
    last: bool = False


async def step(what, check):
    """Run one check. If it fails, the script ends."""
    try:
        await asyncio.wait_for(check(), 60)
    except BaseException:  # noqa: BLE001 # any failure ends the script
        print(f"FAILED  {what}:\n{traceback.format_exc()}", flush=True)
        os._exit(1)
    print(f"ok      {what}", flush=True)


def equal(got, want):
    if got != want:
        raise AssertionError(f"got  {got!r}\nwant {want!r}")


async def failure(promise):
    """Return the error of a call that must fail."""
    try:
        got = await promise
    except Exception as error:  # noqa: BLE001 # the caller checks it
        return error
    raise AssertionError(f"got {got!r}, want an error")


async def until(condition):
    """Poll until the condition is true; step() limits the time."""
    while not (found := await condition()):
        await asyncio.sleep(0.02)
    return found


async def collect(events):
    return [e async for e in events]


def text(s):
    return [{"text": s}]


def text_of(parts):
    return "".join(p.get("text", "") for p in parts)


def raw(data):
    return base64.b64encode(data).decode()


async def check_calls(name, c):
    """Test every call of the client."""
    for what, check in [
        ("send and wait; the task has a part of each kind", kinds),
        ("the echo preserves all kinds of parts and all metadata", round_trip),
        ("send without waiting, poll, send another message", poll),
        ("stream to the end", stream),
        ("resubscribe after a broken stream", resubscribe),
        ("input-required, a further turn, and historyLength", ask),
        ("cancel, reject, fail", ends),
        ("a message as the result", reply),
        ("push configurations", push_configs),
        ("a push arrives, with its token, its credentials and a signature", push),
        ("the extended card", extended_card),
    ] + ([("list by context, page by page", list_tasks)] if c.has_list else []):
        await step(f"{name}: {what}", lambda check=check: check(c))


async def kinds(c):
    done = await c.send(text("kinds"))
    equal((done.kind, done.state, bool(done.id and done.context_id)), ("task", "completed", True))
    equal(done.parts, [
        {"text": "plain"},
        {"data": {"n": 1, "deep": ["x", True, None]}},
        {"raw": "AAH+/w==", "name": "small.bin", "type": "application/octet-stream"},
        {"url": "https://example.com/far.txt", "name": "far.txt", "type": "text/plain"},
    ])


async def round_trip(c):
    parts = [
        {"text": "echo äöü 🎭", "metadata": {"lang": "de", "n": 1.5}},
        {"data": {"list": [1, "two", None, {"x": False}]}},
        {"raw": raw(b"\0file\xff"), "name": "a.bin", "type": "application/octet-stream"},
        {"url": "https://example.com/b.png", "name": "b.png", "type": "image/png"},
    ]
    done = await c.send(parts, metadata={"job": "17"}, message_metadata={"trace": "abc"})
    equal((done.artifact, done.parts), ("What you sent", parts))
    equal(done.metadata, {"job": "17"})
    equal(done.history[0], (parts, {"trace": "abc"}))


async def poll(c):
    sent = await c.send(text("stay"), wait=False)
    assert sent.state in ("submitted", "working"), sent

    async def at_work():
        return (await c.get(sent.id)).say == "on it"

    await until(at_work)
    done = await c.send(text("finish"), task_id=sent.id, context_id=sent.context_id)
    equal((done.id, text_of(done.parts)), (sent.id, "Told to finish"))


async def stream(c):
    events = await collect(c.stream(text("chunks")))
    assert events[0].task, "the first event is not the task"
    equal({(e.id, e.context_id) for e in events}, {(events[0].id, events[0].context_id)})
    pieces = [(text_of(e.parts), e.append, e.last) for e in events if e.parts is not None]
    equal(pieces, [("one ", False, False), ("two ", True, False), ("three", True, True)])
    equal(events[-1].state, "completed")
    equal(text_of((await c.get(events[0].id)).parts), "one two three")


async def resubscribe(c):
    async with aclosing(c.stream(text("stay"))) as events:
        async for first in events:
            if first.say == "on it":
                break
    events, told = [], None
    async for e in c.resubscribe(first.id):
        if not events:
            told = asyncio.create_task(c.send(text("finish"), task_id=first.id, context_id=first.context_id, wait=False))
        events.append(e)
    await told
    equal([text_of(e.parts) for e in events if e.parts is not None][-1], "Told to finish")
    equal(events[-1].state, "completed")


async def ask(c):
    asked = await c.send(text("ask"))
    equal((asked.state, asked.say), ("input-required", "Which one?"))
    done = await c.send(text("blue"), task_id=asked.id, context_id=asked.context_id)
    equal((done.id, done.context_id, done.state, text_of(done.parts)), (asked.id, asked.context_id, "completed", "You chose blue"))
    whole = ["ask", "Which one?", "blue"]
    for length, want in [(0, whole if c.zero_is_all else []), (1, ["blue"]), (10, whole)]:
        equal([text_of(parts) for parts, _ in (await c.get(asked.id, length)).history], want)


async def ends(c):
    sent = await c.send(text("stay"), wait=False)
    equal((await c.cancel(sent.id)).state, "canceled")
    rejected = await c.send(text("reject"))
    equal((rejected.state, rejected.say), ("rejected", "not my part"))
    failed = await c.send(text("fail"))
    equal((failed.state, failed.say), ("failed", "forgot the lines"))


async def reply(c):
    m = await c.send(text("reply"))
    equal((m.kind, text_of(m.parts)), ("message", "Hello yourself"))


async def list_tasks(c):
    first = await c.send(text("kinds"))
    second = await c.send(text("ask"), context_id=first.context_id)
    answers, after, total = await c.list(first.context_id, 1, "")
    equal(([a.id for a in answers], total), ([second.id], 2))
    answers, after, _ = await c.list(first.context_id, 1, after)
    equal(([a.id for a in answers], after), ([first.id], ""))


async def push_configs(c):
    sent = await c.send(text("stay"), wait=False)
    config = {"id": "mine", "url": "http://127.0.0.1:9/x", "token": "a-token", "scheme": "Bearer", "credentials": "secret"}
    equal(await c.set_push(sent.id, config), config)
    equal(await c.get_push(sent.id, "mine"), config)
    if c.has_list:
        await c.set_push(sent.id, {"id": "other", "url": "http://127.0.0.1:9/y"})
        equal(sorted(p["id"] for p in await c.list_push(sent.id)), ["mine", "other"])
        await c.delete_push(sent.id, "mine")
        equal([p["id"] for p in await c.list_push(sent.id)], ["other"])
    await c.cancel(sent.id)


SECRET = "whsec_" + base64.b64encode(b"a secret of thirty-two bytes, eh").decode()


async def push(c):
    with Receiver() as receiver:
        sent = await c.send(text("stay"), wait=False)
        await c.set_push(sent.id, {"id": "p", "url": receiver.url, "token": SECRET, "scheme": "Bearer", "credentials": "secret"})
        await c.send(text("finish"), task_id=sent.id, context_id=sent.context_id)
        await receiver.end(c, sent.id, SECRET, "Bearer secret")
        sent = await c.send(text("kinds"), push={"url": receiver.url, "token": "at-once"})
        await receiver.end(c, sent.id, "at-once", None)


async def extended_card(c):
    equal(await c.extended_card(), ("Actor", "main"))


def get_json(address):
    with urllib.request.urlopen(address, timeout=30) as answer:
        return json.load(answer)


class Receiver:
    """A web server that receives pushes."""

    def __init__(self):
        self.got = []
        got = self.got

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                got.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/pushes"
        (key,) = (k for k in get_json(f"{BASE}/.well-known/jwks.json")["keys"] if k.get("crv") == "Ed25519")
        self.key = Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(key["x"] + "=="))

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()

    async def end(self, c, task_id, token, authorization):
        """Wait for the push about the task's end, and check all pushes until then."""

        async def ended():
            if not self.got:
                return False
            headers, body = self.got.pop(0)
            pushed_id, state = c.pushed(json.loads(body))
            if pushed_id != task_id:  # of an earlier task
                return False
            h = {name.lower(): value for name, value in headers.items()}
            equal((h.get("x-a2a-notification-token"), h.get("authorization")), (token, authorization))
            signed = f"{h['webhook-id']}.{h['webhook-timestamp']}.".encode() + body
            signatures = dict(s.split(",", 1) for s in h["webhook-signature"].split(" "))
            self.key.verify(base64.b64decode(signatures["v1a"]), signed)
            if token.startswith("whsec_"):  # the library's own format
                Webhook(token).verify(body, headers)
            return state == "completed"

        await until(ended)


async def check_mistakes(name, c, kind):
    """Check the errors of bad calls. kind returns the SDK's type of an error."""
    done = await c.send(text("kinds"))
    more = {"task_id": done.id, "context_id": done.context_id}
    for what, want, mistake in [
        ("get an unknown task", "TaskNotFoundError", lambda: c.get("nobody")),
        ("cancel an unknown task", "TaskNotFoundError", lambda: c.cancel("nobody")),
        ("continue an unknown task", "TaskNotFoundError", lambda: c.send(text("x"), task_id="nobody")),
        ("follow an unknown task", "TaskNotFoundError", lambda: collect(c.resubscribe("nobody"))),
        ("cancel a finished task", "TaskNotCancelableError", lambda: c.cancel(done.id)),
        ("continue a finished task", "UnsupportedOperationError", lambda: c.send(text("x"), **more)),
        ("stream to a finished task", "UnsupportedOperationError", lambda: collect(c.stream(text("x"), **more))),
        ("a message without parts", "InvalidParamsError", lambda: c.send([])),
    ]:
        async def check(want=want, mistake=mistake):
            error = await failure(mistake())
            if kind(error, want) != want:
                raise AssertionError(f"the error is {error!r}; want {want}") from error

        await step(f"{name}: {what} is a {want}", check)


def main(run):
    asyncio.run(run())
    sys.stdout.flush()
    os._exit(0)  # open streams would keep the process running
