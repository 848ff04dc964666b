"""The client of the REST API and of the agents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import cast

import httpx

from .. import types as t
from .._request import Address, Request, join, query_of
from .._retry import Retry
from ._agent import AsyncAgentClient
from ._resources import (
    AsyncAgentsResource,
    AsyncAuditResource,
    AsyncFollowupsResource,
    AsyncFrictionResource,
    AsyncInvitationsResource,
    AsyncKeysResource,
    AsyncMembersResource,
    AsyncNotesResource,
    AsyncOauthClientsResource,
    AsyncOrgTasksResource,
    AsyncOwnKeysResource,
    AsyncProposalsResource,
    AsyncServerResource,
    AsyncWebhooksResource,
)
from ._streams import org_events
from ._transport import AsyncTransport


class AsyncClient(AsyncServerResource):
    """Calls a Parley server: its REST API and, by A2A, its agents.

    Operations are grouped by resource: `client.proposals.submit(...)`. Lists have two forms:
    `list` returns one page, `all` iterates over all pages. `client.agent("scout")` calls an agent.

    A request that the server refuses raises an `APIError`, one without a response an
    `APIConnectionError`. See `Retry` for what is repeated.

    Use one client for the whole program: it keeps connections.

    Args:
        server: URL of the server; by default PARLEY_SERVER, or http://127.0.0.1:8080.
        key: An API key; by default PARLEY_KEY. Without a key, requests have no credentials.
        org: The org to work in; by default that of the key, which the client asks for once.
        timeout: Seconds that a response may take, besides those that a request asks for.
        retry: Bounds of repetitions.
        user_agent: Names the calling program, such as "crm/1.4".
        http_client: Sends the requests instead of a client of its own. It is not closed.
    """

    def __init__(
        self,
        server: str | None = None,
        key: str | None = None,
        *,
        org: str | None = None,
        timeout: float = 30,
        retry: Retry | None = None,
        user_agent: str | None = None,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        transport = AsyncTransport(
            Address.resolve(server, key),
            org=org,
            timeout=timeout,
            retry=retry,
            user_agent=user_agent,
            http_client=http_client,
        )
        super().__init__(transport)
        self.transport = transport
        self.proposals = AsyncProposalsResource(transport)
        self.notes = AsyncNotesResource(transport)
        self.followups = AsyncFollowupsResource(transport)
        self.friction = AsyncFrictionResource(transport)
        self.agents = AsyncAgentsResource(transport)
        self.org_tasks = AsyncOrgTasksResource(transport)
        self.members = AsyncMembersResource(transport)
        self.invitations = AsyncInvitationsResource(transport)
        self.keys = AsyncKeysResource(transport)
        self.own_keys = AsyncOwnKeysResource(transport)
        self.oauth_clients = AsyncOauthClientsResource(transport)
        self.webhooks = AsyncWebhooksResource(transport)
        self.audit = AsyncAuditResource(transport)

    @property
    def server(self) -> str:
        """URL of the server, without a trailing slash."""
        return self.transport.server

    async def org(self) -> str:
        """Return the org that the client works in."""
        return await self.transport.org()

    def agent(self, id: str, *, parent: str = "") -> AsyncAgentClient:  # noqa: A002 - the field
        """Return a client for an agent of the key's org, or for a public one.

        Args:
            id: The agent's id.
            parent: The task that the caller works on: its id or the token of its lease. The server
                counts such calls, and refuses those that go too deep.
        """
        return AsyncAgentClient(self.transport, id, parent)

    async def events(
        self,
        *,
        after: int | None = None,
        from_now: bool = False,
        since: t.Timestamp | None = None,
        types: Sequence[str] | None = None,
        subject: str | None = None,
        limit: int | None = None,
        wait: float = 0,
    ) -> t.EventPage:
        """Return events of the org, oldest first. Requires svc:tasks:read.

        Args:
            after: Number of the last known event. Without it and the next two, the oldest event
                comes first.
            from_now: Begin with the next event.
            since: Begin with the first event at this time or later.
            types: Types of events, such as proposal.submitted.
            subject: A record, such as proposal:prop-01k5x8r2m4v7c9w3q6z1t0h8ye.
            limit: Size of the page, up to 100.
            wait: How many seconds to wait for an event, up to 60, if there is none.
        """
        request = _events_request(after, from_now, since, types, subject)
        if limit is not None:
            request.query["limit"] = str(limit)
        if wait > 0:
            request.waits = min(wait, 60)
            request.headers["Prefer"] = f"wait={max(1, int(request.waits))}"
        return cast("t.EventPage", await self.transport.call(request))

    async def follow_events(
        self,
        *,
        after: int | None = None,
        from_now: bool = False,
        since: t.Timestamp | None = None,
        types: Sequence[str] | None = None,
        subject: str | None = None,
        on_reset: Callable[[], None] | None = None,
    ) -> AsyncIterator[t.Event]:
        """Iterate over the events of the org, and then over new ones as they happen.

        It survives broken connections and restarts of the server, however long they take: each
        event comes once and in order. A program that keeps the `seq` of the last event and passes
        it as `after` misses none. Requires svc:tasks:read.

        Args:
            after: Number of the last known event.
            from_now: Begin with the next event.
            since: Begin with the first event at this time or later.
            types: Types of events, such as proposal.submitted.
            subject: A record, such as proposal:prop-01k5x8r2m4v7c9w3q6z1t0h8ye.
            on_reset: Called when events after the last known one are no longer kept; the iterator
                then continues with the oldest one. Without it, `EventsReset` is raised.
        """

        def make() -> Request:
            return _events_request(after, from_now, since, types, subject)

        async for event in org_events(self.transport, make, on_reset):
            yield event

    async def aclose(self) -> None:
        """Close the connections."""
        await self.transport.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


def _events_request(
    after: int | None,
    from_now: bool,
    since: t.Timestamp | None,
    types: Sequence[str] | None,
    subject: str | None,
) -> Request:
    begin = "now" if from_now else since
    query = query_of(after=after, since=begin, types=types, subject=subject)
    return Request("GET", join("events"), query=query)
