package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// testTextVersion: a decision refers to a version of the text. Votes keep it, edits change it.
func testTextVersion(w *world) {
	ctx := w.Context()
	ann, root := w.access("acme", "user:ann", memberScopes...), w.access("acme", "user:root")
	p := w.submit(ann, nil)
	read := p.TextVersion
	if cur, err := w.proposals.Get(ctx, ann, p.ID); err != nil || read != 1 || cur.Proposal.TextVersion != 1 {
		w.Fatalf("version of a new text = %d, read as %d, %v, want 1", read, cur.Proposal.TextVersion, err)
	}
	version := func() int64 {
		cur, err := w.proposals.Get(ctx, ann, p.ID)
		w.must(err)
		page, err := w.proposals.List(ctx, ann, proposal.Query{})
		w.must(err)
		if len(page.Items) != 1 || page.Items[0].TextVersion != cur.Proposal.TextVersion {
			w.Errorf("listed = %+v, want version %d", page.Items, cur.Proposal.TextVersion)
		}
		return cur.Proposal.TextVersion
	}
	_, err := w.proposals.Vote(ctx, ann, p.ID, proposal.Ballot{Choice: proposal.For})
	w.must(err)
	high, security := proposal.High, proposal.Security
	_, err = w.proposals.Edit(ctx, ann, p.ID, proposal.Edit{Priority: &high, Category: &security})
	w.must(err)
	if got := version(); got != 1 {
		w.Errorf("version after a vote, a priority and a category = %d, want 1", got)
	}
	for i, edit := range []proposal.Edit{
		{Title: ptr("Another")}, {Problem: ptr("Another.")}, {SuggestedFix: ptr("Another.")},
	} {
		out, err := w.proposals.Edit(ctx, ann, p.ID, edit)
		w.must(err)
		if got := version(); got != int64(i+2) || out.Proposal.TextVersion != got {
			w.Errorf("edit %d: version = %d, returned %d, want %d", i+1, got, out.Proposal.TextVersion, i+2)
		}
	}
	decide := func(v int64) error {
		_, err := w.proposals.Resolve(ctx, root, p.ID, proposal.Resolution{Status: proposal.Approved, IfTextVersion: &v})
		return err
	}
	err = decide(read)
	w.want(err, errs.Stale)
	if e := errs.As(err); e.Code != "proposal.text_changed" || !strings.Contains(e.Message, "version 4 now") {
		w.Errorf("error = %s: %s, want proposal.text_changed that names version 4", e.Code, e.Message)
	}
	bob := w.access("acme", "agent:bob", memberScopes...)
	_, err = w.proposals.Vote(ctx, bob, p.ID, proposal.Ballot{Choice: proposal.For})
	w.must(err)
	w.must(decide(4))
}

func testVotesApart(w *world) {
	ctx := w.Context()
	ann, bob := w.access("acme", "user:ann", memberScopes...), w.access("acme", "agent:bob", memberScopes...)
	cy := w.access("acme", "agent:cy", memberScopes...)
	p := w.submit(ann, nil)
	vote := func(a identity.Access, c proposal.Choice) func() error {
		return func() error {
			_, err := w.proposals.Vote(ctx, a, p.ID, proposal.Ballot{Choice: c})
			return err
		}
	}
	type tallies struct{ People, Agents proposal.Tally }
	for i, c := range []struct {
		do   func() error
		want tallies
	}{
		{vote(ann, proposal.For), tallies{People: proposal.Tally{For: 1}}},
		{vote(bob, proposal.For), tallies{proposal.Tally{For: 1}, proposal.Tally{For: 1}}},
		{vote(cy, proposal.Against), tallies{proposal.Tally{For: 1}, proposal.Tally{For: 1, Against: 1}}},
		{vote(bob, proposal.Against), tallies{proposal.Tally{For: 1}, proposal.Tally{Against: 2}}},
		{vote(ann, proposal.Against), tallies{proposal.Tally{Against: 1}, proposal.Tally{Against: 2}}},
		{
			func() error { _, err := w.proposals.WithdrawVote(ctx, cy, p.ID); return err },
			tallies{proposal.Tally{Against: 1}, proposal.Tally{Against: 1}},
		},
		{
			func() error { _, err := w.proposals.WithdrawVote(ctx, ann, p.ID); return err },
			tallies{Agents: proposal.Tally{Against: 1}},
		},
	} {
		w.must(c.do())
		cur, err := w.proposals.Get(ctx, ann, p.ID)
		w.must(err)
		page, err := w.proposals.List(ctx, ann, proposal.Query{})
		w.must(err)
		for _, got := range []*proposal.Proposal{&cur.Proposal, &page.Items[0].Proposal} {
			if diff := gocmp.Diff(c.want, tallies{got.People(), got.Agents()}); diff != "" {
				w.Errorf("after step %d: diff of the tallies (-want +got):\n%s", i+1, diff)
			}
		}
	}
}

// friction reports a friction n times and returns the id of the filed proposal.
func (w *world) friction(a identity.Access, fingerprint string, n int) string {
	w.Helper()
	id := ""
	for range n {
		out, err := w.frictions.Report(w.Context(), a, friction.Report{
			Fingerprint: fingerprint, Title: "Slow " + fingerprint, Category: "security", Problem: "It is slow.",
			SuggestedFix: "Hurry.",
		})
		w.must(err)
		id = out.Friction.ProposalID
	}
	return id
}

// testEvidenceOfProposals: reports after the filing count, and do not conflict with decisions.
func testEvidenceOfProposals(w *world) {
	ctx := w.Context()
	bob, root := w.access("acme", "agent:bob", memberScopes...), w.access("acme", "user:root")
	own := w.submit(bob, nil)
	id := w.friction(bob, "ci:slow", friction.DefaultThreshold)
	w.friction(w.access("other", "agent:bob", memberScopes...), "ci:slow", 7)
	check := func(want int64) proposal.Proposal {
		w.Helper()
		cur, err := w.proposals.Get(ctx, bob, id)
		w.must(err)
		page, err := w.proposals.List(ctx, bob, proposal.Query{Evidence: proposal.WithEvidence})
		w.must(err)
		if len(page.Items) != 1 || page.Total != 1 {
			w.Fatalf("proposals with evidence = %d of %d, want 1", len(page.Items), page.Total)
		}
		for _, p := range []*proposal.Proposal{&cur.Proposal, &page.Items[0].Proposal} {
			if p.ID != id || p.Fingerprint != "ci:slow" || p.Evidence != want || p.TextVersion != 1 {
				w.Errorf("%+v, want %d reports of ci:slow", p, want)
			}
		}
		return cur.Proposal
	}
	before := check(3)
	data, err := w.store.Proposals().DataVersion(ctx, "acme")
	w.must(err)
	w.friction(bob, "ci:slow", 2)
	after := check(5)
	if after.Version != before.Version || !after.UpdatedAt.Equal(before.UpdatedAt) {
		w.Errorf("proposal after reports = %+v, want version %d, updated at %s", after, before.Version, before.UpdatedAt)
	}
	if now, err := w.store.Proposals().DataVersion(ctx, "acme"); err != nil || now == data {
		w.Errorf("data version after a report = %d, %v, want another than %d", now, err, data)
	}
	// A proposal that was read before the reports can be decided on, which keeps the evidence.
	_, err = w.proposals.Vote(ctx, bob, id, proposal.Ballot{Choice: proposal.For})
	w.must(err)
	check(5)
	_, err = w.proposals.Resolve(ctx, root, id, proposal.Resolution{
		Status: proposal.Rejected, Note: "no", IfVersion: ptr(before.Version + 1), IfTextVersion: &before.TextVersion,
	})
	w.must(err)
	w.friction(bob, "ci:slow", 1)
	for _, c := range []struct {
		q    proposal.Query
		want []string
	}{
		{proposal.Query{Fingerprint: "ci:slow"}, []string{}},
		{proposal.Query{Fingerprint: "ci:slow", Status: proposal.All}, []string{id}},
		{proposal.Query{Fingerprint: "ci:slow", Status: proposal.Rejected, Evidence: proposal.WithEvidence}, []string{id}},
		{proposal.Query{Fingerprint: "ci:slow", Status: proposal.All, Evidence: proposal.WithoutEvidence}, []string{}},
		{proposal.Query{Fingerprint: "ci:slow", Status: proposal.All, Sort: proposal.SortVotes, Text: "slow"}, []string{id}},
		{proposal.Query{Fingerprint: "ci:fast", Status: proposal.All}, []string{}},
		{proposal.Query{Evidence: proposal.WithoutEvidence, Status: proposal.All}, []string{own.ID}},
		{proposal.Query{Evidence: proposal.WithEvidence, Status: proposal.All, Text: "slow"}, []string{id}},
		{proposal.Query{Kind: identity.Service, Status: proposal.All}, []string{}},
		{proposal.Query{SubmittedBy: "user", Status: proposal.All}, []string{}},
	} {
		page, err := w.proposals.List(ctx, bob, c.q)
		w.must(err)
		if diff := gocmp.Diff(c.want, ids(page.Items)); diff != "" || page.Total != int64(len(c.want)) {
			w.Errorf("%+v: total = %d, want %d; diff of the ids (-want +got):\n%s", c.q, page.Total, len(c.want), diff)
		}
	}
}

// testTriageAgainstModel compares the filters by kind of submitter and evidence, and the counts
// by status, with a scan.
func testTriageAgainstModel(w *world) {
	ctx := w.Context()
	all := populate(w, 90)
	filers := []identity.Access{
		w.access("acme", "user:ann", memberScopes...), w.access("acme", "agent:bob", memberScopes...),
	}
	for i := range 12 {
		filed := w.friction(filers[i%2], fmt.Sprintf("f%d", i), friction.DefaultThreshold)
		cur, err := w.proposals.Get(ctx, filers[0], filed)
		w.must(err)
		if i%3 == 0 {
			out, err := w.proposals.Resolve(ctx, w.access("acme", "user:root"), cur.Proposal.ID,
				proposal.Resolution{Status: proposal.Approved})
			w.must(err)
			cur.Proposal = out.Proposal
		}
		all = append(all, cur.Proposal)
	}
	w.friction(w.access("other", "user:eve"), "f1", 3) // must never appear
	viewers := []identity.Access{filers[0], filers[1], w.access("acme", "user:root")}
	for _, a := range viewers {
		for _, kind := range []identity.Kind{"", identity.User, identity.Agent} {
			for _, evidence := range []proposal.Evidence{"", proposal.WithEvidence, proposal.WithoutEvidence} {
				for _, category := range []proposal.Category{"", proposal.Security} {
					for _, by := range []string{"", "agent:bob", "user:ann"} {
						q := proposal.Query{Category: category, SubmittedBy: by, Kind: kind, Evidence: evidence}
						compareTriage(w, all, a, q)
					}
				}
			}
		}
	}
}

func compareTriage(w *world, all []proposal.Proposal, a identity.Access, q proposal.Query) {
	ctx := w.Context()
	all = slices.DeleteFunc(slices.Clone(all), func(p proposal.Proposal) bool {
		kind := identity.Agent
		if strings.HasPrefix(p.SubmittedBy, "user:") {
			kind = identity.User
		}
		return q.Kind != "" && q.Kind != kind || q.Evidence == proposal.WithEvidence && p.Fingerprint == "" ||
			q.Evidence == proposal.WithoutEvidence && p.Fingerprint != ""
	})
	counts := map[proposal.Status]int64{}
	sort := 0
	for _, q.Status = range append([]proposal.Status{proposal.All}, proposal.Statuses...) {
		for _, q.Priority = range []proposal.Priority{"", proposal.High} {
			sort++ // each combination has one sort, and each filter every sort
			q.Sort, q.Limit = proposal.Sorts[(sort+sort/4)%len(proposal.Sorts)], 100
			want := model(all, a, q)
			page, err := w.proposals.List(ctx, a, q)
			w.must(err)
			if diff := gocmp.Diff(want[:min(len(want), 100)], ids(page.Items)); diff != "" || page.Total != int64(len(want)) {
				w.Fatalf("%s %+v: total %d, want %d\n%s", a.Principal().Ref(), q, page.Total, len(want), diff)
			}
			if q.Priority == "" && q.Status != proposal.All {
				counts[q.Status] = int64(len(want))
			}
			if q.Limit = 3; len(want) <= 3 || q.Priority != "" {
				continue
			}
			first, err := w.proposals.List(ctx, a, q)
			w.must(err)
			second := q
			second.Cursor = first.Next
			next, err := w.proposals.List(ctx, a, second)
			w.must(err)
			if diff := gocmp.Diff(want[3:min(len(want), 6)], ids(next.Items)); diff != "" {
				w.Fatalf("%s %+v: second page: diff of the ids (-want +got):\n%s", a.Principal().Ref(), q, diff)
			}
		}
	}
	for _, text := range []string{"", "p"} { // "Proposal …"
		q := proposal.Query{
			Category: q.Category, SubmittedBy: q.SubmittedBy, Kind: q.Kind, Evidence: q.Evidence, Text: text,
		}
		if text != "" && q.Evidence != proposal.WithoutEvidence {
			continue
		}
		got, err := w.proposals.Counts(ctx, a, q)
		w.must(err)
		if !maps.Equal(got, counts) {
			w.Fatalf("%s %+v: counts %v, want %v", a.Principal().Ref(), q, got, counts)
		}
	}
}

func testExcerpts(w *world) {
	ctx := w.Context()
	ann := w.access("acme", "user:ann", memberScopes...)
	w.submit(ann, func(s *proposal.Submission) { s.Problem = " One\n\n two\tthree. " })
	w.submit(ann, func(s *proposal.Submission) { s.Problem = strings.Repeat("北京 ", 2000) })
	page, err := w.proposals.List(ctx, ann, proposal.Query{Sort: proposal.SortOldest, Excerpt: true})
	w.must(err)
	want := []string{"One two three.", strings.TrimSpace(strings.Repeat("北京 ", 80)) + "…"}
	got := []string{page.Items[0].Excerpt, page.Items[1].Excerpt}
	if diff := gocmp.Diff(want, got); diff != "" {
		w.Error(diff)
	}
	found, err := w.proposals.List(ctx, ann, proposal.Query{Text: "two", Excerpt: true})
	w.must(err)
	if len(found.Items) != 1 || found.Items[0].Excerpt != want[0] {
		w.Errorf("search = %+v, want one with the excerpt %q", found.Items, want[0])
	}
	page, err = w.proposals.List(ctx, ann, proposal.Query{})
	w.must(err)
	if page.Items[0].Excerpt != "" {
		w.Errorf("excerpt without a request = %q, want none", page.Items[0].Excerpt)
	}
}
