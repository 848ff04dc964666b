# Generated from api/openapi.yaml by scripts/generate.py. Do not edit.

"""The JSON objects of the REST API, as typed dictionaries.

Objects may have more members than their type: newer servers add some.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

Timestamp = str
"""A time in UTC (RFC 3339), such as `2026-01-31T09:30:00.123Z`; see `parley.parse_time`."""

Category = Literal["reliability", "performance", "security", "process", "feature", "documentation"]
Priority = Literal["low", "normal", "high"]
ProposalStatus = Literal["draft", "open", "approved", "rejected", "resolved"]
FollowupStatus = Literal["open", "in_progress", "done", "canceled"]
Choice = Literal["for", "against"]
AgentStatus = Literal["available", "busy", "offline"]
PrincipalKind = Literal["user", "agent", "service"]
QuotaPeriod = Literal["minute", "hour", "day"]
WebhookState = Literal["active", "paused", "failed"]
WebhookFormat = Literal["standard", "cloudevents", "slack"]


class _A2AArtifactRequired(TypedDict):
    artifactId: str
    """Unique within the task."""
    parts: list[A2APart]
    """Content, in parts."""
    type: str
    """Type of the artifact."""


class A2AArtifact(_A2AArtifactRequired, total=False):
    description: str
    """Description."""
    index: int
    """Position among the artifacts of the task."""
    metadata: dict[str, Any]
    """Arbitrary metadata."""
    name: str
    """Name."""


class _A2AMessageRequired(TypedDict):
    parts: list[A2APart]
    """Content, in parts."""
    role: Literal["user", "agent"]
    """user: the sender of the task; or agent."""


class A2AMessage(_A2AMessageRequired, total=False):
    messageId: str
    """An id that the sender chose."""
    metadata: dict[str, Any]
    """Arbitrary metadata."""


class A2APart(TypedDict, total=False):
    data: Any
    """Content of a data part: any JSON value."""
    file: dict[str, Any]
    """Content of a file part: bytes or a URI."""
    kind: Literal["text", "data", "file"]
    """Newer name of type; one of the two suffices."""
    mediaType: str
    """Media type, if the sender set it."""
    metadata: dict[str, Any]
    """Arbitrary metadata."""
    text: str
    """Content of a text part."""
    type: Literal["text", "data", "file"]
    """Type of the part."""


class A2ATask(TypedDict):
    state: str
    """Current state."""
    uid: str
    """Task uid, for /api/v1/orgs/<org>/a2a/tasks/<uid>."""


class _AgentRequired(TypedDict):
    created_at: Timestamp
    """When it was registered."""
    description: str
    """What it does, in a sentence."""
    disabled: bool
    """Disabled agents cannot be called or worked for."""
    id: str
    """Unique within the org."""
    last_seen_at: Timestamp | None
    """When a worker last polled; null if unknown, and for non-admins."""
    name: str
    """Display name."""
    pinned_status: AgentStatus | None
    """Status set by an admin; null if it follows from the workers."""
    public: bool
    """Whether other orgs may see and call it."""
    skills: list[str]
    """Tags of its skills."""
    status: AgentStatus
    """Whether it has workers with free capacity."""
    updated_at: Timestamp
    """When its entry last changed."""
    url: str
    """URL to call it, relative to the server."""


class Agent(_AgentRequired, total=False):
    documentation_url: str
    """URL of its documentation; omitted in lists."""
    icon_url: str
    """URL of its icon; omitted in lists."""
    policy: AgentPolicy
    """Deadline and retries of tasks whose sender gives none; absent if not set."""
    provider: AgentProvider
    """Organization that offers it; omitted in lists."""
    quota: AgentQuota
    """Quota of each other org; omitted if there is none."""
    relay: AgentRelay
    """The remote agent that does its work; omitted in lists, and for agents with workers."""
    skill_details: list[AgentSkill]
    """Skills with more than a tag; omitted in lists."""
    version: str
    """Version of the agent; omitted in lists."""


class AgentCallers(TypedDict):
    callers: list[CallerUsage]
    """Orgs that sent tasks in the current period, the largest first."""
    quota: AgentQuota
    """Quota of each other org; null if there is none, and nothing is counted."""


class AgentCard(TypedDict):
    capabilities: dict[str, Any]
    """Capabilities, as A2A defines them."""
    description: str
    """What the agent does."""
    name: str
    """Display name."""
    skills: list[dict[str, Any]]
    """Skills, as A2A defines them."""
    version: str
    """Version of the agent."""


class AgentConnection(TypedDict):
    keys: list[ConnectionKey]
    """Live keys for workers of the agent, last used first; at most 20."""
    last_seen_at: Timestamp | None
    """When a worker last polled; null if unknown."""
    message: str
    """The diagnosis in a sentence, with what to do."""
    pinned_status: str | None
    """Status set by an admin; null if it follows from the workers."""
    refusals: list[RefusedWorker]
    """Workers refused by this node, newest first; at most 20."""
    state: Literal[
        "connected",
        "status_pinned",
        "agent_disabled",
        "no_key",
        "wrong_scope",
        "other_agent",
        "key_never_used",
        "no_worker",
        "connection_lost",
        "runs_in_the_server",
    ]
    """Diagnosis."""
    workers: list[ConnectedWorker]
    """Connected workers, last seen first; at most 20."""


class AgentList(TypedDict):
    agents: list[Agent]
    """Sorted by id."""
    total: int
    """Number of agents."""


class AgentPolicy(TypedDict, total=False):
    retry: RetryPolicy
    """When a task is tried again; absent: up to 3 attempts if workers are lost."""
    timeout_seconds: int
    """Time from the creation of a task to its deadline; absent: no deadline."""


class AgentProvider(TypedDict):
    organization: str
    """Name of the organization."""
    url: str
    """Website of the organization."""


class AgentQuota(TypedDict):
    per: QuotaPeriod
    """The period, in UTC."""
    tasks: int
    """Number of tasks that each other org may send in one period."""


class AgentRelay(TypedDict):
    checked_at: Timestamp | None
    """When the card was last read."""
    credential: AgentRelaySecret
    """The credential without its secret; null: none."""
    health: Literal["up", "down"]
    """Whether tasks can be sent: up or down."""
    problem: str
    """Why tasks cannot be sent; empty: they can."""
    remote: AgentRelayRemote
    """What the card of the remote agent says."""
    url: str
    """URL of the remote agent."""


class AgentRelayRemote(TypedDict):
    binding: str
    """Binding of A2A that is used."""
    name: str
    """Name of the remote agent."""
    protocol: str
    """Version of A2A that is used."""
    streaming: bool
    """Whether the remote agent streams events."""
    version: str
    """Version of the remote agent."""


class AgentRelaySecret(TypedDict):
    set_at: Timestamp | None
    """When it was set."""
    type: Literal["bearer", "header", "oauth"]
    """Type of the credential."""


class _AgentSkillRequired(TypedDict):
    id: str
    """Unique among the skills of the agent."""


class AgentSkill(_AgentSkillRequired, total=False):
    description: str
    """What it does."""
    examples: list[str]
    """Example requests."""
    input_modes: list[str]
    """Accepted media types; default: those of the agent."""
    name: str
    """Display name; default: the id."""
    output_modes: list[str]
    """Produced media types; default: those of the agent."""
    tags: list[str]
    """Search tags; default: the id."""


class AgentUsage(TypedDict):
    agent: str
    """The agent's id."""
    left: int
    """Tasks that may still be sent in the current period."""
    per: QuotaPeriod
    """The period, in UTC."""
    resets_at: Timestamp
    """When the current period ends."""
    tasks: int
    """Number of tasks that the org may send in one period."""
    used: int
    """Tasks sent in the current period."""


class AuditEntry(TypedDict):
    action: str
    """Action."""
    actor: str
    """A principal, operator (the command line on the store), or server."""
    address: str | None
    """IP address of the client; null without a request."""
    at: Timestamp
    """When it happened."""
    code: str | None
    """Error code of a refusal; null if it was done."""
    detail: str
    """Further details; never a secret."""
    id: str
    """Entry id."""
    key_id: str | None
    """Id of the credential; null without one."""
    outcome: Literal["done", "refused"]
    """Whether it was done or refused."""
    request_id: str | None
    """Request id, as in the server's log; null without a request."""
    target: str
    """An id or a principal; empty if there was none yet."""


class AuditLog(TypedDict):
    entries: list[AuditEntry]
    """Entries, newest first; empty past the end."""
    next_cursor: str | None
    """Cursor of the next page; null on the last page."""


class CallerUsage(TypedDict):
    left: int
    """Tasks that may still be sent in the current period."""
    org: str
    """The calling org."""
    per: QuotaPeriod
    """The period, in UTC."""
    resets_at: Timestamp
    """When the current period ends."""
    tasks: int
    """Number of tasks that the org may send in one period."""
    used: int
    """Tasks sent in the current period."""


class ConnectedWorker(TypedDict):
    capacity: int
    """Number of tasks it can run at once."""
    name: str
    """Name that the worker chose."""
    seen_at: Timestamp
    """When it last polled for work."""


class ConnectionKey(TypedDict):
    id: str
    """Key id."""
    last_used_at: Timestamp | None
    """When it was last used, to the minute; null if never."""
    name: str
    """Purpose of the key; may be empty."""
    prefix: str
    """First characters of the secret."""
    principal: str
    """Principal of the key."""
    problem: Literal["wrong_scope", "other_agent"] | None
    """Why it cannot work for the agent; null if it can."""


class DecisionError(TypedDict):
    code: str
    """Stable error code."""
    detail: str
    """Error message."""
    status: int
    """HTTP status."""


class DecisionItem(TypedDict):
    id: str
    """Proposal id."""
    text_version: int
    """The text_version you read; fails if the text has changed since."""


class _DecisionResultRequired(TypedDict):
    followup_id: str | None
    """Follow-up created by approval; null otherwise."""
    id: str
    """Proposal id."""
    replayed: bool
    """Already decided with the same Idempotency-Key."""
    status: ProposalStatus | None
    """New status; null if the decision failed."""


class DecisionResult(_DecisionResultRequired, total=False):
    error: DecisionError
    """Why the decision failed; omitted on success."""


class DecisionResults(TypedDict):
    done: int
    """Number of decided proposals."""
    failed: int
    """Number of failed decisions."""
    results: list[DecisionResult]
    """One result per item, in the same order."""


class Event(TypedDict):
    actor: str
    """Who did it; system if Parley did."""
    data: dict[str, Any]
    """The record after the change, as this API shows it."""
    id: str
    """Identifies the event everywhere."""
    seq: int
    """Position in the org's log: 1, 2, 3, …"""
    subject: str
    """Kind and id of the record."""
    time: Timestamp
    """When it happened."""
    type: Literal[
        "proposal.drafted",
        "proposal.submitted",
        "proposal.edited",
        "proposal.voted",
        "proposal.vote_withdrawn",
        "proposal.opened",
        "proposal.approved",
        "proposal.rejected",
        "proposal.reopened",
        "proposal.resolved",
        "followup.created",
        "followup.assigned",
        "followup.started",
        "followup.done",
        "followup.canceled",
        "followup.reopened",
        "friction.reported",
        "friction.filed",
        "task.created",
        "task.input_required",
        "task.completed",
        "task.failed",
        "task.canceled",
        "task.rejected",
        "agent.registered",
        "agent.changed",
        "agent.disabled",
        "agent.presence",
        "member.created",
        "member.changed",
        "member.disabled",
        "member.enabled",
        "key.created",
        "key.rotated",
        "key.revoked",
        "client.created",
        "client.changed",
        "client.deleted",
        "invitation.created",
        "invitation.revoked",
        "invitation.accepted",
        "webhook.created",
        "webhook.changed",
        "webhook.deleted",
        "webhook.failed",
        "agent.enabled",
        "followup.edited",
        "member.erased",
    ]
    """What happened. - `proposal.drafted`: A draft was saved. - `proposal.submitted`: A proposal was submitted. - `proposal.edited`: The text, category or priority was edited. - `proposal.voted`: A vote was cast or changed. - `proposal.vote_withdrawn`: A vote was withdrawn. - `proposal.opened`: A draft was opened for votes. - `proposal.approved`: An admin approved it. - `proposal.rejected`: An admin rejected it. - `proposal.reopened`: A rejected proposal was opened again. - `proposal.resolved`: It is done: its follow-up is finished and an admin resolved it. - `followup.created`: A follow-up was created, by hand or by an approval. - `followup.assigned`: Its assignee changed; it may have none now. - `followup.started`: Work on it began. - `followup.done`: It is done. - `followup.canceled`: It was canceled. - `followup.reopened`: It is open again. - `friction.reported`: An agent reported friction. - `friction.filed`: Reported friction became a proposal. - `task.created`: A task was sent to an agent. - `task.input_required`: The agent waits for input or for an authorization; state says which. - `task.completed`: The agent completed the task. - `task.failed`: The task failed. - `task.canceled`: The task was canceled. - `task.rejected`: The agent rejected the task. - `agent.registered`: An agent was registered. - `agent.changed`: The profile of an agent was changed. - `agent.disabled`: An agent was disabled. - `agent.presence`: An agent went online or offline. - `member.created`: A member was added. - `member.changed`: The name or the rights of a member were changed. - `member.disabled`: A member was disabled. - `member.enabled`: A member was enabled again. - `key.created`: A key was created. - `key.rotated`: A key was replaced by a new one. - `key.revoked`: A key was revoked. - `client.created`: An OAuth client was created. - `client.changed`: An OAuth client was changed. - `client.deleted`: An OAuth client was deleted. - `invitation.created`: An invitation was created. - `invitation.revoked`: An invitation was revoked. - `invitation.accepted`: An invitation was accepted. - `webhook.created`: A webhook was created. - `webhook.changed`: A webhook was changed. - `webhook.deleted`: A webhook was deleted. - `webhook.failed`: A webhook was given up: its receiver failed for three days, or is gone (410). - `agent.enabled`: A disabled agent was enabled again. - `followup.edited`: Its title or description was edited. - `member.erased`: A member was erased, and has this pseudonym now."""
    version: int
    """Version of the shape of data."""


class _EventPageRequired(TypedDict):
    events: list[Event]
    """Events, oldest first; may be empty before the end of the log."""
    last_seq: int
    """Continue with after = this number."""


class EventPage(_EventPageRequired, total=False):
    reset: bool
    """true if events after the given number are gone; begins with the oldest."""


_FieldChangeWords = TypedDict("_FieldChangeWords", {"from": "str"}, total=True)


class FieldChange(_FieldChangeWords):
    field: str
    """Name of the field."""
    to: str
    """New value."""


class Followup(TypedDict):
    a2a_task: A2ATask | Any
    """A2A task of the assigned agent; null if there is none."""
    allowed_transitions: list[FollowupStatus]
    """Statuses that it can change to."""
    assignee: str | None
    """Assigned user or agent; null if unassigned."""
    created_at: Timestamp
    """When it was created."""
    created_by: str
    """Who created it."""
    description: str
    """What to do."""
    id: str
    """Assigned by the service."""
    proposal_id: str | None
    """Proposal whose approval created it; null if created manually."""
    status: FollowupStatus
    """Current status."""
    text_hash: str | None
    """Hash of the approved text; null if created manually."""
    title: str
    """One line that names the work."""
    updated_at: Timestamp
    """When it last changed."""


class FollowupList(TypedDict):
    followups: list[Followup]
    """Follow-ups, newest first; empty past the end."""
    page: int
    """Page number."""
    total: int
    """Number of matches."""


class _FoundAgentRequired(TypedDict):
    card_url: str
    """URL of its card, relative to the server."""
    description: str
    """What it does, in a sentence."""
    id: str
    """Id under which the caller reaches it."""
    name: str
    """Display name."""
    org: str | None
    """Your org, for its own agents; null for those of other orgs."""
    public: bool
    """Whether other orgs may see and call it."""
    skills: list[str]
    """Tags of its skills."""
    status: AgentStatus
    """Whether it has workers with free capacity."""
    url: str
    """URL to call it, relative to the server."""


class FoundAgent(_FoundAgentRequired, total=False):
    provider: AgentProvider
    """Organization that offers it; omitted if unknown."""
    quota: QuotaUsage
    """Quota of your org, and what is left of it; omitted if there is none."""


class FoundAgents(TypedDict):
    agents: list[FoundAgent]
    """The best matches first, then by id."""
    next_cursor: str | None
    """Cursor of the next page; null on the last page."""


class Friction(TypedDict):
    category: str
    """Category."""
    count: int
    """Number of counted reports."""
    fingerprint: str
    """Reports with the same fingerprint are counted together."""
    first_at: Timestamp
    """When it was first reported."""
    last_at: Timestamp
    """When it was last reported."""
    last_by: str
    """Who reported it last."""
    priority: str
    """Priority for the review."""
    problem: str
    """What goes wrong."""
    proposal_id: str | None
    """Proposal that was filed; null before."""
    suggested_fix: str
    """Latest suggested fix; empty without one."""
    title: str
    """Title in the latest report, like the fields below."""


class FrictionEvidence(TypedDict):
    at: Timestamp
    """When it was reported."""
    evidence: str
    """What the reporter observed; may be empty."""
    occurrence: str | None
    """The reporter's id of the occurrence; null without one."""
    reporter: str
    """Who reported it."""
    seq: int
    """Number of the report, from 1."""


class FrictionList(TypedDict):
    friction: list[Friction]
    """Friction, last reported first."""
    next_cursor: str | None
    """Cursor of the next page; null on the last page."""


class FrictionOutcome(TypedDict):
    count: int
    """Number of counted reports so far."""
    counted: bool
    """false if you have already reported this occurrence."""
    filed: bool
    """Whether this report filed the proposal."""
    fingerprint: str
    """Fingerprint."""
    proposal_id: str | None
    """Proposal that was filed, now or earlier; null before."""
    threshold: int
    """Number of reports that file a proposal; 0 means never."""


class FrictionRecord(TypedDict):
    category: str
    """Category."""
    count: int
    """Number of counted reports."""
    evidence: list[FrictionEvidence]
    """Latest reports, newest first; their number is limited."""
    fingerprint: str
    """Reports with the same fingerprint are counted together."""
    first_at: Timestamp
    """When it was first reported."""
    last_at: Timestamp
    """When it was last reported."""
    last_by: str
    """Who reported it last."""
    priority: str
    """Priority for the review."""
    problem: str
    """What goes wrong."""
    proposal_id: str | None
    """Proposal that was filed; null before."""
    suggested_fix: str
    """Latest suggested fix; empty without one."""
    title: str
    """Title in the latest report, like the fields below."""


class FrictionSettings(TypedDict):
    threshold: int
    """Number of reports that file a proposal; 0 means never."""


class History(TypedDict):
    history: list[HistoryEntry]
    """Entries, oldest first."""
    page: int
    """Page number."""
    total: int
    """Number of entries."""


_HistoryEntryWords = TypedDict("_HistoryEntryWords", {"from": "ProposalStatus"}, total=False)


class _HistoryEntryRequired(_HistoryEntryWords):
    actor: str
    """Who did it."""
    at: Timestamp
    """When it happened."""
    kind: Literal["submitted", "edited", "status_changed", "voted", "vote_withdrawn"]
    """What happened."""
    seq: int
    """Sequence number; 1 is the submission."""


class HistoryEntry(_HistoryEntryRequired, total=False):
    changes: list[FieldChange]
    """Edited fields."""
    comment: str
    """Comment on the vote."""
    duplicate_of: str
    """Proposal of which it was rejected as a duplicate."""
    note: str
    """Resolution note."""
    to: ProposalStatus
    """New status."""
    vote: Choice
    """Vote that was cast or withdrawn."""


class Invitation(TypedDict):
    accepted_at: Timestamp | None
    """When it was accepted; null if it was not."""
    admin: bool
    """Whether the user will be an admin."""
    created_at: Timestamp
    """When it was created."""
    created_by: str
    """Who created it."""
    expires_at: Timestamp
    """When it expires."""
    id: str
    """Invitation id; not secret."""
    name: str
    """Name of the new user."""
    revoked_at: Timestamp | None
    """When it was revoked; null if it was not."""
    state: Literal["open", "accepted", "revoked", "expired"]
    """Whether it can be accepted."""
    user: str
    """Id of the new user."""


class InvitationList(TypedDict):
    invitations: list[Invitation]
    """Invitations, newest first; empty past the end."""
    next_cursor: str | None
    """Cursor of the next page; null on the last page."""


class InvitationWithURL(TypedDict):
    accepted_at: Timestamp | None
    """When it was accepted; null if it was not."""
    admin: bool
    """Whether the user will be an admin."""
    created_at: Timestamp
    """When it was created."""
    created_by: str
    """Who created it."""
    expires_at: Timestamp
    """When it expires."""
    id: str
    """Invitation id; not secret."""
    name: str
    """Name of the new user."""
    revoked_at: Timestamp | None
    """When it was revoked; null if it was not."""
    state: Literal["open", "accepted", "revoked", "expired"]
    """Whether it can be accepted."""
    url: str
    """URL to accept it, shown once; relative without a public URL. For the invited person only."""
    user: str
    """Id of the new user."""


class Key(TypedDict):
    created_at: Timestamp
    """When it was created."""
    created_by: str
    """Who created it."""
    expires_at: Timestamp | None
    """When it expires; null if never."""
    id: str
    """Key id; not secret."""
    last_used_at: Timestamp | None
    """When it was last used, to the minute; null if never."""
    name: str
    """Purpose of the key; may be empty."""
    prefix: str
    """First characters of the secret."""
    principal: str
    """Principal of the key."""
    principal_disabled: bool
    """Whether the principal is disabled; then no key of it works."""
    replaced_by: str | None
    """Key that replaced it in a rotation; null if none."""
    replaces: str | None
    """Key that it replaced in a rotation; null if none."""
    revoked_at: Timestamp | None
    """When it was revoked; null if it was not."""
    scopes: list[str]
    """Scopes of the key."""
    state: Literal["live", "revoked", "expired"]
    """Whether it can be used."""


class KeyList(TypedDict):
    keys: list[Key]
    """Keys, newest first; empty past the end."""
    next_cursor: str | None
    """Cursor of the next page; null on the last page."""


class KeyWithSecret(TypedDict):
    created_at: Timestamp
    """When it was created."""
    created_by: str
    """Who created it."""
    expires_at: Timestamp | None
    """When it expires; null if never."""
    id: str
    """Key id; not secret."""
    last_used_at: Timestamp | None
    """When it was last used, to the minute; null if never."""
    name: str
    """Purpose of the key; may be empty."""
    prefix: str
    """First characters of the secret."""
    principal: str
    """Principal of the key."""
    principal_disabled: bool
    """Whether the principal is disabled; then no key of it works."""
    replaced_by: str | None
    """Key that replaced it in a rotation; null if none."""
    replaces: str | None
    """Key that it replaced in a rotation; null if none."""
    revoked_at: Timestamp | None
    """When it was revoked; null if it was not."""
    scopes: list[str]
    """Scopes of the key."""
    secret: str
    """The API key, shown once."""
    state: Literal["live", "revoked", "expired"]
    """Whether it can be used."""


class Me(TypedDict):
    admin: bool
    """Whether the principal is an admin. Scopes alone authorize the credential."""
    credential: str
    """Id of the key (key-…) or access token (tok-…); not secret."""
    expires_at: Timestamp | None
    """When the credential expires; null if never."""
    name: str
    """Display name of the principal."""
    org: str
    """Org of the credential."""
    principal: str
    """Principal of the credential."""
    scopes: list[str]
    """Scopes of the credential."""


class Member(TypedDict):
    admin: bool
    """Whether the user is an admin in sessions. Keys have their own scopes."""
    created_at: Timestamp
    """When it was created."""
    disabled: bool
    """Disabled principals are rejected, with all their keys."""
    id: str
    """Unique within the org and kind."""
    kind: PrincipalKind
    """Kind of principal."""
    name: str
    """Display name."""
    ref: str
    """Kind and id."""


class MemberLink(TypedDict):
    expires_at: Timestamp
    """When it expires."""
    url: str
    """URL to set the password, shown once; relative without a public URL. For the user only."""


class MemberList(TypedDict):
    members: list[Member]
    """Principals, sorted by kind and id; empty past the end."""
    next_cursor: str | None
    """Cursor of the next page; null on the last page."""


class OAuthClient(TypedDict):
    created_at: Timestamp
    """When it was registered."""
    created_by: str
    """Who registered it."""
    id: str
    """OAuth client_id."""
    method: Literal["none", "client_secret_basic", "client_secret_post"]
    """Client authentication at the token endpoint; none: it has no secret."""
    name: str
    """Name shown on the consent page."""
    old_secret_expires_at: Timestamp | None
    """End of the previous secret; null without an overlap."""
    redirect_uris: list[str]
    """Redirect URIs."""
    scopes: list[str]
    """Scopes that it may ask for."""


class OAuthClientList(TypedDict):
    clients: list[OAuthClient]
    """Clients, newest first; empty past the end."""
    next_cursor: str | None
    """Cursor of the next page; null on the last page."""


class OAuthClientWithSecret(TypedDict):
    created_at: Timestamp
    """When it was registered."""
    created_by: str
    """Who registered it."""
    id: str
    """OAuth client_id."""
    method: Literal["none", "client_secret_basic", "client_secret_post"]
    """Client authentication at the token endpoint; none: it has no secret."""
    name: str
    """Name shown on the consent page."""
    old_secret_expires_at: Timestamp | None
    """End of the previous secret; null without an overlap."""
    redirect_uris: list[str]
    """Redirect URIs."""
    scopes: list[str]
    """Scopes that it may ask for."""
    secret: str | None
    """OAuth client_secret, shown once; null if the method is none."""


class _OrgTaskRequired(TypedDict):
    agent: str
    """Agent that it was sent to."""
    attempt: int
    """Number of the attempt, from 1."""
    context_id: str
    """Context that groups tasks."""
    created_at: Timestamp
    """When it was sent."""
    deadline: Timestamp | None
    """When it fails unless it is over; null if never."""
    followup_id: str | None
    """Follow-up that it works on; null if none."""
    id: str
    """The sender's id of the task."""
    max_attempts: int
    """Attempts at most."""
    sender: str
    """Org, kind and id of the sender."""
    state: Literal[
        "submitted",
        "working",
        "completed",
        "failed",
        "canceled",
        "input-required",
        "auth-required",
        "rejected",
    ]
    """Current state."""
    uid: str
    """Assigned by the platform."""
    updated_at: Timestamp
    """When it last changed."""


class OrgTask(_OrgTaskRequired, total=False):
    traceparent: str
    """Trace that the task belongs to (W3C Trace Context); absent if none."""


class _OrgTaskDetailRequired(TypedDict):
    agent: str
    """Agent that it was sent to."""
    artifacts: list[A2AArtifact]
    """Outputs of the task."""
    attempt: int
    """Number of the attempt, from 1."""
    context_id: str
    """Context that groups tasks."""
    created_at: Timestamp
    """When it was sent."""
    deadline: Timestamp | None
    """When it fails unless it is over; null if never."""
    followup_id: str | None
    """Follow-up that it works on; null if none."""
    history: list[A2AMessage]
    """All messages, oldest first."""
    id: str
    """The sender's id of the task."""
    max_attempts: int
    """Attempts at most."""
    sender: str
    """Org, kind and id of the sender."""
    state: Literal[
        "submitted",
        "working",
        "completed",
        "failed",
        "canceled",
        "input-required",
        "auth-required",
        "rejected",
    ]
    """Current state."""
    status_message: A2AMessage | Any
    """The agent's message about the state; null without one."""
    uid: str
    """Assigned by the platform."""
    updated_at: Timestamp
    """When it last changed."""


class OrgTaskDetail(_OrgTaskDetailRequired, total=False):
    traceparent: str
    """Trace that the task belongs to (W3C Trace Context); absent if none."""


class OrgTaskList(TypedDict):
    next_cursor: str | None
    """Cursor of the next page; null on the last page."""
    tasks: list[OrgTask]
    """Tasks, newest first; empty past the end."""


class _PlatformCardRequired(TypedDict):
    agents: list[PlatformCardAgent]
    """The page of agents."""
    capabilities: dict[str, Any]
    """What the platform can do."""
    name: str
    """Name of the platform."""
    protocol: str
    """Always a2a/1.0."""
    version: str
    """Version of the platform."""


class PlatformCard(_PlatformCardRequired, total=False):
    authentication: dict[str, Any]
    """Names of the supported authentication schemes."""
    next: str
    """Cursor of the next page, for the parameter after; omitted on the last page."""


class PlatformCardAgent(TypedDict):
    description: str
    """What the agent does, in a sentence."""
    id: str
    """Agent id."""
    name: str
    """Display name."""
    skills: list[str]
    """Skills of the agent, as tags."""
    status: AgentStatus
    """Whether the agent has workers with free capacity."""
    url: str
    """URL to call the agent, relative to the server."""


class Proposal(TypedDict):
    allowed_transitions: list[ProposalStatus]
    """Statuses that it can change to."""
    category: Category
    """Category."""
    duplicate_of: str | None
    """Proposal of which it was rejected as a duplicate; null otherwise."""
    evidence_count: int
    """Number of reports of that friction."""
    fingerprint: str | None
    """Friction that filed it; null if it was submitted."""
    followup_id: str | None
    """Follow-up created by approval; null before."""
    followup_status: str | None
    """Status of the follow-up; null before approval."""
    id: str
    """Assigned by the service."""
    my_vote: Choice | None
    """The caller's own vote; null without one."""
    priority: Priority
    """Priority for the review."""
    problem: str
    """What is wrong today."""
    resolution_note: str
    """Reason of the last decision; empty before."""
    resolvable: bool
    """Whether it is approved and its follow-up is done."""
    status: ProposalStatus
    """Current status."""
    submitted_at: Timestamp
    """When it was submitted."""
    submitted_by: str
    """Who submitted it."""
    suggested_fix: str
    """How to fix it."""
    text_version: int
    """Version of title, problem and suggested_fix; send it with a decision."""
    title: str
    """One line that names the improvement."""
    updated_at: Timestamp
    """When it last changed, votes included."""
    votes_against: int
    """Number of votes against it."""
    votes_by: VotesBy
    """The same votes, of people and agents separately."""
    votes_for: int
    """Number of votes for it."""


class ProposalCounts(TypedDict):
    counts: StatusCounts
    """Number per status."""
    total: int
    """Number of all matches."""


class ProposalGroup(TypedDict):
    count: int
    """Number of proposals."""
    evidence_count: int
    """For a fingerprint: number of reports."""
    key: str
    """The submitter or the fingerprint."""
    newest_at: Timestamp
    """When the last was submitted."""
    oldest_at: Timestamp
    """When the first was submitted."""


class ProposalGroups(TypedDict):
    groups: list[ProposalGroup]
    """Groups, largest first."""


class _ProposalItemRequired(TypedDict):
    category: Category
    """Category."""
    evidence_count: int
    """Number of reports of that friction."""
    fingerprint: str | None
    """Friction that filed it; null if it was submitted."""
    id: str
    """Assigned by the service."""
    my_vote: Choice | None
    """The caller's own vote; null without one."""
    priority: Priority
    """Priority for the review."""
    status: ProposalStatus
    """Current status."""
    submitted_at: Timestamp
    """When it was submitted."""
    submitted_by: str
    """Who submitted it."""
    text_version: int
    """Version of title, problem and suggested_fix."""
    title: str
    """One line that names the improvement."""
    votes_against: int
    """Number of votes against it."""
    votes_for: int
    """Number of votes for it."""


class ProposalItem(_ProposalItemRequired, total=False):
    excerpt: str
    """Beginning of the problem, on one line; only with include=excerpt."""


class _ProposalListRequired(TypedDict):
    next_cursor: str | None
    """Cursor of the next page; null on the last page."""
    page: int
    """Page number."""
    proposals: list[ProposalItem]
    """Proposals; empty past the end."""
    total: int
    """Number of matches; with q at most 10,000, see total_exact."""


class ProposalList(_ProposalListRequired, total=False):
    index_complete: bool
    """Only with q: false while the text index lacks proposals, for a while after an upgrade."""
    total_exact: bool
    """Only with q: false if there are more matches than total."""


class PushConfig(TypedDict):
    attempts: int
    """Failed attempts to push the event after the cursor."""
    created_at: Timestamp
    """When it was set."""
    cursor: int
    """Number of the last delivered event."""
    due_at: Timestamp | None
    """When the next attempt is due; null if there is nothing to push."""
    form: Literal["1.0", "0.3"]
    """A2A version of the pushed events."""
    id: str
    """The sender's id of the configuration."""
    last_attempt_at: Timestamp | None
    """When the last attempt was made; null before."""
    last_error: str | None
    """Why the last attempt failed; null if it succeeded."""
    last_event: int
    """Number of the task's last event."""
    receiver: str
    """URL of the receiver without its path."""
    state: Literal["active", "done", "dead"]
    """active; done: the last event was delivered; dead: given up."""
    task_id: str
    """The sender's id of the task."""
    task_uid: str
    """Task uid, assigned by the platform."""


class PushConfigList(TypedDict):
    configs: list[PushConfig]
    """All configurations, sorted by id."""


class PushConfigPage(TypedDict):
    configs: list[PushConfig]
    """Configurations, newest task first; empty past the end."""
    next_cursor: str | None
    """Cursor of the next page; null on the last page."""


class QuotaUsage(TypedDict):
    left: int
    """Tasks that may still be sent in the current period."""
    per: QuotaPeriod
    """The period, in UTC."""
    resets_at: Timestamp
    """When the current period ends."""
    tasks: int
    """Number of tasks that the org may send in one period."""
    used: int
    """Tasks sent in the current period."""


class RefusedWorker(TypedDict):
    at: Timestamp
    """When it was refused."""
    key: str
    """Id of the credential."""
    principal: str
    """Principal of the credential."""
    reason: Literal["wrong_scope", "other_agent"]
    """Why it was refused."""


class RetryPolicy(TypedDict, total=False):
    backoff_seconds: int
    """Wait before the second attempt; doubles with each further one, up to an hour; default 0."""
    max_attempts: int
    """Attempts at most, with the first; default 3."""
    on: list[Literal["lost", "failed"]]
    """After which ends of an attempt; default: both."""


class SavedNote(TypedDict):
    created_at: Timestamp
    """When it was saved."""
    created_by: str
    """Who saved it."""
    id: str
    """Assigned by the service."""
    text: str
    """Text of the resolution note."""
    title: str
    """Title in the list of notes."""


class SavedNoteList(TypedDict):
    notes: list[SavedNote]
    """Sorted by title."""


class _ServerStatusRequired(TypedDict):
    status: str
    """ok, or ready."""


class ServerStatus(_ServerStatusRequired, total=False):
    search_waiting: int
    """Of /readyz: how many proposals wait to be added to the text index. It is left out if they are few."""


class SimilarProposal(TypedDict):
    excerpt: str
    """Beginning of the problem, on one line."""
    id: str
    """Proposal id."""
    status: ProposalStatus
    """Current status."""
    submitted_at: Timestamp
    """When it was submitted."""
    submitted_by: str
    """Who submitted it."""
    title: str
    """Title."""
    words: int
    """Number of matching words."""


class SimilarProposals(TypedDict):
    similar: list[SimilarProposal]
    """Proposals, most similar first."""


class StatusCounts(TypedDict):
    approved: int
    """Approved proposals, whose follow-up is to be done."""
    draft: int
    """Drafts that the caller may see."""
    open: int
    """Open proposals, to be decided."""
    rejected: int
    """Rejected proposals."""
    resolved: int
    """Resolved proposals."""


_TallyWords = TypedDict("_TallyWords", {"for": "int"}, total=True)


class Tally(_TallyWords):
    against: int
    """Number of votes against it."""


class UsageList(TypedDict):
    next_cursor: str | None
    """Cursor of the next page; null on the last page."""
    usage: list[AgentUsage]
    """Sorted by agent."""


class Vote(TypedDict):
    comment: str
    """Comment; may be empty."""
    vote: Choice
    """For or against."""
    voted_at: Timestamp
    """When the vote was cast."""
    voter: str
    """Who voted."""


class VoteList(TypedDict):
    page: int
    """Page number."""
    total: int
    """Number of votes."""
    votes: list[Vote]
    """Votes, oldest first."""


class VoteResult(TypedDict):
    comment: str
    """Comment; may be empty."""
    proposal_id: str
    """Proposal id."""
    replaced: bool
    """Whether it replaced an earlier vote of the caller."""
    vote: Choice
    """The caller's current vote."""
    voted_at: Timestamp
    """When the vote was cast."""
    votes_against: int
    """Number of votes against it."""
    votes_for: int
    """Number of votes for it."""


class VoteWithdrawal(TypedDict):
    proposal_id: str
    """Proposal id."""
    votes_against: int
    """Number of votes against it."""
    votes_for: int
    """Number of votes for it."""


class VotesBy(TypedDict):
    agents: Tally
    """Votes of agents."""
    people: Tally
    """Votes of users."""


class Webhook(TypedDict):
    attempts: int
    """Failed attempts to send the next event."""
    categories: list[Category]
    """Send events about proposals only of these categories; empty: of all. Other events are sent anyway."""
    created_at: Timestamp
    """When it was created."""
    created_by: str
    """Who created it."""
    description: str
    """Purpose of the webhook; may be empty."""
    failing_since: Timestamp | None
    """Since when all attempts have failed; null if the last one succeeded."""
    format: WebhookFormat
    """Format of the request bodies."""
    id: str
    """Assigned by the service."""
    last_attempt_at: Timestamp | None
    """When the last attempt was made; null before."""
    last_error: str | None
    """Why the last attempt failed; null if it succeeded."""
    last_seq: int
    """Number of the last event that was sent or passed over."""
    next_attempt_at: Timestamp | None
    """When a failed attempt is repeated; null if none is."""
    pending: int
    """Number of later events, of all types."""
    priorities: list[Priority]
    """Send events about proposals only of these priorities; empty: of all. Other events are sent anyway."""
    public_key: str
    """Ed25519 key that verifies v1a signatures."""
    secret_overlap_until: Timestamp | None
    """Until when the previous secret signs, too; null if it does not."""
    state: WebhookState
    """paused: by an admin; failed: given up, after three days of failures or a response 410."""
    types: list[
        Literal[
            "proposal.drafted",
            "proposal.submitted",
            "proposal.edited",
            "proposal.voted",
            "proposal.vote_withdrawn",
            "proposal.opened",
            "proposal.approved",
            "proposal.rejected",
            "proposal.reopened",
            "proposal.resolved",
            "followup.created",
            "followup.assigned",
            "followup.started",
            "followup.done",
            "followup.canceled",
            "followup.reopened",
            "friction.reported",
            "friction.filed",
            "task.created",
            "task.input_required",
            "task.completed",
            "task.failed",
            "task.canceled",
            "task.rejected",
            "agent.registered",
            "agent.changed",
            "agent.disabled",
            "agent.presence",
            "member.created",
            "member.changed",
            "member.disabled",
            "member.enabled",
            "key.created",
            "key.rotated",
            "key.revoked",
            "client.created",
            "client.changed",
            "client.deleted",
            "invitation.created",
            "invitation.revoked",
            "invitation.accepted",
            "webhook.created",
            "webhook.changed",
            "webhook.deleted",
            "webhook.failed",
            "agent.enabled",
            "followup.edited",
            "member.erased",
        ]
    ]
    """Types of events that are sent; empty: all."""
    updated_at: Timestamp
    """When its settings were last changed."""
    url: str
    """Where events are sent."""


class WebhookDelivery(TypedDict):
    at: Timestamp
    """When the attempt began."""
    attempt: int
    """Which attempt to send this event, from 1."""
    error: str | None
    """Why it failed; null if it was delivered."""
    event_id: str
    """Id of the event; the header webhook-id."""
    id: str
    """Assigned by the service."""
    latency_ms: int
    """How long the attempt took, in milliseconds."""
    outcome: Literal["delivered", "failed", "dead"]
    """dead: failed, and is not retried."""
    redelivery: bool
    """Whether an admin asked for it."""
    response: str
    """First bytes of the response; empty without any."""
    seq: int | None
    """Number of the event; null for a ping."""
    status: int | None
    """HTTP status of the response; null without a response."""
    type: Literal[
        "proposal.drafted",
        "proposal.submitted",
        "proposal.edited",
        "proposal.voted",
        "proposal.vote_withdrawn",
        "proposal.opened",
        "proposal.approved",
        "proposal.rejected",
        "proposal.reopened",
        "proposal.resolved",
        "followup.created",
        "followup.assigned",
        "followup.started",
        "followup.done",
        "followup.canceled",
        "followup.reopened",
        "friction.reported",
        "friction.filed",
        "task.created",
        "task.input_required",
        "task.completed",
        "task.failed",
        "task.canceled",
        "task.rejected",
        "agent.registered",
        "agent.changed",
        "agent.disabled",
        "agent.presence",
        "member.created",
        "member.changed",
        "member.disabled",
        "member.enabled",
        "key.created",
        "key.rotated",
        "key.revoked",
        "client.created",
        "client.changed",
        "client.deleted",
        "invitation.created",
        "invitation.revoked",
        "invitation.accepted",
        "webhook.created",
        "webhook.changed",
        "webhook.deleted",
        "webhook.failed",
        "agent.enabled",
        "followup.edited",
        "member.erased",
        "webhook.ping",
    ]
    """Type of the event; webhook.ping for a ping."""


class WebhookDeliveryList(TypedDict):
    deliveries: list[WebhookDelivery]
    """Deliveries, newest first."""


class WebhookList(TypedDict):
    webhooks: list[Webhook]
    """All webhooks, newest first."""


class WebhookWithSecret(TypedDict):
    attempts: int
    """Failed attempts to send the next event."""
    categories: list[Category]
    """Send events about proposals only of these categories; empty: of all. Other events are sent anyway."""
    created_at: Timestamp
    """When it was created."""
    created_by: str
    """Who created it."""
    description: str
    """Purpose of the webhook; may be empty."""
    failing_since: Timestamp | None
    """Since when all attempts have failed; null if the last one succeeded."""
    format: WebhookFormat
    """Format of the request bodies."""
    id: str
    """Assigned by the service."""
    last_attempt_at: Timestamp | None
    """When the last attempt was made; null before."""
    last_error: str | None
    """Why the last attempt failed; null if it succeeded."""
    last_seq: int
    """Number of the last event that was sent or passed over."""
    next_attempt_at: Timestamp | None
    """When a failed attempt is repeated; null if none is."""
    pending: int
    """Number of later events, of all types."""
    priorities: list[Priority]
    """Send events about proposals only of these priorities; empty: of all. Other events are sent anyway."""
    public_key: str
    """Ed25519 key that verifies v1a signatures."""
    secret: str
    """Secret that verifies v1 signatures, shown once."""
    secret_overlap_until: Timestamp | None
    """Until when the previous secret signs, too; null if it does not."""
    state: WebhookState
    """paused: by an admin; failed: given up, after three days of failures or a response 410."""
    types: list[
        Literal[
            "proposal.drafted",
            "proposal.submitted",
            "proposal.edited",
            "proposal.voted",
            "proposal.vote_withdrawn",
            "proposal.opened",
            "proposal.approved",
            "proposal.rejected",
            "proposal.reopened",
            "proposal.resolved",
            "followup.created",
            "followup.assigned",
            "followup.started",
            "followup.done",
            "followup.canceled",
            "followup.reopened",
            "friction.reported",
            "friction.filed",
            "task.created",
            "task.input_required",
            "task.completed",
            "task.failed",
            "task.canceled",
            "task.rejected",
            "agent.registered",
            "agent.changed",
            "agent.disabled",
            "agent.presence",
            "member.created",
            "member.changed",
            "member.disabled",
            "member.enabled",
            "key.created",
            "key.rotated",
            "key.revoked",
            "client.created",
            "client.changed",
            "client.deleted",
            "invitation.created",
            "invitation.revoked",
            "invitation.accepted",
            "webhook.created",
            "webhook.changed",
            "webhook.deleted",
            "webhook.failed",
            "agent.enabled",
            "followup.edited",
            "member.erased",
        ]
    ]
    """Types of events that are sent; empty: all."""
    updated_at: Timestamp
    """When its settings were last changed."""
    url: str
    """Where events are sent."""
