package storetest

import (
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

func testSubmitAndGet(w *world) {
	ann := w.access("acme", "user:ann", memberScopes...)
	p := w.submit(ann, func(s *proposal.Submission) {
		s.Title, s.Priority, s.Category = "Ünïcode 提案 \"quoted\" 'title'", proposal.High, proposal.Security
		s.Problem = strings.Repeat("长", proposal.MaxText)
	})
	got, err := w.proposals.Get(w.Context(), ann, p.ID)
	w.must(err)
	if diff := cmp.Diff(proposal.Current{Proposal: p}, got); diff != "" {
		w.Error(diff)
	}
	if p.Status != proposal.Open || p.SubmittedBy != "user:ann" || p.Version != 1 {
		w.Errorf("proposal = %+v, want it open, by user:ann, version 1", p)
	}
	for _, id := range []string{
		"prop-00000000000000000000009999", "prop-1", "", "fup-00000000000000000000000001", "prop-'; DROP TABLE",
	} {
		_, err := w.proposals.Get(w.Context(), ann, id)
		w.want(err, errs.NotFound)
	}
}

func testDrafts(w *world) {
	ctx := w.Context()
	ann, bob := w.access("acme", "user:ann", memberScopes...), w.access("acme", "agent:bob", memberScopes...)
	admin := w.access("acme", "user:root")
	draft := w.submit(ann, func(s *proposal.Submission) { s.Status = proposal.Draft })
	w.submit(ann, nil)

	for _, c := range []struct {
		who            string
		a              identity.Access
		drafts, all, q int64
		sees           bool
	}{
		{"its submitter", ann, 1, 2, 2, true},
		{"another member", bob, 0, 1, 1, false},
		{"an admin", admin, 1, 2, 2, true},
	} {
		for _, l := range []struct {
			q    proposal.Query
			want int64
		}{
			{proposal.Query{Status: proposal.Draft}, c.drafts},
			{proposal.Query{Status: proposal.All}, c.all},
			{proposal.Query{Status: proposal.All, SubmittedBy: "user:ann"}, c.all},
			{proposal.Query{Status: proposal.Draft, SubmittedBy: "user:ann"}, c.drafts},
			{proposal.Query{Status: proposal.Draft, SubmittedBy: "agent:bob"}, 0},
			{proposal.Query{Status: proposal.All, Text: "upload"}, c.q},
			{proposal.Query{Status: proposal.Draft, Text: "upload"}, c.drafts},
		} {
			page, err := w.proposals.List(ctx, c.a, l.q)
			w.must(err)
			if page.Total != l.want || int64(len(page.Items)) != l.want {
				w.Errorf("%s lists %+v: total %d, %d items, want %d", c.who, l.q, page.Total, len(page.Items), l.want)
			}
		}
		_, err := w.proposals.Get(ctx, c.a, draft.ID)
		if c.sees {
			w.must(err)
		} else {
			w.want(err, errs.NotFound)
			_, err = w.proposals.Vote(ctx, c.a, draft.ID, proposal.Ballot{Choice: proposal.For})
			w.want(err, errs.NotFound)
			_, _, err = w.proposals.History(ctx, c.a, draft.ID, &proposal.Paging{})
			w.want(err, errs.NotFound)
		}
	}
	_, err := w.proposals.Vote(ctx, ann, draft.ID, proposal.Ballot{Choice: proposal.For})
	w.want(err, errs.Conflict)
}

func testVotes(w *world) {
	ctx := w.Context()
	ann, bob := w.access("acme", "user:ann", memberScopes...), w.access("acme", "agent:ann", memberScopes...)
	p := w.submit(ann, nil)
	vote := func(a identity.Access, c proposal.Choice, comment string) proposal.Outcome {
		w.Helper()
		out, err := w.proposals.Vote(ctx, a, p.ID, proposal.Ballot{Choice: c, Comment: comment})
		w.must(err)
		return out
	}
	tally := func(out proposal.Outcome, forVotes, against int, replaced bool) {
		w.Helper()
		if out.Proposal.VotesFor != forVotes || out.Proposal.VotesAgainst != against || out.Replaced != replaced {
			w.Errorf("votes are %d for, %d against, replaced %v, want %d, %d, %v",
				out.Proposal.VotesFor, out.Proposal.VotesAgainst, out.Replaced, forVotes, against, replaced)
		}
	}
	tally(vote(ann, proposal.For, "yes"), 1, 0, false)
	tally(vote(bob, proposal.For, ""), 2, 0, false) // agent:ann is not user:ann
	tally(vote(ann, proposal.Against, "no"), 1, 1, true)
	tally(vote(ann, proposal.Against, "still no"), 1, 1, true)

	votes, total, err := w.proposals.Votes(ctx, ann, p.ID, &proposal.Paging{})
	w.must(err)
	if total != 2 || len(votes) != 2 || votes[0].Voter != "agent:ann" || votes[1].Comment != "still no" {
		w.Errorf("votes = %+v, total %d, want those of agent:ann and user:ann", votes, total)
	}
	second, _, err := w.proposals.Votes(ctx, ann, p.ID, &proposal.Paging{Page: 2, Limit: 1})
	w.must(err)
	if diff := cmp.Diff(votes[1:], second); diff != "" {
		w.Error(diff)
	}
	cur, err := w.proposals.Get(ctx, ann, p.ID)
	w.must(err)
	if cur.Vote == nil || cur.Vote.Choice != proposal.Against {
		w.Errorf("own vote = %+v, want %s", cur.Vote, proposal.Against)
	}
	page, err := w.proposals.List(ctx, bob, proposal.Query{})
	w.must(err)
	if page.Items[0].MyVote != proposal.For || page.Items[0].VotesAgainst != 1 {
		w.Errorf("listed = %+v, want the own vote %s and 1 against", page.Items[0], proposal.For)
	}

	out, err := w.proposals.WithdrawVote(ctx, ann, p.ID)
	w.must(err)
	tally(out, 1, 0, false)
	_, err = w.proposals.WithdrawVote(ctx, ann, p.ID)
	w.want(err, errs.NotFound)
	if cur, err := w.proposals.Get(ctx, ann, p.ID); err != nil || cur.Vote != nil {
		w.Errorf("own vote after the withdrawal = %+v, %v, want none", cur.Vote, err)
	}
}

func testHistory(w *world) {
	ctx := w.Context()
	ann, admin := w.access("acme", "user:ann", memberScopes...), w.access("acme", "user:root")
	p := w.submit(ann, nil)
	title, priority := "Retry every upload", proposal.High
	_, err := w.proposals.Edit(ctx, ann, p.ID, proposal.Edit{Title: &title, Priority: &priority})
	w.must(err)
	_, err = w.proposals.Edit(ctx, ann, p.ID, proposal.Edit{Title: &title}) // changes nothing
	w.must(err)
	_, err = w.proposals.Vote(ctx, ann, p.ID, proposal.Ballot{Choice: proposal.For, Comment: "mine"})
	w.must(err)
	_, err = w.proposals.WithdrawVote(ctx, ann, p.ID)
	w.must(err)
	_, err = w.proposals.Resolve(ctx, admin, p.ID, proposal.Resolution{Status: proposal.Rejected, Note: "too dear"})
	w.must(err)
	out, err := w.proposals.Resolve(ctx, admin, p.ID, proposal.Resolution{Status: proposal.Open})
	w.must(err)
	if out.Proposal.ResolutionNote != "" {
		w.Errorf("note of a reopened proposal = %q, want none", out.Proposal.ResolutionNote)
	}

	got, total, err := w.proposals.History(ctx, ann, p.ID, &proposal.Paging{})
	w.must(err)
	want := []proposal.Entry{
		{Seq: 1, Actor: "user:ann", Kind: proposal.Submitted, To: proposal.Open},
		{Seq: 2, Actor: "user:ann", Kind: proposal.Edited, Changes: []proposal.FieldChange{
			{Field: "title", From: "Retry the upload", To: title}, {Field: "priority", From: "normal", To: "high"},
		}},
		{Seq: 3, Actor: "user:ann", Kind: proposal.Voted, Choice: proposal.For, Comment: "mine"},
		{Seq: 4, Actor: "user:ann", Kind: proposal.VoteWithdrawn, Choice: proposal.For},
		{
			Seq: 5, Actor: "user:root", Kind: proposal.StatusChanged, From: proposal.Open, To: proposal.Rejected,
			Note: "too dear",
		},
		{Seq: 6, Actor: "user:root", Kind: proposal.StatusChanged, From: proposal.Rejected, To: proposal.Open},
	}
	last := time.Time{}
	for i := range got {
		if !got[i].At.After(last) {
			w.Errorf("entry %d is at %s, want later than %s", i, got[i].At, last)
		}
		last, got[i].At = got[i].At, time.Time{}
	}
	if diff := cmp.Diff(want, got); diff != "" || total != int64(len(want)) {
		w.Errorf("total = %d, want %d; diff of the entries (-want +got):\n%s", total, len(want), diff)
	}
	tail, _, err := w.proposals.History(ctx, ann, p.ID, &proposal.Paging{Page: 2, Limit: 5})
	w.must(err)
	if len(tail) != 1 || tail[0].Seq != 6 {
		w.Errorf("page 2 = %+v, want entry 6", tail)
	}
}

func testStatusTable(w *world) {
	ctx := w.Context()
	ann, admin := w.access("acme", "user:ann", memberScopes...), w.access("acme", "user:root")
	// path has the transitions that lead a new proposal to each status.
	path := map[proposal.Status][]proposal.Status{
		proposal.Draft: {}, proposal.Open: {proposal.Open}, proposal.Approved: {proposal.Open, proposal.Approved},
		proposal.Rejected: {proposal.Open, proposal.Rejected},
		proposal.Resolved: {proposal.Open, proposal.Approved, proposal.Resolved},
	}
	allowed := map[[2]proposal.Status]bool{
		{proposal.Draft, proposal.Open}:        true,
		{proposal.Open, proposal.Approved}:     true,
		{proposal.Open, proposal.Rejected}:     true,
		{proposal.Approved, proposal.Resolved}: true,
		{proposal.Rejected, proposal.Open}:     true,
	}
	for _, from := range proposal.Statuses {
		for _, to := range proposal.Statuses {
			p := w.submit(ann, func(s *proposal.Submission) { s.Status = proposal.Draft })
			for _, step := range path[from] {
				_, err := w.proposals.Resolve(ctx, admin, p.ID, proposal.Resolution{Status: step, Note: "because"})
				w.must(err)
			}
			out, err := w.proposals.Resolve(ctx, admin, p.ID, proposal.Resolution{Status: to, Note: "because"})
			if !allowed[[2]proposal.Status{from, to}] {
				w.want(err, errs.Conflict)
				continue
			}
			w.must(err)
			if out.Proposal.Status != to {
				w.Errorf("%s → %s: status = %s, want %s", from, to, out.Proposal.Status, to)
			}
			if to != proposal.Approved {
				continue
			}
			f, err := w.followups.Get(ctx, admin, out.Proposal.FollowupID)
			w.must(err)
			if f.ProposalID != p.ID || f.Title != p.Title || f.Description != p.SuggestedFix || f.TextHash != p.TextHash() {
				w.Errorf("follow-up = %+v, want title, fix and hash of %s", f, p.ID)
			}
		}
	}
	p := w.submit(ann, nil)
	_, err := w.proposals.Resolve(ctx, admin, p.ID, proposal.Resolution{Status: proposal.Rejected, Note: " "})
	w.want(err, errs.Invalid)
	_, err = w.proposals.Resolve(ctx, ann, p.ID, proposal.Resolution{Status: proposal.Approved})
	w.want(err, errs.Forbidden)
	stale := int64(7)
	_, err = w.proposals.Resolve(ctx, admin, p.ID, proposal.Resolution{Status: proposal.Approved, IfVersion: &stale})
	w.want(err, errs.Stale)
	other := w.access("acme", "agent:bob", memberScopes...)
	title := "Mine now"
	_, err = w.proposals.Edit(ctx, other, p.ID, proposal.Edit{Title: &title})
	w.want(err, errs.Forbidden)
}
