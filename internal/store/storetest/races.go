package storetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/store"
)

// race runs fn n times concurrently and fails on any error.
func race(w *world, n int, fn func(i int) error) {
	w.Helper()
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			if err := fn(i); err != nil {
				w.Error(err)
			}
		})
	}
	close(start)
	wg.Wait()
}

func testRacingApprovals(w *world) {
	admin := w.access("acme", "user:root")
	const proposals, rivals = 10, 8
	for range proposals {
		p := w.submit(admin, nil)
		var won, lost atomic.Int32
		race(w, rivals, func(int) error {
			_, err := w.proposals.Resolve(w.Context(), admin, p.ID, proposal.Resolution{Status: proposal.Approved})
			switch {
			case err == nil:
				won.Add(1)
			case errs.KindOf(err) == errs.Conflict:
				lost.Add(1)
			default:
				return err
			}
			return nil
		})
		if won.Load() != 1 || lost.Load() != rivals-1 {
			w.Errorf("approvals = %d, refusals = %d, want 1 and %d", won.Load(), lost.Load(), rivals-1)
		}
	}
	_, total, err := w.followups.List(w.Context(), admin, &followup.Query{})
	w.must(err)
	if total != proposals {
		w.Errorf("follow-ups = %d, want %d, one for each approved proposal", total, proposals)
	}
}

func testRacingVotes(w *world) {
	p := w.submit(w.access("acme", "user:root"), nil)
	const voters, each = 8, 5
	race(w, voters*each, func(i int) error {
		a := w.access("acme", fmt.Sprintf("agent:a%d", i%voters), memberScopes...)
		_, err := w.proposals.Vote(w.Context(), a, p.ID, proposal.Ballot{Choice: proposal.Choices[i%2]})
		return err
	})
	admin := w.access("acme", "user:root")
	cur, err := w.proposals.Get(w.Context(), admin, p.ID)
	w.must(err)
	votes, total, err := w.proposals.Votes(w.Context(), admin, p.ID, &proposal.Paging{Limit: 100})
	w.must(err)
	counted := map[proposal.Choice]int{}
	for _, v := range votes {
		counted[v.Choice]++
	}
	if len(votes) != voters || total != voters || cur.Proposal.VotesFor != counted[proposal.For] ||
		cur.Proposal.VotesAgainst != counted[proposal.Against] {
		w.Errorf("%d votes (total %d), %d for and %d against, want %d voters and the record's %d and %d", len(votes), total,
			counted[proposal.For], counted[proposal.Against], voters, cur.Proposal.VotesFor, cur.Proposal.VotesAgainst)
	}
	if cur.Proposal.Version != 1+voters*each {
		w.Errorf("version = %d, want %d after %d votes", cur.Proposal.Version, 1+voters*each, voters*each)
	}
}

func testIdempotency(w *world) {
	ctx := w.Context()
	ann, bob := w.access("acme", "user:ann"), w.access("acme", "user:bob")
	key := func(op, value, body string) *idempotency.Key {
		k, err := idempotency.New(op, value, []byte(body))
		w.must(err)
		return k
	}
	s := proposal.Submission{
		Title: "Once", Category: proposal.Process, Problem: "p", SuggestedFix: "f", Once: key("submit", "k1", "body"),
	}
	first, err := w.proposals.Submit(ctx, ann, s)
	w.must(err)
	again, err := w.proposals.Submit(ctx, ann, s)
	w.must(err)
	if first.Replayed || !again.Replayed || again.Proposal != first.Proposal {
		w.Errorf("first = %+v\nagain = %+v\nwant the second replayed", first, again)
	}
	s.Once = key("submit", "k1", "another body")
	_, err = w.proposals.Submit(ctx, ann, s)
	w.want(err, errs.Invalid)
	s.Once = key("submit", "k1", "body") // the same key of another principal is another key
	other, err := w.proposals.Submit(ctx, bob, s)
	w.must(err)
	if other.Proposal.ID == first.Proposal.ID {
		w.Errorf("proposal of another principal with the same key = %s, want a new one", other.Proposal.ID)
	}

	approve := proposal.Resolution{Status: proposal.Approved, Once: key("patch", "k2", "approve")}
	done, err := w.proposals.Resolve(ctx, ann, first.Proposal.ID, approve)
	w.must(err)
	repeat, err := w.proposals.Resolve(ctx, ann, first.Proposal.ID, approve)
	w.must(err)
	if !repeat.Replayed || repeat.Proposal != done.Proposal {
		w.Errorf("approval = %+v\nrepeat = %+v\nwant the second replayed", done, repeat)
	}
	ballot := proposal.Ballot{Choice: proposal.For, Once: key("vote", "k3", "for")}
	_, err = w.proposals.Vote(ctx, ann, first.Proposal.ID, ballot)
	w.want(err, errs.Conflict) // approved by now; refusals are not kept
	voted, err := w.proposals.Vote(ctx, ann, other.Proposal.ID, ballot)
	w.must(err)
	revoted, err := w.proposals.Vote(ctx, ann, other.Proposal.ID, ballot)
	w.must(err)
	if !revoted.Replayed || *revoted.Vote != *voted.Vote || revoted.Replaced {
		w.Errorf("vote = %+v\nrepeat = %+v\nwant the second replayed", voted, revoted)
	}
	c := followup.Creation{Title: "By hand", Once: key("task", "k4", "x")}
	f, err := w.followups.Create(ctx, ann, c)
	w.must(err)
	f2, err := w.followups.Create(ctx, ann, c)
	w.must(err)
	if !f2.Replayed || f2.Followup != f.Followup {
		w.Errorf("follow-up = %+v\nrepeat = %+v\nwant the second replayed", f, f2)
	}
}

func testIdempotencyExpiry(w *world) {
	ctx := w.Context()
	ann := w.access("acme", "user:ann")
	k, err := idempotency.New("submit", "k", nil)
	w.must(err)
	s := proposal.Submission{Title: "Once a day", Category: proposal.Process, Problem: "p", SuggestedFix: "f", Once: k}
	first, err := w.proposals.Submit(ctx, ann, s)
	w.must(err)
	w.advance(idempotency.TTL + time.Second)
	next, err := w.proposals.Submit(ctx, ann, s)
	w.must(err)
	if next.Replayed || next.Proposal.ID == first.Proposal.ID {
		w.Errorf("outcome with an expired key = %+v, want a new proposal", next)
	}
	if n, err := w.store.Sweep(ctx, w.now(), store.Retention{}); err != nil || len(n) != 0 {
		w.Errorf("swept %v, %v, want no live row", n, err)
	}
	n, err := w.store.Sweep(ctx, w.now().Add(idempotency.TTL+time.Second), store.Retention{})
	if err != nil || n["idempotency keys"] != 1 {
		w.Errorf("swept %v, %v, want one key", n, err)
	}
}

func testRacingKeys(w *world) {
	ann := w.access("acme", "user:ann")
	k, err := idempotency.New("submit", "k", []byte("b"))
	w.must(err)
	var fresh atomic.Int32
	race(w, 8, func(int) error {
		out, err := w.proposals.Submit(w.Context(), ann, proposal.Submission{
			Title: "Once", Category: proposal.Process, Problem: "p", SuggestedFix: "f", Once: k,
		})
		if err == nil && !out.Replayed {
			fresh.Add(1)
		}
		return err
	})
	page, err := w.proposals.List(w.Context(), ann, proposal.Query{})
	w.must(err)
	if fresh.Load() != 1 || page.Total != 1 {
		w.Errorf("%d submits were carried out, %d proposals exist, want 1 and 1", fresh.Load(), page.Total)
	}
}

func testConcurrentSubmits(w *world) {
	const writers, each = 16, 25
	race(w, writers, func(i int) error {
		a := w.access("acme", fmt.Sprintf("agent:a%d", i), memberScopes...)
		for n := range each {
			_, err := w.proposals.Submit(w.Context(), a, proposal.Submission{
				Title: fmt.Sprintf("%d of %d", n, i), Category: proposal.Categories[n%6], Problem: "p", SuggestedFix: "f",
				Priority: proposal.Priorities[n%3],
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	a := w.access("acme", "user:root")
	for _, c := range []struct {
		q    proposal.Query
		want int64
	}{
		{proposal.Query{}, writers * each},
		{proposal.Query{SubmittedBy: "agent:a3"}, each},
		{proposal.Query{Category: proposal.Reliability, SubmittedBy: "agent:a3"}, 5},
		{proposal.Query{Text: "3"}, each + writers},
	} {
		c.q.Limit = 100
		got, total := 0, int64(0)
		for {
			page, err := w.proposals.List(w.Context(), a, c.q)
			w.must(err)
			got, total = got+len(page.Items), page.Total
			if c.q.Cursor = page.Next; c.q.Cursor == "" {
				break
			}
		}
		if c.q.Text == "" && (total != c.want || int64(got) != c.want) || int64(got) != total {
			w.Errorf("%+v: %d rows, total %d, want %d", c.q, got, total, c.want)
		}
	}
}

// testBadNeighbour submits rows concurrently, some of which cannot be stored.
func testBadNeighbour(w *world) {
	ctx := w.Context()
	a := w.access("acme", "user:ann")
	taken := w.submit(a, nil)
	const n = 40
	race(w, n, func(i int) error {
		p := taken
		p.ID = w.newID("prop-")
		if i%4 == 0 {
			p.ID = taken.ID // violates a unique index inside the batch
		}
		_, err := w.store.Proposals().Insert(ctx, p, a.Principal(), nil)
		if i%4 == 0 {
			if errs.KindOf(err) != errs.Conflict || err == nil {
				return fmt.Errorf("a taken id gave %v", err)
			}
			return nil
		}
		return err
	})
	// A panic inside a decision is an error of that write only.
	explode := func(proposal.Current) (proposal.Change, error) { panic("boom") }
	_, err := w.store.Proposals().Update(ctx, taken.ID, "", a.Principal(), nil, explode)
	if err == nil || !strings.Contains(err.Error(), "boom") {
		w.Errorf("error of a panicking decision = %v, want one with boom", err)
	}
	page, err := w.proposals.List(ctx, a, proposal.Query{Limit: 100})
	w.must(err)
	if page.Total != 1+n*3/4 || int64(len(page.Items)) != page.Total {
		w.Errorf("%d rows, total %d, want %d", len(page.Items), page.Total, 1+n*3/4)
	}
}

func testDataVersion(w *world) {
	ctx := w.Context()
	ann, admin := w.access("acme", "user:ann", memberScopes...), w.access("acme", "user:root")
	version := func(org string) uint64 {
		v, err := w.proposals.DataVersion(ctx, w.access(org, "user:ann"))
		w.must(err)
		return v
	}
	last, foreign := version("acme"), version("other")
	moved := func(what string) {
		w.Helper()
		if v := version("acme"); v == last {
			w.Errorf("data version after %s = %d, want another", what, v)
		} else {
			last = v
		}
	}
	p := w.submit(ann, nil)
	moved("a submit")
	_, err := w.proposals.Vote(ctx, ann, p.ID, proposal.Ballot{Choice: proposal.For})
	w.must(err)
	moved("a vote")
	_, err = w.proposals.WithdrawVote(ctx, ann, p.ID)
	w.must(err)
	moved("a withdrawal")
	title := "Other"
	_, err = w.proposals.Edit(ctx, ann, p.ID, proposal.Edit{Title: &title})
	w.must(err)
	moved("an edit")
	_, err = w.proposals.Resolve(ctx, admin, p.ID, proposal.Resolution{Status: proposal.Approved})
	w.must(err)
	moved("an approval")
	if version("other") != foreign {
		w.Errorf("data version of another org = %d, want %d", version("other"), foreign)
	}
}

func testCancelled(w *world) {
	ann := w.access("acme", "user:ann")
	p := w.submit(ann, nil)
	ctx, cancel := context.WithCancel(w.Context())
	decide := func(cur proposal.Current) (proposal.Change, error) {
		cancel() // the caller cancels during the write
		c := proposal.Change{Proposal: cur.Proposal, Entry: proposal.Entry{Kind: proposal.Edited, Actor: "user:ann"}}
		c.Proposal.Title = "Changed"
		return c, nil
	}
	_, err := w.store.Proposals().Update(ctx, p.ID, "", ann.Principal(), nil, decide)
	cur, getErr := w.proposals.Get(w.Context(), ann, p.ID)
	w.must(getErr)
	if (err == nil) != (cur.Proposal.Title == "Changed") {
		w.Errorf("write = %v, title = %q, want the title changed only without an error", err, cur.Proposal.Title)
	}
	w.must(w.store.Ping(w.Context()))
	w.submit(ann, nil)
}
