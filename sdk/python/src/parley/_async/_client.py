"""The client of the REST API and of the agents."""

from __future__ import annotations

from types import TracebackType

import httpx

from .._request import Address
from .._retry import Retry
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
from ._transport import AsyncTransport


class AsyncClient(AsyncServerResource):
    """An asynchronous client of a Parley server: its REST API and, by A2A, its agents.

    Operations are grouped by resource: `client.proposals.submit(...)`. Lists have two forms:
    `list` returns one page, `all` iterates over all pages. `client.agent("scout")` calls an agent.

    A request that the server refuses raises an `APIError`, one without a response an
    `APIConnectionError`. See `Retry` for what is repeated.

    Use one client for the whole program: it keeps connections.

    Args:
        server: URL of the server; by default PARLEY_SERVER, or http://127.0.0.1:8080.
        key: An API key; by default PARLEY_KEY. Without a key, requests have no credentials.
        org: The org to work in; by default that of the key, which the client asks for once.
        timeout: Seconds that the server may be silent, besides those that a request asks for.
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
