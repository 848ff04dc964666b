# Generated from api/openapi.yaml by scripts/generate.py. Do not edit.

"""The operations of the REST API, by resource."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal, cast

from .. import types as t
from .._omit import OMIT, Omit, given
from .._request import Request, join, query_of, without_none
from ._paging import cursor_pages, numbered_pages
from ._transport import AsyncTransport


class AsyncProposalsResource:
    """Proposals."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(
        self,
        *,
        status: Literal["draft", "open", "approved", "rejected", "resolved", "all"] | None = None,
        category: Literal[
            "reliability", "performance", "security", "process", "feature", "documentation", "all"
        ]
        | None = None,
        submitted_by: str | None = None,
        submitted_by_kind: Literal["user", "agent", "service", "all"] | None = None,
        priority: Literal["low", "normal", "high", "all"] | None = None,
        evidence: Literal["yes", "no", "all"] | None = None,
        fingerprint: str | None = None,
        q: str | None = None,
        sort: Literal["review", "newest", "oldest", "votes", "relevance"] | None = None,
        page: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        include: Literal["excerpt"] | None = None,
    ) -> t.ProposalList:
        """List proposals.

        By default open proposals, by priority and then newest first; with q, the most relevant
        first. Requires svc:tasks:read.

        Args:
            status: Filter by status.
            category: Filter by category.
            submitted_by: Filter by submitter, a user or an agent.
            submitted_by_kind: Filter by the kind of the submitter.
            priority: Filter by priority.
            evidence: yes: only proposals filed from reported friction. no: only the others.
            fingerprint: Filter by the friction that filed it.
            q: Search words. All must match, the last one as a prefix. Case and accents do not
                count.
            sort: review: by priority, then newest; the default without q. votes: by net votes
                (for minus against). relevance: words in the title first; the default with q, and
                only with it.
            page: Page number; default 1. Cannot be combined with cursor.
            limit: Page size.
            cursor: Cursor: next_cursor of the previous page, with the same filters and sort.
            include: excerpt adds the beginning of each problem.
        """
        request = Request(
            "GET",
            join("proposals"),
            query=query_of(
                status=status,
                category=category,
                submitted_by=submitted_by,
                submitted_by_kind=submitted_by_kind,
                priority=priority,
                evidence=evidence,
                fingerprint=fingerprint,
                q=q,
                sort=sort,
                page=page,
                limit=limit,
                cursor=cursor,
                include=include,
            ),
        )
        return cast("t.ProposalList", await self._transport.call(request))

    async def all(
        self,
        *,
        status: Literal["draft", "open", "approved", "rejected", "resolved", "all"] | None = None,
        category: Literal[
            "reliability", "performance", "security", "process", "feature", "documentation", "all"
        ]
        | None = None,
        submitted_by: str | None = None,
        submitted_by_kind: Literal["user", "agent", "service", "all"] | None = None,
        priority: Literal["low", "normal", "high", "all"] | None = None,
        evidence: Literal["yes", "no", "all"] | None = None,
        fingerprint: str | None = None,
        q: str | None = None,
        sort: Literal["review", "newest", "oldest", "votes", "relevance"] | None = None,
        include: Literal["excerpt"] | None = None,
    ) -> AsyncIterator[t.ProposalItem]:
        """Iterate over all pages: List proposals.

        By default open proposals, by priority and then newest first; with q, the most relevant
        first. Requires svc:tasks:read.

        Args:
            status: Filter by status.
            category: Filter by category.
            submitted_by: Filter by submitter, a user or an agent.
            submitted_by_kind: Filter by the kind of the submitter.
            priority: Filter by priority.
            evidence: yes: only proposals filed from reported friction. no: only the others.
            fingerprint: Filter by the friction that filed it.
            q: Search words. All must match, the last one as a prefix. Case and accents do not
                count.
            sort: review: by priority, then newest; the default without q. votes: by net votes
                (for minus against). relevance: words in the title first; the default with q, and
                only with it.
            include: excerpt adds the beginning of each problem.
        """
        request = Request(
            "GET",
            join("proposals"),
            query=query_of(
                status=status,
                category=category,
                submitted_by=submitted_by,
                submitted_by_kind=submitted_by_kind,
                priority=priority,
                evidence=evidence,
                fingerprint=fingerprint,
                q=q,
                sort=sort,
                include=include,
            ),
        )
        async for item in cursor_pages(self._transport, request, "proposals"):
            yield cast("t.ProposalItem", item)

    async def submit(
        self,
        *,
        category: t.Category,
        problem: str,
        suggested_fix: str,
        title: str,
        priority: t.Priority | None = None,
        status: Literal["open", "draft"] | None = None,
        idempotency_key: str | None = None,
    ) -> t.Proposal:
        """Submit a proposal.

        Submits a proposal as `open` or as `draft`. Requires svc:tasks:write; services cannot
        submit.

        Args:
            category: Category.
            problem: What is wrong today.
            suggested_fix: How to fix it.
            title: One line that names the improvement.
            priority: Priority for the review; default normal.
            status: Default open. Only its submitter and admins see a draft.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "POST",
            join("proposals"),
            body=without_none(
                category=category,
                priority=priority,
                problem=problem,
                status=status,
                suggested_fix=suggested_fix,
                title=title,
            ),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.Proposal", await self._transport.call(request))

    async def get(self, id: str) -> t.Proposal:
        """Get a proposal.

        The full record, with the caller's own vote. Requires svc:tasks:read.

        Args:
            id: The proposal's id.
        """
        request = Request("GET", join("proposals", id))
        return cast("t.Proposal", await self._transport.call(request))

    async def update(
        self,
        id: str,
        *,
        category: t.Category | None = None,
        duplicate_of: str | None = None,
        priority: t.Priority | None = None,
        problem: str | None = None,
        resolution_note: str | None = None,
        status: t.ProposalStatus | None = None,
        suggested_fix: str | None = None,
        text_version: int | None = None,
        title: str | None = None,
        idempotency_key: str | None = None,
    ) -> t.Proposal:
        """Resolve or edit a proposal.

        With `status`, decides: draft → open → approved | rejected, approved → resolved, rejected
        → open. Requires svc:admin:admin. Approval creates a follow-up. With `text_version`, the
        request fails with 412 proposal.text_changed if the text has changed since; unlike the
        ETag, it does not change with votes. `duplicate_of` rejects the proposal as a duplicate of
        another one. With other fields, edits a draft or an open proposal. Requires
        svc:tasks:write and being the submitter, or svc:admin:admin. A request cannot do both.

        Args:
            id: The proposal's id.
            category: A new category.
            duplicate_of: With the status rejected: id of the duplicated proposal.
            priority: A new priority.
            problem: A new problem.
            resolution_note: Reason of the decision; required to reject, unless duplicate_of is
                set.
            status: A new status; requires svc:admin:admin. Cannot be combined with edited fields.
            suggested_fix: A new suggested fix.
            text_version: The text_version that you read; 412 if the text has changed since. Votes
                do not change it.
            title: A new title.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "PATCH",
            join("proposals", id),
            body=without_none(
                category=category,
                duplicate_of=duplicate_of,
                priority=priority,
                problem=problem,
                resolution_note=resolution_note,
                status=status,
                suggested_fix=suggested_fix,
                text_version=text_version,
                title=title,
            ),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.Proposal", await self._transport.call(request))

    async def vote(
        self,
        id: str,
        *,
        vote: t.Choice,
        comment: str | None = None,
        idempotency_key: str | None = None,
    ) -> t.VoteResult:
        """Vote on a proposal.

        Casts or replaces the caller's vote on an open proposal. Requires svc:tasks:write;
        services cannot vote.

        Args:
            id: The proposal's id.
            vote: For or against.
            comment: Why.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "POST",
            join("proposals", id, "vote"),
            body=without_none(comment=comment, vote=vote),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.VoteResult", await self._transport.call(request))

    async def withdraw_vote(self, id: str) -> t.VoteWithdrawal:
        """Withdraw your vote.

        404 if the caller has no vote. Requires svc:tasks:write.

        Args:
            id: The proposal's id.
        """
        request = Request("DELETE", join("proposals", id, "vote"))
        return cast("t.VoteWithdrawal", await self._transport.call(request))

    async def votes(
        self, id: str, *, page: int | None = None, limit: int | None = None
    ) -> t.VoteList:
        """List the votes on a proposal.

        The current vote of each voter, oldest first. Requires svc:tasks:read.

        Args:
            id: The proposal's id.
            page: Page number; default 1.
            limit: Page size.
        """
        request = Request(
            "GET", join("proposals", id, "votes"), query=query_of(page=page, limit=limit)
        )
        return cast("t.VoteList", await self._transport.call(request))

    async def all_votes(self, id: str) -> AsyncIterator[t.Vote]:
        """Iterate over all pages: List the votes on a proposal.

        The current vote of each voter, oldest first. Requires svc:tasks:read.

        Args:
            id: The proposal's id.
        """
        request = Request("GET", join("proposals", id, "votes"))
        async for item in numbered_pages(self._transport, request, "votes"):
            yield cast("t.Vote", item)

    async def history(
        self, id: str, *, page: int | None = None, limit: int | None = None
    ) -> t.History:
        """List a proposal's history.

        All submissions, edits, status changes and votes, oldest first. Requires svc:tasks:read.

        Args:
            id: The proposal's id.
            page: Page number; default 1.
            limit: Page size.
        """
        request = Request(
            "GET", join("proposals", id, "history"), query=query_of(page=page, limit=limit)
        )
        return cast("t.History", await self._transport.call(request))

    async def all_history(self, id: str) -> AsyncIterator[t.HistoryEntry]:
        """Iterate over all pages: List a proposal's history.

        All submissions, edits, status changes and votes, oldest first. Requires svc:tasks:read.

        Args:
            id: The proposal's id.
        """
        request = Request("GET", join("proposals", id, "history"))
        async for item in numbered_pages(self._transport, request, "history"):
            yield cast("t.HistoryEntry", item)

    async def counts(
        self,
        *,
        category: Literal[
            "reliability", "performance", "security", "process", "feature", "documentation", "all"
        ]
        | None = None,
        submitted_by: str | None = None,
        submitted_by_kind: Literal["user", "agent", "service", "all"] | None = None,
        priority: Literal["low", "normal", "high", "all"] | None = None,
        evidence: Literal["yes", "no", "all"] | None = None,
        fingerprint: str | None = None,
        q: str | None = None,
    ) -> t.ProposalCounts:
        """Count proposals by status.

        The number of proposals per status that match the filters. Drafts are those that the
        caller may see. Requires svc:tasks:read.

        Args:
            category: Filter by category.
            submitted_by: Filter by submitter, a user or an agent.
            submitted_by_kind: Filter by the kind of the submitter.
            priority: Filter by priority.
            evidence: yes: only proposals filed from reported friction. no: only the others.
            fingerprint: Filter by the friction that filed it.
            q: Search words. All must match, the last one as a prefix. Case and accents do not
                count.
        """
        request = Request(
            "GET",
            join("proposals", "counts"),
            query=query_of(
                category=category,
                submitted_by=submitted_by,
                submitted_by_kind=submitted_by_kind,
                priority=priority,
                evidence=evidence,
                fingerprint=fingerprint,
                q=q,
            ),
        )
        return cast("t.ProposalCounts", await self._transport.call(request))

    async def groups(
        self,
        *,
        by: Literal["submitter", "fingerprint"],
        status: Literal["draft", "open", "approved", "rejected", "resolved", "all"] | None = None,
        category: Literal[
            "reliability", "performance", "security", "process", "feature", "documentation", "all"
        ]
        | None = None,
        submitted_by: str | None = None,
        submitted_by_kind: Literal["user", "agent", "service", "all"] | None = None,
        priority: Literal["low", "normal", "high", "all"] | None = None,
        evidence: Literal["yes", "no", "all"] | None = None,
        fingerprint: str | None = None,
        q: str | None = None,
    ) -> t.ProposalGroups:
        """Group proposals.

        The 100 largest groups of proposals, largest first; by default of open ones. It scans all
        matches: 503 search.busy if that takes too long. Requires svc:tasks:read.

        Args:
            by: Property to group by.
            status: Filter by status.
            category: Filter by category.
            submitted_by: Filter by submitter, a user or an agent.
            submitted_by_kind: Filter by the kind of the submitter.
            priority: Filter by priority.
            evidence: yes: only proposals filed from reported friction. no: only the others.
            fingerprint: Filter by the friction that filed it.
            q: Search words. All must match, the last one as a prefix. Case and accents do not
                count.
        """
        request = Request(
            "GET",
            join("proposals", "groups"),
            query=query_of(
                by=by,
                status=status,
                category=category,
                submitted_by=submitted_by,
                submitted_by_kind=submitted_by_kind,
                priority=priority,
                evidence=evidence,
                fingerprint=fingerprint,
                q=q,
            ),
        )
        return cast("t.ProposalGroups", await self._transport.call(request))

    async def find_similar(
        self, *, title: str | None = None, problem: str | None = None, limit: int | None = None
    ) -> t.SimilarProposals:
        """Find proposals similar to a text.

        Likely duplicates of a text, most similar first: open, approved and rejected proposals,
        and the caller's own drafts, that share significant words. Requires svc:tasks:read.

        Args:
            title: Title, or its beginning. Required without problem.
            problem: Problem, or its beginning.
            limit: Maximum number of results.
        """
        request = Request(
            "GET",
            join("proposals", "similar"),
            query=query_of(title=title, problem=problem, limit=limit),
        )
        return cast("t.SimilarProposals", await self._transport.call(request))

    async def similar(self, id: str, *, limit: int | None = None) -> t.SimilarProposals:
        """List proposals similar to a proposal.

        Likely duplicates of a proposal, most similar first. Requires svc:tasks:read.

        Args:
            id: The proposal's id.
            limit: Maximum number of results.
        """
        request = Request("GET", join("proposals", id, "similar"), query=query_of(limit=limit))
        return cast("t.SimilarProposals", await self._transport.call(request))

    async def decide(
        self,
        *,
        items: Sequence[t.DecisionItem],
        status: t.ProposalStatus,
        resolution_note: str | None = None,
        idempotency_key: str | None = None,
    ) -> t.DecisionResults:
        """Decide several proposals.

        Applies one decision to up to 100 proposals, independently of each other. Returns 200 with
        one result per proposal, in order; some of them may have failed. Requires svc:admin:admin.

        Args:
            items: Proposals, each once.
            status: New status of all proposals.
            resolution_note: Reason; required to reject.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "POST",
            join("proposals", "decisions"),
            body=without_none(items=items, resolution_note=resolution_note, status=status),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.DecisionResults", await self._transport.call(request))


class AsyncNotesResource:
    """Notes."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self) -> t.SavedNoteList:
        """List saved notes.

        Reusable resolution notes of the org's admins, sorted by title; at most 100. Requires
        svc:admin:admin.
        """
        request = Request("GET", join("notes"))
        return cast("t.SavedNoteList", await self._transport.call(request))

    async def create(
        self, *, text: str, title: str, idempotency_key: str | None = None
    ) -> t.SavedNote:
        """Save a note.

        409 quota.notes if the org has 100 notes. Requires svc:admin:admin.

        Args:
            text: Text of the resolution note.
            title: Title in the list of notes, one line.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "POST",
            join("notes"),
            body=without_none(text=text, title=title),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.SavedNote", await self._transport.call(request))

    async def delete(self, id: str) -> t.SavedNote:
        """Delete a saved note.

        Returns the deleted note; 404 if repeated. Decisions that used the note keep its text.
        Requires svc:admin:admin.

        Args:
            id: The note's id.
        """
        request = Request("DELETE", join("notes", id))
        return cast("t.SavedNote", await self._transport.call(request))


class AsyncFollowupsResource:
    """Followups."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(
        self,
        *,
        status: Literal["open", "in_progress", "done", "canceled", "all"] | None = None,
        assignee: str | None = None,
        proposal_id: str | None = None,
        page: int | None = None,
        limit: int | None = None,
    ) -> t.FollowupList:
        """List follow-ups.

        Newest first. Requires svc:tasks:read.

        Args:
            status: Filter by status.
            assignee: Filter by assignee; none selects unassigned ones.
            proposal_id: Filter by proposal.
            page: Page number; default 1.
            limit: Page size.
        """
        request = Request(
            "GET",
            join("followups"),
            query=query_of(
                status=status, assignee=assignee, proposal_id=proposal_id, page=page, limit=limit
            ),
        )
        return cast("t.FollowupList", await self._transport.call(request))

    async def all(
        self,
        *,
        status: Literal["open", "in_progress", "done", "canceled", "all"] | None = None,
        assignee: str | None = None,
        proposal_id: str | None = None,
    ) -> AsyncIterator[t.Followup]:
        """Iterate over all pages: List follow-ups.

        Newest first. Requires svc:tasks:read.

        Args:
            status: Filter by status.
            assignee: Filter by assignee; none selects unassigned ones.
            proposal_id: Filter by proposal.
        """
        request = Request(
            "GET",
            join("followups"),
            query=query_of(status=status, assignee=assignee, proposal_id=proposal_id),
        )
        async for item in numbered_pages(self._transport, request, "followups"):
            yield cast("t.Followup", item)

    async def create(
        self,
        *,
        title: str,
        assignee: str | None = None,
        description: str | None = None,
        idempotency_key: str | None = None,
    ) -> t.Followup:
        """Create a follow-up.

        Creates a follow-up without a proposal. Requires svc:tasks:write; assigning it to an agent
        also requires svc:a2a:write that includes the agent.

        Args:
            title: One line that names the work.
            assignee: user:ID or agent:ID. An agent requires svc:a2a:write.
            description: What to do.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "POST",
            join("followups"),
            body=without_none(assignee=assignee, description=description, title=title),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.Followup", await self._transport.call(request))

    async def get(self, id: str) -> t.Followup:
        """Get a follow-up.

        Requires svc:tasks:read.

        Args:
            id: The follow-up's id.
        """
        request = Request("GET", join("followups", id))
        return cast("t.Followup", await self._transport.call(request))

    async def update(
        self,
        id: str,
        *,
        assignee: str | None = None,
        description: str | None = None,
        status: t.FollowupStatus | None = None,
        title: str | None = None,
        idempotency_key: str | None = None,
    ) -> t.Followup:
        """Change a follow-up.

        Changes the given fields. Requires svc:tasks:write; assigning it to an agent also requires
        svc:a2a:write that includes the agent.

        Args:
            id: The follow-up's id.
            assignee: A new assignee; an empty string unassigns.
            description: A new description.
            status: A new status.
            title: A new title.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "PATCH",
            join("followups", id),
            body=without_none(
                assignee=assignee, description=description, status=status, title=title
            ),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.Followup", await self._transport.call(request))


class AsyncFrictionResource:
    """Friction."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def report(
        self,
        *,
        category: t.Category,
        fingerprint: str,
        problem: str,
        title: str,
        evidence: str | None = None,
        occurrence: str | None = None,
        priority: t.Priority | None = None,
        suggested_fix: str | None = None,
        idempotency_key: str | None = None,
    ) -> t.FrictionOutcome:
        """Report friction.

        Counts a report of a recurring problem. The report that reaches the org's threshold files
        a proposal in the reporter's name, with the collected evidence. Later reports only add
        evidence, whatever the status of the proposal. An `occurrence` counts once per reporter.
        Requires svc:tasks:write; services cannot report.

        Args:
            category: Category.
            fingerprint: Identifies the cause; use the same one for the same cause.
            problem: What goes wrong.
            title: One line that names the problem; title of the proposal.
            evidence: A log line or an error; at most 4096 bytes.
            occurrence: Your id, such as a job id. Counts once per reporter.
            priority: Priority for the review; default normal.
            suggested_fix: How to fix it, if known.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "POST",
            join("friction"),
            body=without_none(
                category=category,
                evidence=evidence,
                fingerprint=fingerprint,
                occurrence=occurrence,
                priority=priority,
                problem=problem,
                suggested_fix=suggested_fix,
                title=title,
            ),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.FrictionOutcome", await self._transport.call(request))

    async def list(self, *, cursor: str | None = None, limit: int | None = None) -> t.FrictionList:
        """List reported friction.

        Last reported first. Requires svc:tasks:read.

        Args:
            cursor: Cursor: next_cursor of the previous page.
            limit: Page size.
        """
        request = Request("GET", join("friction"), query=query_of(cursor=cursor, limit=limit))
        return cast("t.FrictionList", await self._transport.call(request))

    async def all(self) -> AsyncIterator[t.Friction]:
        """Iterate over all pages: List reported friction.

        Last reported first. Requires svc:tasks:read.
        """
        request = Request("GET", join("friction"))
        async for item in cursor_pages(self._transport, request, "friction"):
            yield cast("t.Friction", item)

    async def get(self, fingerprint: str) -> t.FrictionRecord:
        """Get reported friction.

        With the evidence of the latest reports, newest first. Requires svc:tasks:read.

        Args:
            fingerprint: Fingerprint.
        """
        request = Request("GET", join("friction", fingerprint))
        return cast("t.FrictionRecord", await self._transport.call(request))

    async def settings(self) -> t.FrictionSettings:
        """Get the friction settings.

        Requires svc:tasks:read.
        """
        request = Request("GET", join("settings", "friction"))
        return cast("t.FrictionSettings", await self._transport.call(request))

    async def set_settings(self, *, threshold: int) -> t.FrictionSettings:
        """Change the friction settings.

        Earlier reports count towards the new threshold. Requires svc:admin:admin.

        Args:
            threshold: 2 to 100 reports, or 0 to file nothing.
        """
        request = Request(
            "PUT",
            join("settings", "friction"),
            body=without_none(threshold=threshold),
            repeatable=True,
        )
        return cast("t.FrictionSettings", await self._transport.call(request))


class AsyncAgentsResource:
    """Agents."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self) -> t.AgentList:
        """List the agents of the org.

        Sorted by id, disabled agents included. A key that is restricted to agents lists only
        these. Requires svc:tasks:read, svc:a2a:write or svc:admin:admin.
        """
        request = Request("GET", join("agents"))
        return cast("t.AgentList", await self._transport.call(request))

    async def create(
        self,
        *,
        id: str,
        description: str | None = None,
        documentation_url: str | None = None,
        icon_url: str | None = None,
        name: str | None = None,
        policy: Mapping[str, Any] | Omit | None = OMIT,
        provider: Mapping[str, Any] | None = None,
        public: bool | None = None,
        quota: Mapping[str, Any] | Omit | None = OMIT,
        relay: Mapping[str, Any] | None = None,
        skills: Sequence[str | Mapping[str, Any]] | None = None,
        version: str | None = None,
        idempotency_key: str | None = None,
    ) -> t.Agent:
        """Register an agent.

        The agent can be called at once, and is offline until a worker connects. With relay, a
        remote A2A agent does its work: the server reads its card, and takes over its skills now
        and every five minutes. 409 if the org already has an agent with this id or, for a public
        agent, if a public agent of another org has or had it. Requires svc:admin:admin.

        Args:
            id: Unique within the org, and part of the agent's URL. The id of a public agent is
                also unique among the public agents of all orgs.
            description: What it does, in a sentence.
            documentation_url: URL of its documentation, for its card.
            icon_url: URL of its icon, for its card.
            name: Display name; required unless it is a relay.
            policy: Deadline and retries of tasks whose sender gives none.
            provider: Organization that offers it, for its card.
            public: Whether other orgs may see and call it.
            quota: How many tasks each other org may send; null for no limit.
            relay: Makes it a relay: a remote A2A agent does its work.
            skills: Skills, as tags or as objects; a relay has those of its remote agent.
            version: Version of the agent, for its card.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "POST",
            join("agents"),
            body=without_none(
                description=description,
                documentation_url=documentation_url,
                icon_url=icon_url,
                id=id,
                name=name,
                provider=provider,
                public=public,
                relay=relay,
                skills=skills,
                version=version,
            )
            | given(policy=policy, quota=quota),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.Agent", await self._transport.call(request))

    async def get(self, id: str) -> t.Agent:
        """Get an agent.

        Requires svc:tasks:read, svc:a2a:write or svc:admin:admin.

        Args:
            id: The agent's id.
        """
        request = Request("GET", join("agents", id))
        return cast("t.Agent", await self._transport.call(request))

    async def update(
        self,
        id: str,
        *,
        description: str | None = None,
        disabled: bool | None = None,
        documentation_url: str | None = None,
        icon_url: str | None = None,
        name: str | None = None,
        policy: Mapping[str, Any] | Omit | None = OMIT,
        provider: Mapping[str, Any] | Omit | None = OMIT,
        public: bool | None = None,
        quota: Mapping[str, Any] | Omit | None = OMIT,
        relay: Mapping[str, Any] | None = None,
        skills: Sequence[str | Mapping[str, Any]] | None = None,
        status: t.AgentStatus | Omit | None = OMIT,
        version: str | None = None,
        idempotency_key: str | None = None,
    ) -> t.Agent:
        """Change, pin or disable an agent.

        Changes the given fields. A disabled agent cannot be called or worked for, and its keys
        are rejected; its tasks stay queued. 409 if the agent tries to disable itself, or becomes
        public while a public agent of another org has or had its id. Requires svc:admin:admin.

        Args:
            id: The agent's id.
            description: A new description.
            disabled: Disabled agents cannot be called or worked for.
            documentation_url: URL of its documentation; empty removes it.
            icon_url: URL of its icon; empty removes it.
            name: A new name.
            policy: Deadline and retries of tasks whose sender gives none; replaces all, null
                removes them.
            provider: Organization that offers it; null removes it.
            public: Whether other orgs may see and call it.
            quota: How many tasks each other org may send; null for no limit.
            relay: Another URL or credential of the remote agent; only for a relay.
            skills: Skills, as tags or as objects; replaces all.
            status: Pins the status; null lets it follow from the workers again.
            version: A new version of the agent; empty removes it.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "PATCH",
            join("agents", id),
            body=without_none(
                description=description,
                disabled=disabled,
                documentation_url=documentation_url,
                icon_url=icon_url,
                name=name,
                public=public,
                relay=relay,
                skills=skills,
                version=version,
            )
            | given(policy=policy, provider=provider, quota=quota, status=status),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.Agent", await self._transport.call(request))

    async def connection(self, id: str) -> t.AgentConnection:
        """Diagnose the workers of an agent.

        Tells whether the agent has workers and, if not, the most likely cause: no key, an unused
        key, a missing scope, a key of another agent, a disabled agent, or a pinned status. Each
        node lists the workers that it refused since its start. Requires svc:admin:admin.

        Args:
            id: The agent's id.
        """
        request = Request("GET", join("agents", id, "connection"))
        return cast("t.AgentConnection", await self._transport.call(request))

    async def find(
        self,
        *,
        q: str | None = None,
        skill: str | None = None,
        presence: t.AgentStatus | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> t.FoundAgents:
        """Find agents to call.

        The agents that the key may reach: those of the org, and the public ones of other orgs.
        With `q`, agents whose id, name or skills have all words come first. Otherwise they are
        sorted by id. A page may be shorter than its limit; `next_cursor` is null on the last one.
        Requires svc:tasks:read, svc:a2a:write or svc:admin:admin.

        Args:
            q: Words of the id, the name, the description and the skills. All must match; the last
                one may be a beginning.
            skill: A tag of a skill, exactly.
            presence: Filter by status.
            limit: Page size.
            cursor: Cursor: next_cursor of the previous page.
        """
        request = Request(
            "GET",
            join("api", "v1", "agents"),
            in_org=False,
            query=query_of(q=q, skill=skill, presence=presence, limit=limit, cursor=cursor),
        )
        return cast("t.FoundAgents", await self._transport.call(request))

    async def all_find(
        self,
        *,
        q: str | None = None,
        skill: str | None = None,
        presence: t.AgentStatus | None = None,
    ) -> AsyncIterator[t.FoundAgent]:
        """Iterate over all pages: Find agents to call.

        The agents that the key may reach: those of the org, and the public ones of other orgs.
        With `q`, agents whose id, name or skills have all words come first. Otherwise they are
        sorted by id. A page may be shorter than its limit; `next_cursor` is null on the last one.
        Requires svc:tasks:read, svc:a2a:write or svc:admin:admin.

        Args:
            q: Words of the id, the name, the description and the skills. All must match; the last
                one may be a beginning.
            skill: A tag of a skill, exactly.
            presence: Filter by status.
        """
        request = Request(
            "GET",
            join("api", "v1", "agents"),
            in_org=False,
            query=query_of(q=q, skill=skill, presence=presence),
        )
        async for item in cursor_pages(self._transport, request, "agents"):
            yield cast("t.FoundAgent", item)

    async def usage(self, *, limit: int | None = None, cursor: str | None = None) -> t.UsageList:
        """Get the usage of quotas.

        What the org has used of the quotas of other orgs' agents in the current window, by agent.
        Agents that the org never called are not listed. Requires svc:a2a:write.

        Args:
            limit: Page size.
            cursor: Cursor: next_cursor of the previous page.
        """
        request = Request(
            "GET",
            join("api", "v1", "me", "usage"),
            in_org=False,
            query=query_of(limit=limit, cursor=cursor),
        )
        return cast("t.UsageList", await self._transport.call(request))

    async def all_usage(self) -> AsyncIterator[t.AgentUsage]:
        """Iterate over all pages: Get the usage of quotas.

        What the org has used of the quotas of other orgs' agents in the current window, by agent.
        Agents that the org never called are not listed. Requires svc:a2a:write.
        """
        request = Request("GET", join("api", "v1", "me", "usage"), in_org=False)
        async for item in cursor_pages(self._transport, request, "usage"):
            yield cast("t.AgentUsage", item)

    async def callers(self, id: str) -> t.AgentCallers:
        """Get the usage of an agent.

        What other orgs have used of the agent's quota in the current window, the largest first;
        at most 100 orgs. Requires svc:admin:admin.

        Args:
            id: The agent's id.
        """
        request = Request("GET", join("agents", id, "usage"))
        return cast("t.AgentCallers", await self._transport.call(request))

    async def refresh(self, id: str) -> t.Agent:
        """Read the card of a relay's remote agent.

        Takes over the skills of the remote agent now, instead of within five minutes. 422 if the
        card cannot be read or used. Requires svc:admin:admin.

        Args:
            id: The agent's id.
        """
        request = Request("POST", join("agents", id, "refresh"))
        return cast("t.Agent", await self._transport.call(request))


class AsyncOrgTasksResource:
    """All A2A tasks of the org."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(
        self,
        *,
        agent: str | None = None,
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
        | None = None,
        context_id: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> t.OrgTaskList:
        """List the tasks of the org's agents.

        Newest first, of all senders. Requires svc:admin:admin.

        Args:
            agent: Filter by agent.
            state: Filter by state.
            context_id: Filter by context.
            cursor: Cursor: next_cursor of the previous page.
            limit: Page size.
        """
        request = Request(
            "GET",
            join("a2a", "tasks"),
            query=query_of(
                agent=agent, state=state, context_id=context_id, cursor=cursor, limit=limit
            ),
        )
        return cast("t.OrgTaskList", await self._transport.call(request))

    async def all(
        self,
        *,
        agent: str | None = None,
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
        | None = None,
        context_id: str | None = None,
    ) -> AsyncIterator[t.OrgTask]:
        """Iterate over all pages: List the tasks of the org's agents.

        Newest first, of all senders. Requires svc:admin:admin.

        Args:
            agent: Filter by agent.
            state: Filter by state.
            context_id: Filter by context.
        """
        request = Request(
            "GET",
            join("a2a", "tasks"),
            query=query_of(agent=agent, state=state, context_id=context_id),
        )
        async for item in cursor_pages(self._transport, request, "tasks"):
            yield cast("t.OrgTask", item)

    async def get(self, id: str) -> t.OrgTaskDetail:
        """Get a task of the org's agents.

        With its messages and artifacts. Requires svc:admin:admin.

        Args:
            id: The task's uid.
        """
        request = Request("GET", join("a2a", "tasks", id))
        return cast("t.OrgTaskDetail", await self._transport.call(request))

    async def push_configs(
        self,
        *,
        state: Literal["active", "done", "dead"] | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> t.PushConfigPage:
        """List the push configurations of all tasks.

        Sorted by task, newest first; `state=dead` lists those that were given up. Tokens,
        credentials and paths are not shown. Requires svc:admin:admin.

        Args:
            state: Filter by state.
            cursor: Cursor: next_cursor of the previous page.
            limit: Page size.
        """
        request = Request(
            "GET", join("a2a", "push"), query=query_of(state=state, cursor=cursor, limit=limit)
        )
        return cast("t.PushConfigPage", await self._transport.call(request))

    async def all_push_configs(
        self, *, state: Literal["active", "done", "dead"] | None = None
    ) -> AsyncIterator[t.PushConfig]:
        """Iterate over all pages: List the push configurations of all tasks.

        Sorted by task, newest first; `state=dead` lists those that were given up. Tokens,
        credentials and paths are not shown. Requires svc:admin:admin.

        Args:
            state: Filter by state.
        """
        request = Request("GET", join("a2a", "push"), query=query_of(state=state))
        async for item in cursor_pages(self._transport, request, "configs"):
            yield cast("t.PushConfig", item)

    async def task_push_configs(self, id: str) -> t.PushConfigList:
        """List the push configurations of a task.

        With the progress of each. Tokens, credentials and paths are not shown. Requires
        svc:admin:admin.

        Args:
            id: The task's uid.
        """
        request = Request("GET", join("a2a", "tasks", id, "push"))
        return cast("t.PushConfigList", await self._transport.call(request))

    async def retry_push_config(
        self, id: str, push: str, *, idempotency_key: str | None = None
    ) -> t.PushConfig:
        """Resume a push configuration that was given up.

        Continues with the event that could not be delivered; no event is lost. 409
        task.push_not_dead if it was not given up. Requires svc:admin:admin.

        Args:
            id: The task's uid.
            push: The configuration's id.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "POST",
            join("a2a", "tasks", id, "push", push, "retry"),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.PushConfig", await self._transport.call(request))

    async def rerun(self, id: str, *, idempotency_key: str | None = None) -> t.OrgTask:
        """Send a task of any sender again.

        Makes a new task with the messages of the sender, the context, the metadata and the policy
        of the old one; a deadline becomes the same time from now. The new task is named after the
        old one, with .2, .3 and so on, and its metadata has its id as parley.dev/rerun_of. Push
        configurations are not copied. 409 task.not_rerunnable unless the task failed, was
        rejected or canceled. The new task belongs to the same sender. Requires svc:admin:admin.

        Args:
            id: The task's uid.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "POST", join("a2a", "tasks", id, "rerun"), keyed=True, idempotency_key=idempotency_key
        )
        return cast("t.OrgTask", await self._transport.call(request))


class AsyncMembersResource:
    """Members."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(
        self,
        *,
        kind: Literal["user", "agent", "service", "all"] | None = None,
        state: Literal["enabled", "disabled", "all"] | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> t.MemberList:
        """List the principals of the org.

        Users, agents and services, sorted by kind and id. Requires svc:admin:admin.

        Args:
            kind: Filter by kind.
            state: Filter by state.
            cursor: Cursor: next_cursor of the previous page.
            limit: Page size.
        """
        request = Request(
            "GET",
            join("members"),
            query=query_of(kind=kind, state=state, cursor=cursor, limit=limit),
        )
        return cast("t.MemberList", await self._transport.call(request))

    async def all(
        self,
        *,
        kind: Literal["user", "agent", "service", "all"] | None = None,
        state: Literal["enabled", "disabled", "all"] | None = None,
    ) -> AsyncIterator[t.Member]:
        """Iterate over all pages: List the principals of the org.

        Users, agents and services, sorted by kind and id. Requires svc:admin:admin.

        Args:
            kind: Filter by kind.
            state: Filter by state.
        """
        request = Request("GET", join("members"), query=query_of(kind=kind, state=state))
        async for item in cursor_pages(self._transport, request, "members"):
            yield cast("t.Member", item)

    async def create(
        self,
        *,
        id: str,
        kind: Literal["user", "service"],
        admin: bool | None = None,
        name: str | None = None,
        idempotency_key: str | None = None,
    ) -> t.Member:
        """Create a user or a service.

        Register agents under …/agents instead. 409 if the id is taken. Requires svc:admin:admin.

        Args:
            id: Id.
            kind: Kind of principal.
            admin: For users: whether the user is an admin in sessions.
            name: Display name; default: the id.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "POST",
            join("members"),
            body=without_none(admin=admin, id=id, kind=kind, name=name),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.Member", await self._transport.call(request))

    async def get(self, ref: str) -> t.Member:
        """Get a principal.

        By its ref, such as `user:ada`. Requires svc:admin:admin.

        Args:
            ref: The principal.
        """
        request = Request("GET", join("members", ref))
        return cast("t.Member", await self._transport.call(request))

    async def update(
        self,
        ref: str,
        *,
        admin: bool | None = None,
        disabled: bool | None = None,
        name: str | None = None,
        idempotency_key: str | None = None,
    ) -> t.Member:
        """Change, disable or enable a principal.

        Changes the given fields. A disabled principal is rejected everywhere within seconds, and
        its streams end within ten seconds; once enabled, its live keys work again. A user who
        stops being an admin loses all keys with svc:admin:admin, and OAuth clients lose that
        scope. 409 if you disable yourself, or if the user is the last enabled admin of the org.
        Requires svc:admin:admin.

        Args:
            ref: The principal.
            admin: For users: whether the user is an admin in sessions.
            disabled: Disabled principals are rejected, with all their keys.
            name: A new name.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "PATCH",
            join("members", ref),
            body=without_none(admin=admin, disabled=disabled, name=name),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.Member", await self._transport.call(request))

    async def erase(self, ref: str) -> t.Member:
        """Erase a user.

        For a person who has left and must not be named any more. The id, the name, the e-mail
        address and every way to sign in go; keys, sessions and programs end. Proposals, votes and
        comments stay, under the pseudonym that is returned. Texts that people wrote are not
        changed. It cannot be undone, and takes some seconds, and longer in an org with a long
        history. If it was interrupted, the same request continues, as does one for the pseudonym;
        if it was completed, it is 404. 409 for an agent or a service, for yourself, and for the
        last enabled admin of the org. Requires svc:admin:admin.

        Args:
            ref: The principal.
        """
        request = Request("DELETE", join("members", ref))
        return cast("t.Member", await self._transport.call(request))

    async def create_link(
        self, ref: str, *, expires_in_seconds: int | None = None, idempotency_key: str | None = None
    ) -> t.MemberLink:
        """Create a password link for a user.

        For a user who cannot sign in. The first person who opens the link sets a new password,
        which ends the user's sessions, so hand it only to the user. It replaces earlier links.
        The URL is returned once, and again for the same Idempotency-Key, body and credentials.
        409 for an agent, a service or a disabled user. Requires svc:admin:admin.

        Args:
            ref: The principal.
            expires_in_seconds: Lifetime of the link; default one day.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "POST",
            join("members", ref, "link"),
            body=without_none(expires_in_seconds=expires_in_seconds),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.MemberLink", await self._transport.call(request))


class AsyncInvitationsResource:
    """Invitations."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(
        self, *, cursor: str | None = None, limit: int | None = None
    ) -> t.InvitationList:
        """List the invitations of the org.

        Newest first, without their URLs. Requires svc:admin:admin.

        Args:
            cursor: Cursor: next_cursor of the previous page.
            limit: Page size.
        """
        request = Request("GET", join("invitations"), query=query_of(cursor=cursor, limit=limit))
        return cast("t.InvitationList", await self._transport.call(request))

    async def all(self) -> AsyncIterator[t.Invitation]:
        """Iterate over all pages: List the invitations of the org.

        Newest first, without their URLs. Requires svc:admin:admin.
        """
        request = Request("GET", join("invitations"))
        async for item in cursor_pages(self._transport, request, "invitations"):
            yield cast("t.Invitation", item)

    async def create(
        self,
        *,
        user: str,
        admin: bool | None = None,
        expires_in_seconds: int | None = None,
        name: str | None = None,
        idempotency_key: str | None = None,
    ) -> t.InvitationWithURL:
        """Invite a person.

        The first person who opens the URL becomes the user, so hand it only to the invited
        person. The URL is returned once, and again for the same Idempotency-Key, body and
        credentials. 409 if the user already exists. Requires svc:admin:admin.

        Args:
            user: Id of the new user.
            admin: Whether the user will be an admin.
            expires_in_seconds: Lifetime; default seven days.
            name: Name of the new user; default: the id.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "POST",
            join("invitations"),
            body=without_none(
                admin=admin, expires_in_seconds=expires_in_seconds, name=name, user=user
            ),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.InvitationWithURL", await self._transport.call(request))

    async def revoke(self, id: str) -> t.Invitation:
        """Revoke an invitation.

        Revoking it again changes nothing. 409 if it was accepted; disable the user instead.
        Requires svc:admin:admin.

        Args:
            id: The invitation's id.
        """
        request = Request("DELETE", join("invitations", id))
        return cast("t.Invitation", await self._transport.call(request))


class AsyncKeysResource:
    """Keys."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(
        self,
        *,
        principal: str | None = None,
        state: Literal["live", "revoked", "expired", "all"] | None = None,
        ends_within: int | None = None,
        never_used: bool | None = None,
        scope: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> t.KeyList:
        """List the keys of the org.

        Newest first, without secrets. Requires svc:admin:admin.

        Args:
            principal: Filter by principal.
            state: Filter by state.
            ends_within: Only live keys that expire within so many days, sorted by expiry.
            never_used: true: only keys that were never used.
            scope: Only keys with this scope.
            cursor: Cursor: next_cursor of the previous page.
            limit: Page size.
        """
        request = Request(
            "GET",
            join("keys"),
            query=query_of(
                principal=principal,
                state=state,
                ends_within=ends_within,
                never_used=never_used,
                scope=scope,
                cursor=cursor,
                limit=limit,
            ),
        )
        return cast("t.KeyList", await self._transport.call(request))

    async def all(
        self,
        *,
        principal: str | None = None,
        state: Literal["live", "revoked", "expired", "all"] | None = None,
        ends_within: int | None = None,
        never_used: bool | None = None,
        scope: str | None = None,
    ) -> AsyncIterator[t.Key]:
        """Iterate over all pages: List the keys of the org.

        Newest first, without secrets. Requires svc:admin:admin.

        Args:
            principal: Filter by principal.
            state: Filter by state.
            ends_within: Only live keys that expire within so many days, sorted by expiry.
            never_used: true: only keys that were never used.
            scope: Only keys with this scope.
        """
        request = Request(
            "GET",
            join("keys"),
            query=query_of(
                principal=principal,
                state=state,
                ends_within=ends_within,
                never_used=never_used,
                scope=scope,
            ),
        )
        async for item in cursor_pages(self._transport, request, "keys"):
            yield cast("t.Key", item)

    async def create(
        self,
        *,
        principal: str,
        scopes: Sequence[str],
        expires_at: t.Timestamp | None = None,
        name: str | None = None,
        idempotency_key: str | None = None,
    ) -> t.KeyWithSecret:
        """Create a key.

        For an agent or a service of the org, or for yourself; 403 for another user. `agent:<id>`
        must name an agent that the org can reach. 409 if the principal is disabled. The secret is
        returned once, and again for the same Idempotency-Key, body and credentials; the server
        stores only its hash. Requires svc:admin:admin.

        Args:
            principal: Principal of the key: agent:ID, service:ID, or yourself.
            scopes: Scopes of the key: svc:tasks:read, svc:tasks:write, svc:admin:admin,
                svc:a2a:write, svc:a2a:serve, agent:ID or agent:*.
            expires_at: Expiry; default never.
            name: Purpose of the key.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "POST",
            join("keys"),
            body=without_none(expires_at=expires_at, name=name, principal=principal, scopes=scopes),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.KeyWithSecret", await self._transport.call(request))

    async def get(self, id: str) -> t.Key:
        """Get a key.

        Without the secret. Requires svc:admin:admin.

        Args:
            id: The key's id.
        """
        request = Request("GET", join("keys", id))
        return cast("t.Key", await self._transport.call(request))

    async def revoke(self, id: str) -> t.Key:
        """Revoke a key.

        The key stops working on all nodes within seconds, and its streams end within ten seconds.
        Revoking it again changes nothing. Requires svc:admin:admin.

        Args:
            id: The key's id.
        """
        request = Request("DELETE", join("keys", id), repeatable=True)
        return cast("t.Key", await self._transport.call(request))

    async def rotate(
        self, id: str, *, overlap_seconds: int | None = None, idempotency_key: str | None = None
    ) -> t.KeyWithSecret:
        """Rotate a key.

        Creates a key with the same principal, scopes, name and expiry. The old key expires after
        the overlap, or at its own expiry if that is earlier. 409 if the key is revoked, expired
        or already replaced, or if its principal is disabled. The secret is returned once, and
        again for the same Idempotency-Key, body and credentials; the server stores only its hash.
        Requires svc:admin:admin.

        Args:
            id: The key's id.
            overlap_seconds: How long the old key keeps working; default 0.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "POST",
            join("keys", id, "rotate"),
            body=without_none(overlap_seconds=overlap_seconds),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.KeyWithSecret", await self._transport.call(request))


class AsyncOwnKeysResource:
    """The caller's own keys."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(
        self,
        *,
        state: Literal["live", "revoked", "expired", "all"] | None = None,
        ends_within: int | None = None,
        never_used: bool | None = None,
        scope: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> t.KeyList:
        """List your own keys.

        Keys of the caller's principal, newest first, without secrets. No scope required; OAuth
        clients that act for a user are rejected.

        Args:
            state: Filter by state.
            ends_within: Only live keys that expire within so many days, sorted by expiry.
            never_used: true: only keys that were never used.
            scope: Only keys with this scope.
            cursor: Cursor: next_cursor of the previous page.
            limit: Page size.
        """
        request = Request(
            "GET",
            join("api", "v1", "me", "keys"),
            in_org=False,
            query=query_of(
                state=state,
                ends_within=ends_within,
                never_used=never_used,
                scope=scope,
                cursor=cursor,
                limit=limit,
            ),
        )
        return cast("t.KeyList", await self._transport.call(request))

    async def all(
        self,
        *,
        state: Literal["live", "revoked", "expired", "all"] | None = None,
        ends_within: int | None = None,
        never_used: bool | None = None,
        scope: str | None = None,
    ) -> AsyncIterator[t.Key]:
        """Iterate over all pages: List your own keys.

        Keys of the caller's principal, newest first, without secrets. No scope required; OAuth
        clients that act for a user are rejected.

        Args:
            state: Filter by state.
            ends_within: Only live keys that expire within so many days, sorted by expiry.
            never_used: true: only keys that were never used.
            scope: Only keys with this scope.
        """
        request = Request(
            "GET",
            join("api", "v1", "me", "keys"),
            in_org=False,
            query=query_of(
                state=state, ends_within=ends_within, never_used=never_used, scope=scope
            ),
        )
        async for item in cursor_pages(self._transport, request, "keys"):
            yield cast("t.Key", item)

    async def create(
        self,
        *,
        scopes: Sequence[str],
        expires_at: t.Timestamp | None = None,
        name: str | None = None,
        idempotency_key: str | None = None,
    ) -> t.KeyWithSecret:
        """Create a key for yourself.

        The scopes and the lifetime must not exceed those of the credential of this request: 403
        and 422 otherwise. In a session, the limits are those of an OAuth client that acts for the
        user. 409 if you have the maximum number of keys. The secret is returned once, and again
        for the same Idempotency-Key, body and credentials; the server stores only its hash. No
        scope required; OAuth clients that act for a user are rejected.

        Args:
            scopes: Scopes of the key, at most those of the credential of this request.
            expires_at: Expiry; default: that of the credential of this request. The default in a
                session is never.
            name: Purpose of the key.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "POST",
            join("api", "v1", "me", "keys"),
            in_org=False,
            body=without_none(expires_at=expires_at, name=name, scopes=scopes),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.KeyWithSecret", await self._transport.call(request))

    async def get(self, id: str) -> t.Key:
        """Get one of your own keys.

        Without the secret. No scope required; OAuth clients that act for a user are rejected.

        Args:
            id: The key's id.
        """
        request = Request("GET", join("api", "v1", "me", "keys", id), in_org=False)
        return cast("t.Key", await self._transport.call(request))

    async def revoke(self, id: str) -> t.Key:
        """Revoke one of your own keys.

        The key stops working on all nodes within seconds. It may be the key of this request.
        Revoking it again changes nothing. No scope required; OAuth clients that act for a user
        are rejected.

        Args:
            id: The key's id.
        """
        request = Request(
            "DELETE", join("api", "v1", "me", "keys", id), in_org=False, repeatable=True
        )
        return cast("t.Key", await self._transport.call(request))

    async def rotate(
        self, id: str, *, overlap_seconds: int | None = None, idempotency_key: str | None = None
    ) -> t.KeyWithSecret:
        """Rotate one of your own keys.

        Creates a key with the same scopes, name and expiry. The old key expires after the
        overlap. 403 if the key has more scopes or a longer lifetime than the credential of this
        request. 409 if the key is revoked, expired or already replaced. The secret is returned
        once, and again for the same Idempotency-Key, body and credentials; the server stores only
        its hash. No scope required; OAuth clients that act for a user are rejected.

        Args:
            id: The key's id.
            overlap_seconds: How long the old key keeps working; default 0.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "POST",
            join("api", "v1", "me", "keys", id, "rotate"),
            in_org=False,
            body=without_none(overlap_seconds=overlap_seconds),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.KeyWithSecret", await self._transport.call(request))


class AsyncOauthClientsResource:
    """OAuth clients."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(
        self, *, cursor: str | None = None, limit: int | None = None
    ) -> t.OAuthClientList:
        """List the clients of the org.

        Newest first, without secrets. Clients that registered themselves belong to no org and are
        not listed. Requires svc:admin:admin.

        Args:
            cursor: Cursor: next_cursor of the previous page.
            limit: Page size.
        """
        request = Request("GET", join("clients"), query=query_of(cursor=cursor, limit=limit))
        return cast("t.OAuthClientList", await self._transport.call(request))

    async def all(self) -> AsyncIterator[t.OAuthClient]:
        """Iterate over all pages: List the clients of the org.

        Newest first, without secrets. Clients that registered themselves belong to no org and are
        not listed. Requires svc:admin:admin.
        """
        request = Request("GET", join("clients"))
        async for item in cursor_pages(self._transport, request, "clients"):
            yield cast("t.OAuthClient", item)

    async def create(
        self,
        *,
        name: str,
        redirect_uris: Sequence[str],
        method: Literal["none", "client_secret_basic", "client_secret_post"] | None = None,
        scopes: Sequence[str] | None = None,
        idempotency_key: str | None = None,
    ) -> t.OAuthClientWithSecret:
        """Register a client.

        Only members of the org can authorize it. It may ask for svc:admin:admin if that is among
        its scopes, but never gets more than the user has. 409 if the org has 1000 clients. The
        secret is returned once, and again for the same Idempotency-Key, body and credentials; the
        server stores only its hash. Requires svc:admin:admin.

        Args:
            name: Name shown on the consent page.
            redirect_uris: Redirect URIs: https, http to the user's own machine, or a custom
                scheme such as com.example.app:/done.
            method: Client authentication at the token endpoint. Default: none, for a client
                without a secret.
            scopes: Scopes that the client may ask for: svc:tasks:read, svc:tasks:write,
                svc:a2a:write, svc:admin:admin, agent:ID or agent:*. Default: all except
                svc:admin:admin.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "POST",
            join("clients"),
            body=without_none(method=method, name=name, redirect_uris=redirect_uris, scopes=scopes),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.OAuthClientWithSecret", await self._transport.call(request))

    async def get(self, id: str) -> t.OAuthClient:
        """Get a client.

        Without the secret. Requires svc:admin:admin.

        Args:
            id: The client's id.
        """
        request = Request("GET", join("clients", id))
        return cast("t.OAuthClient", await self._transport.call(request))

    async def update(
        self,
        id: str,
        *,
        name: str | None = None,
        redirect_uris: Sequence[str] | None = None,
        scopes: Sequence[str] | None = None,
        idempotency_key: str | None = None,
    ) -> t.OAuthClient:
        """Change a client.

        Changes the given fields; grants of users stay. If a scope is removed, tokens with it are
        rejected on all nodes within seconds, and a refresh returns the remaining scopes. If a
        scope is added, users must authorize it again. The method cannot be changed; register
        another client instead. Requires svc:admin:admin.

        Args:
            id: The client's id.
            name: A new name.
            redirect_uris: Redirect URIs; replaces all. Authorization codes that were sent to a
                removed one are rejected.
            scopes: Scopes; replaces all.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "PATCH",
            join("clients", id),
            body=without_none(name=name, redirect_uris=redirect_uris, scopes=scopes),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.OAuthClient", await self._transport.call(request))

    async def delete(self, id: str) -> t.OAuthClient:
        """Delete a client.

        Deletes the client with all grants: its tokens stop working on all nodes within seconds.
        Returns the deleted client; 404 if repeated. Requires svc:admin:admin.

        Args:
            id: The client's id.
        """
        request = Request("DELETE", join("clients", id))
        return cast("t.OAuthClient", await self._transport.call(request))

    async def rotate(
        self, id: str, *, overlap_seconds: int | None = None, idempotency_key: str | None = None
    ) -> t.OAuthClientWithSecret:
        """Rotate the secret of a client.

        The client keeps its id and grants. The current secret works until the overlap ends; an
        older one ends at once. 409 if the client has no secret, because its method is none. The
        secret is returned once, and again for the same Idempotency-Key, body and credentials; the
        server stores only its hash. Requires svc:admin:admin.

        Args:
            id: The client's id.
            overlap_seconds: How long the old secret keeps working; default 0.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "POST",
            join("clients", id, "rotate"),
            body=without_none(overlap_seconds=overlap_seconds),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.OAuthClientWithSecret", await self._transport.call(request))


class AsyncWebhooksResource:
    """Webhooks."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self) -> t.WebhookList:
        """List the webhooks of the org.

        Newest first, without secrets. Requires svc:admin:admin.
        """
        request = Request("GET", join("webhooks"))
        return cast("t.WebhookList", await self._transport.call(request))

    async def create(
        self,
        *,
        url: str,
        categories: Sequence[t.Category] | None = None,
        description: str | None = None,
        format: t.WebhookFormat | None = None,
        priorities: Sequence[t.Priority] | None = None,
        state: Literal["active", "paused"] | None = None,
        types: Sequence[
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
        | None = None,
        idempotency_key: str | None = None,
    ) -> t.WebhookWithSecret:
        """Create a webhook.

        Events that happen from now on are sent to the URL as Standard Webhooks, in their order;
        drafts are never sent. Nothing is sent until an event happens; ping it to test it. 409
        webhook.too_many if the org has as many as it may. The secret is returned once, and again
        for the same Idempotency-Key, body and credentials. 403 auth.confirm in a browser session,
        which alone must not decide where events are sent: use a key or an access token. Requires
        svc:admin:admin.

        Args:
            url: Where to send events: an https URL. Private networks are refused unless the
                operator allows them.
            categories: Send events about proposals only of these categories; empty: of all. Other
                events are sent anyway.
            description: Purpose of the webhook.
            format: Format of the request bodies: standard (Standard Webhooks), cloudevents
                (CloudEvents 1.0, structured JSON), or slack (a line of text for incoming webhooks
                of Slack, Mattermost and Discord). Default: standard.
            priorities: Send events about proposals only of these priorities; empty: of all. Other
                events are sent anyway.
            state: Default active; paused: it sends nothing until it is active.
            types: Types of events to send; empty: all.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "POST",
            join("webhooks"),
            body=without_none(
                categories=categories,
                description=description,
                format=format,
                priorities=priorities,
                state=state,
                types=types,
                url=url,
            ),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.WebhookWithSecret", await self._transport.call(request))

    async def get(self, id: str) -> t.Webhook:
        """Get a webhook.

        With its progress, without the secret. Requires svc:admin:admin.

        Args:
            id: The webhook's id.
        """
        request = Request("GET", join("webhooks", id))
        return cast("t.Webhook", await self._transport.call(request))

    async def update(
        self,
        id: str,
        *,
        categories: Sequence[t.Category] | None = None,
        description: str | None = None,
        format: t.WebhookFormat | None = None,
        priorities: Sequence[t.Priority] | None = None,
        state: Literal["active", "paused"] | None = None,
        types: Sequence[
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
        | None = None,
        url: str | None = None,
        idempotency_key: str | None = None,
    ) -> t.Webhook:
        """Change, pause or resume a webhook.

        Changes the given fields. A webhook that is paused or failed sends nothing; with the state
        active it continues after the last event that it sent or passed over, as far as events are
        still kept. With a new url: 403 auth.confirm in a browser session, which alone must not
        decide where events are sent: use a key or an access token. Requires svc:admin:admin.

        Args:
            id: The webhook's id.
            categories: Send events about proposals only of these categories; empty: of all. Other
                events are sent anyway.
            description: Purpose of the webhook; may be empty.
            format: Format of the request bodies: standard (Standard Webhooks), cloudevents
                (CloudEvents 1.0, structured JSON), or slack (a line of text for incoming webhooks
                of Slack, Mattermost and Discord). Default: standard.
            priorities: Send events about proposals only of these priorities; empty: of all. Other
                events are sent anyway.
            state: paused: it sends nothing; active: it continues where it stopped.
            types: Types of events to send; empty: all.
            url: Where to send events: an https URL. Private networks are refused unless the
                operator allows them.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "PATCH",
            join("webhooks", id),
            body=without_none(
                categories=categories,
                description=description,
                format=format,
                priorities=priorities,
                state=state,
                types=types,
                url=url,
            ),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.Webhook", await self._transport.call(request))

    async def delete(self, id: str) -> t.Webhook:
        """Delete a webhook.

        Deletes the webhook with its deliveries. Returns the deleted webhook; 404 if repeated.
        Requires svc:admin:admin.

        Args:
            id: The webhook's id.
        """
        request = Request("DELETE", join("webhooks", id))
        return cast("t.Webhook", await self._transport.call(request))

    async def rotate(
        self, id: str, *, overlap_seconds: int | None = None, idempotency_key: str | None = None
    ) -> t.WebhookWithSecret:
        """Rotate the secret of a webhook.

        Until the overlap ends, requests are signed with the current secret and the new one; an
        older one ends at once. The public key stays. The secret is returned once, and again for
        the same Idempotency-Key, body and credentials. 403 auth.confirm in a browser session,
        which alone must not decide where events are sent: use a key or an access token. Requires
        svc:admin:admin.

        Args:
            id: The webhook's id.
            overlap_seconds: How long the old secret signs, too; default 0.
            idempotency_key: Repeats with the same key have no further effect for 24 hours.
        """
        request = Request(
            "POST",
            join("webhooks", id, "rotate"),
            body=without_none(overlap_seconds=overlap_seconds),
            keyed=True,
            idempotency_key=idempotency_key,
        )
        return cast("t.WebhookWithSecret", await self._transport.call(request))

    async def deliveries(self, id: str, *, limit: int | None = None) -> t.WebhookDeliveryList:
        """List the last deliveries of a webhook.

        Every attempt, newest first, with what the receiver responded. The last 100 are kept.
        Requires svc:admin:admin.

        Args:
            id: The webhook's id.
            limit: How many.
        """
        request = Request("GET", join("webhooks", id, "deliveries"), query=query_of(limit=limit))
        return cast("t.WebhookDeliveryList", await self._transport.call(request))

    async def ping(self, id: str) -> t.WebhookDelivery:
        """Send a test event to a webhook.

        Sends an event of the type webhook.ping now, whatever the state and the filters of the
        webhook, and returns the outcome: 200 also if the receiver failed. It is sent once and is
        not in the log of events. Requires svc:admin:admin.

        Args:
            id: The webhook's id.
        """
        request = Request("POST", join("webhooks", id, "ping"))
        return cast("t.WebhookDelivery", await self._transport.call(request))

    async def redeliver(
        self, id: str, *, event_id: str | None = None, since: t.Timestamp | None = None
    ) -> t.WebhookDelivery | t.Webhook:
        """Send events to a webhook again.

        With event_id, sends that event now, once, and returns the delivery. With since, the
        webhook continues with the first event at that time or later, and the webhook is returned.
        Receivers recognize what they have by the id of the event. 404 webhook.no_event if the
        event is not kept, or not one that the webhook gets. Requires svc:admin:admin.

        Args:
            id: The webhook's id.
            event_id: Event to send now.
            since: Continue with the first event at this time or later.
        """
        request = Request(
            "POST",
            join("webhooks", id, "redeliver"),
            body=without_none(event_id=event_id, since=since),
        )
        return cast("t.WebhookDelivery | t.Webhook", await self._transport.call(request))


class AsyncAuditResource:
    """The audit log."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        target: str | None = None,
        from_: t.Timestamp | None = None,
        to: t.Timestamp | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> t.AuditLog:
        """Read the audit log of the org.

        Newest first. An entry is written in the same transaction as its action, and never changed
        or deleted. Refusals are limited to 20 at once and one every ten seconds per principal;
        omitted ones are counted. Requires svc:admin:admin.

        Args:
            actor: Filter by actor: a principal, operator, or server.
            action: Filter by action.
            target: Filter by target: an id or a principal.
            from_: Only entries at this time or later.
            to: Only entries before this time.
            cursor: Cursor: next_cursor of the previous page.
            limit: Page size.
        """
        request = Request(
            "GET",
            join("audit"),
            query=query_of(
                actor=actor,
                action=action,
                target=target,
                **{"from": from_},
                to=to,
                cursor=cursor,
                limit=limit,
            ),
        )
        return cast("t.AuditLog", await self._transport.call(request))

    async def all(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        target: str | None = None,
        from_: t.Timestamp | None = None,
        to: t.Timestamp | None = None,
    ) -> AsyncIterator[t.AuditEntry]:
        """Iterate over all pages: Read the audit log of the org.

        Newest first. An entry is written in the same transaction as its action, and never changed
        or deleted. Refusals are limited to 20 at once and one every ten seconds per principal;
        omitted ones are counted. Requires svc:admin:admin.

        Args:
            actor: Filter by actor: a principal, operator, or server.
            action: Filter by action.
            target: Filter by target: an id or a principal.
            from_: Only entries at this time or later.
            to: Only entries before this time.
        """
        request = Request(
            "GET",
            join("audit"),
            query=query_of(actor=actor, action=action, target=target, **{"from": from_}, to=to),
        )
        async for item in cursor_pages(self._transport, request, "entries"):
            yield cast("t.AuditEntry", item)


class AsyncServerResource:
    """The server itself."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def me(self) -> t.Me:
        """Get the principal of the credential.

        Works with any API key or access token. No scope required.
        """
        request = Request("GET", join("api", "v1", "me"), in_org=False)
        return cast("t.Me", await self._transport.call(request))

    async def health(self) -> t.ServerStatus:
        """Check that the server is alive.

        Responds as long as the process runs.
        """
        request = Request("GET", join("healthz"), in_org=False)
        return cast("t.ServerStatus", await self._transport.call(request))

    async def ready(self) -> t.ServerStatus:
        """Check that the server is ready.

        Checks the store, and whether the server is shutting down.
        """
        request = Request("GET", join("readyz"), in_org=False)
        return cast("t.ServerStatus", await self._transport.call(request))

    async def platform_card(self, *, after: str | None = None) -> t.PlatformCard:
        """Get the platform card.

        Lists the public agents. With credentials, the agents of the caller's org come first. No
        credentials required.

        Args:
            after: Cursor: `next` of the previous page.
        """
        request = Request(
            "GET", join(".well-known", "agent.json"), in_org=False, query=query_of(after=after)
        )
        return cast("t.PlatformCard", await self._transport.call(request))
