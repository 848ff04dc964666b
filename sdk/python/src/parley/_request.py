"""Requests and responses of the API, without input or output.

The asynchronous and the blocking client share this module.
"""

from __future__ import annotations

import json
import os
import secrets
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from time import monotonic
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from ._json import parse_json
from ._retry import parse_retry_after
from ._trace import current_trace
from .errors import (
    APIConnectionError,
    APIError,
    ConfigurationError,
    UnexpectedResponseError,
    error_class,
    problem_error,
    rpc_error,
)

try:
    __version__ = version("parley-sdk")
except PackageNotFoundError:  # run from a checkout
    __version__ = "unknown"


@dataclass
class Request:
    """One request to the server."""

    method: str
    path: str
    """Escaped; see `join`."""
    in_org: bool = True
    """The path is below the org."""
    query: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    rpc: str | None = None
    """A method of JSON-RPC, with the body as its params."""
    headers: dict[str, str] = field(default_factory=dict)
    keyed: bool = False
    """The operation takes an Idempotency-Key."""
    idempotency_key: str | None = None
    repeatable: bool = False
    """A second time does the same as the first."""
    waits: float = 0
    """How many seconds the request asks the server to wait."""

    def prepare(self) -> None:
        """Make the request repeatable if the operation allows it."""
        if self.keyed and self.idempotency_key is None:
            self.idempotency_key = f"py-{secrets.token_urlsafe(16)}"
        self.repeatable = (
            self.repeatable or self.method == "GET" or self.idempotency_key is not None
        )

    def content(self) -> bytes | None:
        """Return the body, encoded."""
        body = self.body
        if self.rpc is not None:
            body = {"jsonrpc": "2.0", "id": 1, "method": self.rpc, "params": body}
        if body is None:
            return None
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "replace"
        )

    def all_headers(self) -> dict[str, str]:
        """Return the headers of this request, without the credentials."""
        trace = current_trace.get()
        headers = trace.headers() if trace else {}
        if self.idempotency_key is not None:
            headers["Idempotency-Key"] = self.idempotency_key
        if self.body is not None or self.rpc is not None:
            headers["Content-Type"] = "application/json"
        return {**headers, **self.headers}


def join(*segments: str) -> str:
    """Return the path of these segments, escaped."""
    for segment in segments:
        if not segment:
            raise ValueError(f"an id in the path /{'/'.join(segments)} is empty")
    return "".join("/" + quote(segment, safe=":") for segment in segments)


def without_none(**values: Any) -> dict[str, Any]:
    """Return the values that are given."""
    return {name: value for name, value in values.items() if value is not None}


def query_of(**values: Any) -> dict[str, Any]:
    """Return the parameters of a query that are given, as the API spells them."""
    return {name: _spell(value) for name, value in values.items() if value is not None}


def _spell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)


@dataclass(frozen=True)
class Address:
    """Where the server is, and the key to use."""

    server: str
    key: str | None

    @classmethod
    def resolve(cls, server: str | None, key: str | None) -> Address:
        """Take what is not given from PARLEY_SERVER and PARLEY_KEY."""
        server = server or os.environ.get("PARLEY_SERVER") or "http://127.0.0.1:8080"
        key = key or os.environ.get("PARLEY_KEY") or None
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(
                f"server must start with http:// or https:// and name a host; it is {server!r}"
            )
        if key and not (key.isascii() and key.isprintable()):
            raise ConfigurationError("key has characters that no key has")
        return cls(server.rstrip("/"), key)

    def headers(self, user_agent: str | None) -> dict[str, str]:
        """Return the headers of all requests."""
        own = f"parley-python/{__version__}"
        headers = {
            "Accept": "application/json, application/problem+json",
            "User-Agent": f"{user_agent} {own}" if user_agent else own,
        }
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        return headers


def timeouts(seconds: float) -> httpx.Timeout:
    """Return the timeouts of a request: no connection takes longer than 5 seconds."""
    return httpx.Timeout(seconds, connect=min(5.0, seconds), pool=None)


MAX_BODY = 256 << 20
"""How many bytes a response may have, uncompressed."""


class Body:
    """Collects the body of a response, with a limit of its size and of the time that it takes.

    The timeouts of httpx are for each read, so a response of single bytes could take forever.
    """

    def __init__(self, server: str, seconds: float) -> None:
        self._server = server
        self._seconds = seconds
        self._deadline = monotonic() + seconds
        self._size = 0
        self._chunks: list[bytes] = []

    def add(self, chunk: bytes) -> None:
        """Append a chunk.

        Raises:
            APIConnectionError: the response takes too long.
            UnexpectedResponseError: the response is too large.
        """
        self._size += len(chunk)
        if self._size > MAX_BODY:
            raise UnexpectedResponseError(
                f"the response of {self._server} is larger than {MAX_BODY} bytes"
            )
        if monotonic() > self._deadline:
            raise APIConnectionError(
                f"no complete response from {self._server} in {self._seconds:g} s"
            )
        self._chunks.append(chunk)

    def content(self) -> bytes:
        """Return the whole body."""
        return b"".join(self._chunks)


def read_response(request: Request, response: httpx.Response, content: bytes) -> Any:
    """Return the JSON value of a response, or raise the error that it stands for."""
    if not response.is_success:
        raise error_of(response, content)
    if not content:
        return None
    value = parse(response, content)
    if request.rpc is None:
        return value
    return rpc_result(value, response)


def rpc_result(value: Any, response: httpx.Response) -> Any:
    """Return the result of a JSON-RPC response, or raise its error."""
    if not isinstance(value, dict) or not ("result" in value or "error" in value):
        raise UnexpectedResponseError("the response is not one of JSON-RPC")
    if error := value.get("error"):
        raise rpc_error(error, **_about(response))
    return value.get("result")


def parse(response: httpx.Response, content: bytes) -> Any:
    """Return the JSON value of a response."""
    try:
        return parse_json(content)
    except ValueError as error:
        raise UnexpectedResponseError(
            f"the response of {response.url.host} is not JSON; is it a Parley server?"
        ) from error


def _about(response: httpx.Response) -> dict[str, Any]:
    return {
        "status": response.status_code,
        "request_id": response.headers.get("X-Request-Id", ""),
        "retry_after": parse_retry_after(response.headers.get("Retry-After")),
    }


def error_of(response: httpx.Response, content: bytes) -> APIError:
    """Return the error of a response that is not a success."""
    about = _about(response)
    try:
        body = parse_json(content)
    except ValueError:
        body = None
    if isinstance(body, Mapping):
        if isinstance(body.get("error"), Mapping):
            return rpc_error(body["error"], **about)
        if body.get("detail"):
            return problem_error(body, **about)
    message = f"the server responded with {response.status_code} {response.reason_phrase}".rstrip()
    if location := response.headers.get("Location"):
        message += f" to {location}"
    return error_class(response.status_code)(message, **about)


_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")  # before and since OpenSSL 3.2


def connection_error(server: str, error: httpx.HTTPError) -> APIConnectionError:
    """Return the error of a request without a response."""
    not_sent = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))
    permanent = isinstance(error, httpx.UnsupportedProtocol) or _refuses_tls(error)
    what = "cannot reach" if not_sent or permanent else "no response from"
    cause = str(error) or type(error).__name__
    return APIConnectionError(f"{what} {server}: {cause}", not_sent=not_sent, permanent=permanent)


def _refuses_tls(error: BaseException | None) -> bool:
    """Whether the certificate is not trusted, or the server does not speak TLS."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        if isinstance(error, ssl.SSLError) and error.reason in _NO_TLS:
            return True
        error = error.__cause__ or error.__context__
    return False
