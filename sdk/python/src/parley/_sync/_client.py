# Generated from parley._async by scripts/generate.py. Do not edit.
"""The client of the REST API and of the agents."""

from __future__ import annotations

from types import TracebackType

import httpx

from .._request import Address
from .._retry import Retry
from ._resources import (
    AgentsResource,
    AuditResource,
    FollowupsResource,
    FrictionResource,
    InvitationsResource,
    KeysResource,
    MembersResource,
    NotesResource,
    OauthClientsResource,
    OrgTasksResource,
    OwnKeysResource,
    ProposalsResource,
    ServerResource,
    WebhooksResource,
)
from ._transport import Transport


class Client(ServerResource):
    """An blocking client of a Parley server: its REST API and, by A2A, its agents.

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
        http_client: httpx.Client | None = None,
    ) -> None:
        transport = Transport(
            Address.resolve(server, key),
            org=org,
            timeout=timeout,
            retry=retry,
            user_agent=user_agent,
            http_client=http_client,
        )
        super().__init__(transport)
        self.transport = transport
        self.proposals = ProposalsResource(transport)
        self.notes = NotesResource(transport)
        self.followups = FollowupsResource(transport)
        self.friction = FrictionResource(transport)
        self.agents = AgentsResource(transport)
        self.org_tasks = OrgTasksResource(transport)
        self.members = MembersResource(transport)
        self.invitations = InvitationsResource(transport)
        self.keys = KeysResource(transport)
        self.own_keys = OwnKeysResource(transport)
        self.oauth_clients = OauthClientsResource(transport)
        self.webhooks = WebhooksResource(transport)
        self.audit = AuditResource(transport)

    @property
    def server(self) -> str:
        """URL of the server, without a trailing slash."""
        return self.transport.server

    def org(self) -> str:
        """Return the org that the client works in."""
        return self.transport.org()

    def close(self) -> None:
        """Close the connections."""
        self.transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
