"""Sends requests, repeats them where that is safe, and reads streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx

from .._request import (
    Address,
    Body,
    Request,
    connection_error,
    error_of,
    join,
    parse,
    read_response,
    rpc_result,
    timeouts,
)
from .._retry import Retry
from .._sse import SILENCE, ServerSentEvent, SSEDecoder
from ..errors import APIConnectionError, ParleyError, UnexpectedResponseError


class AsyncTransport:
    """The connections to one server, with credentials."""

    def __init__(
        self,
        address: Address,
        *,
        org: str | None = None,
        timeout: float = 30,
        retry: Retry | None = None,
        user_agent: str | None = None,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        self.server = address.server
        self.retry = retry or Retry()
        self._org = org
        self._timeout = timeout
        self._headers = address.headers(user_agent)
        self._owned = http_client is None
        self._http = http_client or httpx.AsyncClient(
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64)
        )

    async def aclose(self) -> None:
        """Close the connections, unless the HTTP client was given."""
        if self._owned:
            await self._http.aclose()

    async def org(self) -> str:
        """Return the org of the key. The first call asks the server."""
        if self._org is None:
            me = await self.call(Request("GET", "/api/v1/me", in_org=False))
            self._org = str(me["org"])
        return self._org

    async def call(self, request: Request) -> Any:
        """Send a request, and repeat it if that is safe and may help. Return the JSON value."""
        request.prepare()
        attempt = 1
        while True:
            try:
                return await self.send(request)
            except ParleyError as error:
                pause = self.retry.pause(error, attempt, repeatable=request.repeatable)
                if pause is None or attempt >= self.retry.attempts:
                    raise
            await asyncio.sleep(pause)
            attempt += 1

    async def send(self, request: Request) -> Any:
        """Send a request once and return the JSON value of the response."""
        seconds = self._timeout + request.waits
        built = await self._build(request, timeouts(seconds))
        body = Body(self.server, seconds)
        try:
            response = await self._http.send(built, stream=True, follow_redirects=False)
            try:
                content = await _read(response, body)
            finally:
                await response.aclose()
        except httpx.HTTPError as error:
            raise connection_error(self.server, error) from error
        return read_response(request, response, content)

    async def events(self, request: Request, decoder: SSEDecoder) -> AsyncIterator[ServerSentEvent]:
        """Open a stream of server-sent events and yield them until the connection ends.

        Raises:
            APIConnectionError: the connection ended, or was silent for too long.
        """
        request.headers["Accept"] = "text/event-stream, application/json;q=0.9"
        built = await self._build(request, timeouts(SILENCE))
        try:
            response = await self._http.send(built, stream=True, follow_redirects=False)
            try:
                await _check_stream(request, response, Body(self.server, SILENCE))
                async for chunk in response.aiter_bytes():
                    for event in decoder.feed(chunk):
                        yield event
            finally:
                await response.aclose()
        except httpx.HTTPError as error:
            raise connection_error(self.server, error) from error
        raise APIConnectionError(f"{self.server} closed the stream")

    async def _build(self, request: Request, timeout: httpx.Timeout) -> httpx.Request:
        path = request.path
        if request.in_org:
            path = f"/api/v1/orgs{join(await self.org())}{path}"
        return self._http.build_request(
            request.method,
            self.server + path,
            params=request.query or None,
            content=request.content(),
            headers={**self._headers, **request.all_headers()},
            timeout=timeout,
        )


async def _read(response: httpx.Response, body: Body) -> bytes:
    async for chunk in response.aiter_bytes():
        body.add(chunk)
    return body.content()


async def _check_stream(request: Request, response: httpx.Response, body: Body) -> None:
    media_type = response.headers.get("Content-Type", "").partition(";")[0].strip()
    if response.status_code == 200 and media_type == "text/event-stream":
        return
    content = await _read(response, body)
    if not response.is_success:
        raise error_of(response, content)
    if request.rpc is not None:
        rpc_result(parse(response, content), response)
    raise UnexpectedResponseError("the response of the server is not an event stream")
