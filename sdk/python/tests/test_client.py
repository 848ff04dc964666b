"""The clients against a real server: the blocking one for most, as it is generated."""

import asyncio
import http.server
import threading
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from conftest import Agent, Server, working

from parley import (
    APIConnectionError,
    AsyncClient,
    Client,
    ConflictError,
    EventsReset,
    NotFoundError,
    PermissionDeniedError,
    Retry,
    SyncTask,
    Task,
    TaskState,
    ValidationError,
    WebhookSignatureError,
    parse_time,
    report_friction,
    verify_webhook,
)

PROPOSAL = {
    "title": "Retry the deploy step",
    "category": "reliability",
    "problem": "It fails on a busy registry.",
    "suggested_fix": "Retry it three times.",
}


def test_proposals_go_from_submission_to_a_followup(client: Client, agent: Agent) -> None:
    proposal = client.proposals.submit(**PROPOSAL)
    with Client(client.server, agent.key) as voter:
        vote = voter.proposals.vote(proposal["id"], vote="for", comment="Yes")
    assert (vote["votes_for"], vote["votes_against"]) == (1, 0)
    approved = client.proposals.update(proposal["id"], status="approved")
    assert approved["followup_id"] is not None
    followup = client.followups.get(approved["followup_id"])
    assert followup["proposal_id"] == proposal["id"]
    assigned = client.followups.update(followup["id"], assignee=f"agent:{agent.id}")
    assert assigned["assignee"] == f"agent:{agent.id}"
    changes = [entry["kind"] for entry in client.proposals.all_history(proposal["id"])]
    assert {"submitted", "voted", "status_changed"} <= set(changes)
    assert parse_time(proposal["submitted_at"]).tzinfo is not None


def test_all_iterates_over_all_pages(client: Client) -> None:
    made = {client.notes.create(title=f"Note {i}", text="x")["id"] for i in range(3)}
    assert made <= {note["id"] for note in client.notes.list()["notes"]}
    services = {f"service:many-{i}" for i in range(105)}
    for ref in services:
        client.members.create(kind="service", id=ref.removeprefix("service:"))
    found = [member["ref"] for member in client.members.all(kind="service")]
    assert services <= set(found)
    assert len(found) == len(set(found))


def test_a_key_that_was_used_before_has_no_further_effect(client: Client) -> None:
    first = client.proposals.submit(**PROPOSAL, idempotency_key="once-1")
    assert client.proposals.submit(**PROPOSAL, idempotency_key="once-1")["id"] == first["id"]


def test_errors_are_typed_and_say_what_to_do(client: Client, agent: Agent) -> None:
    with pytest.raises(NotFoundError) as missing:
        client.proposals.get("prop-nope")
    assert missing.value.code
    assert missing.value.request_id
    with pytest.raises(ValidationError) as invalid:
        client.proposals.submit(**{**PROPOSAL, "title": ""})
    assert [field.name for field in invalid.value.fields] == ["title"]
    assert "title" in str(invalid.value)
    with (
        Client(client.server, agent.key) as limited,
        pytest.raises(PermissionDeniedError) as denied,
    ):
        limited.keys.list()
    assert denied.value.advice.startswith("use a key with the scope")
    proposal = client.proposals.submit(**PROPOSAL)
    with pytest.raises(ConflictError) as conflict:
        client.proposals.update(proposal["id"], status="resolved")
    assert "possible now" in str(conflict.value)
    with pytest.raises(NotFoundError) as rpc:
        client.agent("nobody-here").get("t")
    assert rpc.value.code


def test_the_org_is_that_of_the_key(client: Client) -> None:
    assert client.me()["principal"] == "user:admin"
    assert client.org() == "main"
    assert client.health()["status"] == "ok"
    assert client.ready()["status"] == "ready"


def test_agents_have_cards(client: Client, agent: Agent) -> None:
    assert client.agent(agent.id).card()["name"] == agent.id
    assert agent.id in [entry["id"] for entry in client.agents.list()["agents"]]
    assert agent.id in [entry["id"] for entry in client.platform_card()["agents"]]
    pinned = client.agents.update(agent.id, status="busy")
    assert pinned["pinned_status"] == "busy"
    assert client.agents.update(agent.id, status=None)["pinned_status"] is None


def test_the_blocking_client_streams(server: Server, agent: Agent, client: Client) -> None:
    worker = agent.worker()

    @worker.handler
    def handle(task: SyncTask) -> str:
        task.progress("half")
        return "done"

    thread = threading.Thread(target=lambda: asyncio.run(worker.serve()))
    thread.start()
    try:
        events = list(client.agent(agent.id).stream("x", id="streamed"))
        assert [str(e.status.state) for e in events if e.status][-1] == "completed"
        assert "half" in [e.status.message.text for e in events if e.status and e.status.message]
        assert [e.artifact.text for e in events if e.artifact] == ["done"]
        again = list(client.agent(agent.id).subscribe("streamed", after=events[-2].id))
        assert [event.id for event in again] == [events[-1].id]
        assert [task.id for task in client.agent(agent.id).tasks()] == ["streamed"]
    finally:
        worker.stop()
        thread.join()


async def test_a_stream_continues_after_a_restart_of_the_server(own_server: Server) -> None:
    agent = own_server.hire()
    worker = agent.worker()
    go_on = asyncio.Event()

    @worker.handler
    async def handle(task: Task) -> str:
        log = task.open_artifact("log")
        await log.append("1;")
        await go_on.wait()
        await log.append("2;", last=True)
        return "done"

    async with AsyncClient(own_server.url, own_server.key) as sender, working(worker):
        texts: dict[str, str] = {}
        ids = []
        async for event in sender.agent(agent.id).stream("x"):
            ids.append(int(event.id))
            if event.artifact is None:
                continue
            # A chunk whose response was lost replaces the artifact.
            earlier = texts.get(event.artifact.id, "") if event.append else ""
            texts[event.artifact.id] = earlier + event.artifact.text
            if not go_on.is_set():
                own_server.kill()
                own_server.start()
                go_on.set()
        assert sorted(texts.values()) == ["1;2;", "done"]
        assert ids == sorted(set(ids))


async def test_events_are_followed_across_a_restart(own_server: Server) -> None:
    async with AsyncClient(own_server.url, own_server.key) as client:
        begin = (await client.events(from_now=True))["last_seq"]
        await client.proposals.submit(**PROPOSAL)
        seen = []
        async for event in client.follow_events(after=begin, types=["proposal.submitted"]):
            seen.append(event["seq"])
            if len(seen) == 3:
                break
            if len(seen) == 1:
                own_server.kill()
                own_server.start()
            await client.proposals.submit(**PROPOSAL)
        assert seen == sorted(set(seen))
        page = await client.events(after=begin, types=["proposal.submitted"])
        assert [event["seq"] for event in page["events"]] == seen


def test_forgotten_events_raise_or_call_back() -> None:
    reset = b'event: reset\nid: 7\n\nid: 8\ndata: {"seq": 8}\n\n'
    calls: list[int] = []

    def respond(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, content=reset)

    with httpx.Client(transport=httpx.MockTransport(respond)) as http_client:
        client = Client("http://parley.test", "k", org="main", http_client=http_client)
        with pytest.raises(EventsReset) as raised:
            next(client.follow_events(after=3))
        assert raised.value.last_seq == 7
        event = next(client.follow_events(after=3, on_reset=lambda: calls.append(1)))
    assert (event["seq"], calls) == (8, [1])


class Flaky:
    """Fails some requests, and counts all of them."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def client(self) -> Client:
        http_client = httpx.Client(transport=httpx.MockTransport(self))
        retry = Retry(min_wait=0.001, max_wait=0.002, max_retry_after=1)
        return Client("http://parley.test", "k", org="main", retry=retry, http_client=http_client)


OK = httpx.Response(200, json={"id": "x"})
LOST = httpx.ReadError("lost")
NOT_SENT = httpx.ConnectError("refused")
BUSY = httpx.Response(503, json={"detail": "busy", "code": "server.busy"})
PROXY = httpx.Response(503, text="busy")


def test_requests_are_repeated_where_that_is_safe() -> None:
    flaky = Flaky(LOST, BUSY, OK)
    flaky.client().proposals.submit(**PROPOSAL)
    keys = {request.headers["Idempotency-Key"] for request in flaky.requests}
    assert (len(flaky.requests), len(keys)) == (3, 1)


@pytest.mark.parametrize(
    ("answers", "sent"),
    [
        ([NOT_SENT, OK], 2),  # it did not arrive
        ([BUSY, OK], 2),  # Parley did not carry it out
        ([LOST, OK], 1),  # it may have been carried out
        ([PROXY, OK], 1),
    ],
)
def test_requests_that_are_not_repeatable(answers: list[object], sent: int) -> None:
    flaky = Flaky(*answers)  # type: ignore[arg-type]
    try:
        flaky.client().webhooks.ping("hook-1")
    except Exception:
        assert sent == 1
    assert len(flaky.requests) == sent


def test_a_long_retry_after_is_not_waited_for() -> None:
    long = httpx.Response(429, headers={"Retry-After": "60"}, json={"detail": "slow down"})
    flaky = Flaky(long)
    with pytest.raises(Exception, match="try again in 60 seconds"):
        flaky.client().me()


def test_an_unreachable_server_is_named() -> None:
    client = Client("http://127.0.0.1:9", "k", retry=Retry(attempts=1))
    with client, pytest.raises(APIConnectionError, match="cannot reach http://127") as lost:
        client.me()
    assert lost.value.not_sent


def test_the_third_failure_files_a_proposal(client: Client, server: Server, agent: Agent) -> None:
    fingerprint = f"registry:{agent.id}"
    with Client(server.url, agent.key) as reporter:

        @report_friction(fingerprint, title="Slow", problem="It is slow.", client=reporter)
        def pull() -> None:
            raise TimeoutError("no response")

        for _ in range(2):
            with pytest.raises(TimeoutError):
                pull()
        assert client.friction.get(fingerprint)["proposal_id"] is None
        with pytest.raises(TimeoutError):
            pull()
    friction = client.friction.get(fingerprint)
    assert friction["proposal_id"] is not None
    assert "TimeoutError: no response" in friction["evidence"][0]["evidence"]


async def test_report_friction_in_a_handler_belongs_to_its_task(
    server: Server, agent: Agent
) -> None:
    worker = agent.worker()
    fingerprint = f"handler:{agent.id}"

    @worker.handler
    @report_friction(fingerprint, title="Slow", problem="It is slow.")
    async def handle(task: Task) -> None:
        raise TimeoutError("no response")

    async with AsyncClient(server.url, server.key) as sender, working(worker):
        task = await sender.agent(agent.id).send("x", wait=20)
        assert task.state is TaskState.FAILED
        friction = await sender.friction.get(fingerprint)
        assert friction["count"] == 1
        assert friction["evidence"][0]["reporter"] == f"agent:{agent.id}"


@pytest.mark.parametrize("in_thread", [False, True])
async def test_report_friction_of_a_helper_does_not_block_the_handler(
    server: Server, agent: Agent, monkeypatch: pytest.MonkeyPatch, in_thread: bool
) -> None:
    monkeypatch.setenv("PARLEY_SERVER", "http://127.0.0.1:9")  # not the server of the worker
    worker = agent.worker()
    fingerprint = f"helper:{agent.id}"

    @report_friction(fingerprint, title="Slow", problem="It is slow.")
    def read() -> None:
        raise TimeoutError("no response")

    @worker.handler
    async def handle(task: Task) -> str:
        with pytest.raises(TimeoutError):
            await asyncio.to_thread(read) if in_thread else read()
        return task.id

    async with AsyncClient(server.url, server.key) as sender:
        async with working(worker):
            task = await sender.agent(agent.id).send("x", wait=20)
        friction = await sender.friction.get(fingerprint)
    assert [entry["occurrence"] for entry in friction["evidence"]] == [task.text]


async def test_report_friction_of_a_coroutine_in_a_plain_function(
    server: Server, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARLEY_SERVER", "http://127.0.0.1:9")
    worker = agent.worker()
    fingerprint = f"coroutine:{agent.id}"

    @report_friction(fingerprint, title="Slow", problem="It is slow.")
    async def read() -> None:
        raise TimeoutError("no response")

    @worker.handler
    def handle(task: SyncTask) -> str:
        with pytest.raises(TimeoutError):
            asyncio.run(read())
        return task.id

    async with AsyncClient(server.url, server.key) as sender, working(worker):
        task = await sender.agent(agent.id).send("x", wait=20)
        friction = await sender.friction.get(fingerprint)
    assert [entry["occurrence"] for entry in friction["evidence"]] == [task.text]


async def test_report_friction_of_generators(client: Client, agent: Agent, server: Server) -> None:
    plain, asynchronous = f"plain:{agent.id}", f"async:{agent.id}"

    @report_friction(plain, title="Slow", problem="It is slow.", client=client)
    def lines() -> Iterator[int]:
        yield 1
        raise TimeoutError("no response")

    with pytest.raises(TimeoutError):
        list(lines())
    async with AsyncClient(server.url, server.key) as reporter:

        @report_friction(asynchronous, title="Slow", problem="It is slow.", client=reporter)
        async def tokens() -> AsyncIterator[int]:
            yield 1
            raise TimeoutError("no response")

        with pytest.raises(TimeoutError):
            [token async for token in tokens()]
    assert [client.friction.get(key)["count"] for key in (plain, asynchronous)] == [1, 1]


@pytest.mark.parametrize("text", ["é" * 4000, "\x1b[31mred\x00", "\udcff"])
def test_any_traceback_is_evidence(client: Client, agent: Agent, text: str) -> None:
    fingerprint = f"evidence:{agent.id}"
    with (
        pytest.raises(TimeoutError),
        report_friction(fingerprint, title="Slow", problem="It is slow.", client=client),
    ):
        raise TimeoutError(text + " the end")
    evidence = client.friction.get(fingerprint)["evidence"][0]["evidence"]
    assert evidence.endswith(" the end\n")
    assert len(evidence.encode()) <= 4096


async def test_followed_events_survive_any_number_of_broken_connections(server: Server) -> None:
    broken = 0

    class Breaking(httpx.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            nonlocal broken
            if request.url.path.endswith("/events") and broken < 20:
                broken += 1
                raise httpx.ConnectError("broken")
            return await super().handle_async_request(request)

    retry = Retry(min_wait=0.001, max_wait=0.001)
    async with (
        httpx.AsyncClient(transport=Breaking()) as http,
        AsyncClient(server.url, server.key, retry=retry, http_client=http) as client,
    ):
        async for event in client.follow_events():
            assert event["seq"] > 0
            break
    assert broken == 20


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[tuple[bytes, dict[str, str]]]]]:
    received: list[tuple[bytes, dict[str, str]]] = []

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((body, dict(self.headers)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as web:
        threading.Thread(target=web.serve_forever).start()
        yield f"http://127.0.0.1:{web.server_port}/", received
        web.shutdown()


def test_signatures_of_webhooks_are_verified(
    client: Client, receiver: tuple[str, list[tuple[bytes, dict[str, str]]]]
) -> None:
    url, received = receiver
    hook = client.webhooks.create(url=url)
    assert client.webhooks.ping(hook["id"])["outcome"] == "delivered"
    [(body, headers)] = received
    event = verify_webhook(body, headers, hook["secret"])
    assert event.payload["type"] == "webhook.ping"
    with pytest.raises(WebhookSignatureError, match="wrong"):
        verify_webhook(body + b" ", headers, hook["secret"])
    with pytest.raises(WebhookSignatureError, match="last 300 seconds"):
        verify_webhook(body, headers, hook["secret"], now=0)
    with pytest.raises(WebhookSignatureError, match="no header webhook-id"):
        verify_webhook(body, {}, hook["secret"])
    client.webhooks.delete(hook["id"])
