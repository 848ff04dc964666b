package storetest

import (
	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

func testFollowups(w *world) {
	ctx := w.Context()
	_, err := w.operator.CreateOrg(ctx, "acme", "")
	w.must(err)
	_, err = w.operator.CreateMember(ctx, identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"}, "", false)
	w.must(err)
	_, err = w.agents.Create(ctx, agent.Agent{ID: "bob", Org: "acme", Name: "Bob"})
	w.must(err)
	admin, plain := w.access("acme", "user:ann"), w.access("acme", "user:ann", memberScopes...)

	one, err := w.followups.Create(ctx, plain, followup.Creation{Title: "First", Assignee: "user:ann"})
	w.must(err)
	two, err := w.followups.Create(ctx, plain, followup.Creation{Title: "Second", Description: "More."})
	w.must(err)
	got, err := w.followups.Get(ctx, plain, two.Followup.ID)
	w.must(err)
	if got != two.Followup {
		w.Errorf("follow-up = %+v, want %+v", got, two.Followup)
	}
	_, err = w.followups.Create(ctx, plain, followup.Creation{Title: " "})
	w.want(err, errs.Invalid)
	_, err = w.followups.Create(ctx, plain, followup.Creation{Title: "x", Assignee: "user:nobody"})
	w.want(err, errs.Invalid)
	_, err = w.followups.Create(ctx, plain, followup.Creation{Title: "x", Assignee: "agent:bob"})
	w.want(err, errs.Forbidden) // assigning to an agent is sending it work

	change := func(id string, e followup.Edit) error {
		_, err := w.followups.Change(ctx, admin, id, e)
		return err
	}
	bob, nobody, done, canceled, progress := "agent:bob", "", followup.Done, followup.Canceled, followup.InProgress
	w.must(change(two.Followup.ID, followup.Edit{Assignee: &bob, Status: &progress}))
	w.must(change(two.Followup.ID, followup.Edit{Status: &done}))
	w.want(change(two.Followup.ID, followup.Edit{Status: &canceled}), errs.Conflict)
	stale := int64(1)
	w.want(change(two.Followup.ID, followup.Edit{Assignee: &nobody, IfVersion: &stale}), errs.Stale)
	w.want(change("fup-00000000000000000000009999", followup.Edit{Status: &done}), errs.NotFound)

	p := w.submit(admin, nil)
	_, err = w.proposals.Resolve(ctx, admin, p.ID, proposal.Resolution{Status: proposal.Approved})
	w.must(err)
	for _, c := range []struct {
		q    followup.Query
		want int64
	}{
		{followup.Query{}, 3},
		{followup.Query{Status: followup.All}, 3},
		{followup.Query{Status: followup.Done}, 1},
		{followup.Query{Status: followup.InProgress}, 0},
		{followup.Query{Assignee: "agent:bob"}, 1},
		{followup.Query{Assignee: "user:ann", Status: followup.Open}, 1},
		{followup.Query{Assignee: followup.Unassigned}, 1},
		{followup.Query{ProposalID: p.ID}, 1},
		{followup.Query{ProposalID: "prop-00000000000000000000009999"}, 0},
	} {
		list, total, err := w.followups.List(ctx, plain, &c.q)
		w.must(err)
		if total != c.want || int64(len(list)) != c.want {
			w.Errorf("%+v: %d rows, total %d, want %d", c.q, len(list), total, c.want)
		}
	}
	list, _, err := w.followups.List(ctx, plain, &followup.Query{Page: 3, Limit: 1})
	w.must(err)
	if len(list) != 1 || list[0].ID != one.Followup.ID {
		w.Errorf("the last page is %+v, want the oldest", list)
	}
}

// testIsolation calls every method with the ids of another org.
func testIsolation(w *world) {
	ctx := w.Context()
	for _, org := range []string{"acme", "other"} {
		_, err := w.operator.CreateOrg(ctx, org, "")
		w.must(err)
		// The same name in two orgs stands for two principals.
		_, err = w.operator.CreateMember(ctx, identity.Principal{Org: org, Kind: identity.User, ID: "ann"}, "", true)
		w.must(err)
	}
	ann, eve := w.access("acme", "user:ann"), w.access("other", "user:ann")
	p := w.submit(ann, nil)
	_, err := w.proposals.Vote(ctx, ann, p.ID, proposal.Ballot{Choice: proposal.For})
	w.must(err)
	approved := w.submit(ann, nil)
	out, err := w.proposals.Resolve(ctx, ann, approved.ID, proposal.Resolution{Status: proposal.Approved})
	w.must(err)
	followed := out.Proposal.FollowupID

	title, done := "Stolen", followup.Done
	for name, call := range map[string]func() error{
		"get": func() error { _, err := w.proposals.Get(ctx, eve, p.ID); return err },
		"vote": func() error {
			_, err := w.proposals.Vote(ctx, eve, p.ID, proposal.Ballot{Choice: proposal.For})
			return err
		},
		"withdraw": func() error { _, err := w.proposals.WithdrawVote(ctx, eve, p.ID); return err },
		"votes":    func() error { _, _, err := w.proposals.Votes(ctx, eve, p.ID, &proposal.Paging{}); return err },
		"history":  func() error { _, _, err := w.proposals.History(ctx, eve, p.ID, &proposal.Paging{}); return err },
		"edit":     func() error { _, err := w.proposals.Edit(ctx, eve, p.ID, proposal.Edit{Title: &title}); return err },
		"resolve": func() error {
			_, err := w.proposals.Resolve(ctx, eve, p.ID, proposal.Resolution{Status: proposal.Approved})
			return err
		},
		"follow-up get": func() error { _, err := w.followups.Get(ctx, eve, followed); return err },
		"follow-up change": func() error {
			_, err := w.followups.Change(ctx, eve, followed, followup.Edit{Status: &done})
			return err
		},
	} {
		if err := call(); err == nil || errs.As(err) != errs.ErrNotFound {
			w.Errorf("%s across orgs = %v, want %v", name, err, errs.ErrNotFound)
		}
	}
	for _, q := range []proposal.Query{
		{}, {Status: proposal.All}, {Text: "upload"}, {SubmittedBy: "user:ann"}, {Sort: proposal.SortVotes},
	} {
		page, err := w.proposals.List(ctx, eve, q)
		w.must(err)
		if page.Total != 0 || len(page.Items) != 0 {
			w.Errorf("%+v = %d proposals of another org, total %d, want 0", q, len(page.Items), page.Total)
		}
	}
	for _, q := range []followup.Query{{}, {ProposalID: approved.ID}, {Assignee: followup.Unassigned}} {
		list, total, err := w.followups.List(ctx, eve, &q)
		w.must(err)
		if total != 0 || len(list) != 0 {
			w.Errorf("%+v = %d follow-ups of another org, total %d, want 0", q, len(list), total)
		}
	}
	keys, err := w.operator.Keys(ctx, "other")
	w.must(err)
	if len(keys) != 0 {
		w.Errorf("keys of the other org = %+v, want none", keys)
	}
	cur, err := w.proposals.Get(ctx, ann, p.ID)
	w.must(err)
	if cur.Proposal.Title != p.Title || cur.Proposal.VotesFor != 1 || cur.Proposal.Status != proposal.Open {
		w.Errorf("proposal = %+v, want it unchanged by the other org", cur.Proposal)
	}
}
