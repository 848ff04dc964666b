"""Clients whose server responds slowly, with too much, or with what is not an event stream."""

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from parley import (
    APIConnectionError,
    AsyncClient,
    Client,
    ParleyError,
    Retry,
    UnexpectedResponseError,
    _request,
    _sse,
)


@pytest.fixture
def slow() -> Iterator[str]:
    """Return the URL of a server that sends a byte of its response now and then."""
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "10000")
            self.end_headers()
            try:
                while not ended.wait(0.05):
                    self.wfile.write(b" ")
            except OSError:  # the client gave up
                pass

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    late = threading.Timer(10, ended.set)
    late.start()
    yield f"http://127.0.0.1:{server.server_port}"
    ended.set()
    late.cancel()
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_timeout_is_that_of_the_whole_response(slow: str) -> None:
    began = time.monotonic()
    with (
        Client(slow, "k", timeout=0.5, retry=Retry(attempts=1)) as client,
        pytest.raises(APIConnectionError, match=r"0\.5 s"),
    ):
        client.me()
    assert time.monotonic() - began < 5


async def test_the_timeout_is_that_of_the_whole_response_async(slow: str) -> None:
    began = time.monotonic()
    async with AsyncClient(slow, "k", timeout=0.5, retry=Retry(attempts=1)) as client:
        with pytest.raises(APIConnectionError, match=r"0\.5 s"):
            await client.me()
    assert time.monotonic() - began < 5


def responding(content: bytes, media_type: str = "application/json", status: int = 200) -> Client:
    def respond(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, headers={"Content-Type": media_type}, content=content)

    http_client = httpx.Client(transport=httpx.MockTransport(respond))
    return Client("http://parley.test", "k", org="main", http_client=http_client)


@pytest.mark.parametrize("status", [200, 400])
def test_the_size_of_a_response_is_limited(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setattr(_request, "MAX_BODY", 1000)
    assert responding(b'"%s"' % (b"x" * 998)).me() == "x" * 998
    with pytest.raises(UnexpectedResponseError, match="larger than"):
        responding(b'"%s"' % (b"x" * 999), status=status).me()


def test_the_size_of_an_event_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sse, "MAX_EVENT", 1000)
    small = b'id: 1\ndata: {"x": "%s"}\n\n' % (b"x" * 900)
    events = responding(small * 2 + b"data: " + b"x" * 1000, "text/event-stream").follow_events()
    next(events)
    with pytest.raises(UnexpectedResponseError, match="larger than"):
        next(events)


@pytest.mark.parametrize(
    "stream", [b"data: \xff\n\n", b"retry: %s\nid: 1\ndata: no\n\n" % (b"9" * 5_000)]
)
def test_a_malformed_stream_raises_an_error_of_the_package(stream: bytes) -> None:
    with pytest.raises(UnexpectedResponseError):
        next(responding(stream, "text/event-stream").follow_events())


def test_an_event_with_an_id_of_thousands_of_digits_is_left_out() -> None:
    stream = b'id: %s\ndata: {}\n\nid: 1\ndata: {"seq": 1}\n\n' % (b"9" * 5_000)
    assert next(responding(stream, "text/event-stream").follow_events())["seq"] == 1


def test_a_retry_after_of_thousands_of_digits_is_not_waited_for() -> None:
    def respond(request: httpx.Request) -> httpx.Response:
        return httpx.Response(503, headers={"Retry-After": "9" * 5_000})

    http_client = httpx.Client(transport=httpx.MockTransport(respond))
    with pytest.raises(ParleyError):
        Client("http://parley.test", "k", http_client=http_client).me()
