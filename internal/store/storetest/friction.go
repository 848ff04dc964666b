package storetest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

func frictionReport(edit func(*friction.Report)) friction.Report {
	r := friction.Report{
		Fingerprint: "registry:timeout", Title: "The registry times out", Category: "reliability",
		Problem: "Pulls of large images fail.", Evidence: "504 after 60 s",
	}
	if edit != nil {
		edit(&r)
	}
	return r
}

func (w *world) meet(a identity.Access, edit func(*friction.Report)) friction.Outcome {
	w.Helper()
	out, err := w.frictions.Report(w.Context(), a, frictionReport(edit))
	w.must(err)
	return out
}

// proposalsOf counts the proposals of the org by the counters and by the list.
func (w *world) proposalsOf(a identity.Access) int {
	w.Helper()
	page, err := w.proposals.List(w.Context(), a, proposal.Query{Status: proposal.All, Limit: 100})
	w.must(err)
	if page.Total != int64(len(page.Items)) {
		w.Errorf("counters = %d proposals, want %d as listed", page.Total, len(page.Items))
	}
	return len(page.Items)
}

func testFriction(w *world) {
	ctx := w.Context()
	ann, bob := w.access("acme", "user:ann", memberScopes...), w.access("acme", "agent:bob", memberScopes...)
	other := w.access("globex", "user:ann", memberScopes...)
	first := w.meet(ann, func(r *friction.Report) { r.SuggestedFix = "Mirror it."; r.Evidence = "first evidence" })
	if first.Friction.Count != 1 || first.Threshold != 3 || first.Filed || !first.Counted ||
		first.Friction.ProposalID != "" {
		w.Fatalf("first report = %+v, want count 1 of 3, not filed", first)
	}
	w.meet(other, nil) // counts in another org
	w.meet(other, nil)
	w.meet(ann, func(r *friction.Report) { r.Fingerprint = "another" })
	second := w.meet(ann, func(r *friction.Report) { r.Evidence = "second evidence" })
	if second.Friction.Count != 2 || second.Filed || w.proposalsOf(ann) != 0 {
		w.Fatalf("second report = %+v, want count 2, not filed", second)
	}
	third := w.meet(bob, func(r *friction.Report) {
		r.Evidence, r.Occurrence, r.Priority, r.Title = "third evidence", "run-7", "high", "Bob's own words"
	})
	id := third.Friction.ProposalID
	if third.Friction.Count != 3 || !third.Filed || !proposal.ValidID(id) {
		w.Fatalf("third report = %+v, want count 3, filed", third)
	}
	cur, err := w.proposals.Get(ctx, ann, id)
	w.must(err)
	p := cur.Proposal
	if p.SubmittedBy != "agent:bob" || p.Status != proposal.Open || p.Title != "Bob's own words" ||
		p.Priority != proposal.High || p.Category != proposal.Reliability || p.SuggestedFix != "Mirror it." ||
		p.Version != 1 {
		w.Errorf("proposal = %+v, want that of the third report", p)
	}
	for _, s := range []string{
		"first evidence", "second evidence", "third evidence", "user:ann", "agent:bob", "run-7", "3 times",
		"registry:timeout",
	} {
		if !strings.Contains(p.Problem, s) {
			w.Errorf("problem = %s\nwant it to contain %q", p.Problem, s)
		}
	}
	history, total, err := w.proposals.History(ctx, ann, id, &proposal.Paging{})
	w.must(err)
	if total != 1 || history[0].Kind != proposal.Submitted || history[0].Actor != "agent:bob" {
		w.Errorf("history = %+v, want only the submission by agent:bob", history)
	}
	found, err := w.proposals.List(ctx, ann, proposal.Query{Text: "third evid"})
	w.must(err)
	if len(found.Items) != 1 || found.Items[0].ID != id {
		w.Errorf("search = %+v, want %s", found.Items, id)
	}

	// Later reports add to the evidence, also after the proposal was decided.
	admin := w.access("acme", "user:root")
	w.meet(ann, nil)
	_, err = w.proposals.Resolve(ctx, admin, id, proposal.Resolution{Status: proposal.Rejected, Note: "no"})
	w.must(err)
	for range 5 {
		if out := w.meet(ann, nil); out.Filed || out.Friction.ProposalID != id {
			w.Fatalf("later report = %+v, want it added to %s", out, id)
		}
	}
	if n := w.proposalsOf(admin); n != 1 {
		w.Errorf("proposals = %d, want 1", n)
	}
	f, evidence, err := w.frictions.Get(ctx, ann, "registry:timeout")
	w.must(err)
	if f.Count != 9 || len(evidence) != 9 || evidence[0].Seq != 9 || evidence[8].Text != "first evidence" ||
		f.FirstAt != evidence[8].At {
		w.Errorf("friction = %+v\nevidence = %+v\nwant 9 of each, newest first", f, evidence)
	}

	// The friction of another org is separate.
	f, _, err = w.frictions.Get(ctx, other, "registry:timeout")
	w.must(err)
	if f.Count != 2 || f.ProposalID != "" {
		w.Errorf("friction of the other org = %+v, want count 2, no proposal", f)
	}
	_, _, err = w.frictions.Get(ctx, other, "another")
	w.want(err, errs.NotFound)
	_, _, err = w.frictions.Get(ctx, ann, "No Fingerprint")
	w.want(err, errs.NotFound)

	var seen []string
	for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
		page, err := w.frictions.List(ctx, ann, cursor, 1)
		w.must(err)
		for _, f := range page.Frictions {
			seen = append(seen, f.Org+" "+f.Fingerprint)
		}
		cursor = page.Next
	}
	if fmt.Sprint(seen) != "[acme registry:timeout acme another]" {
		w.Errorf("list = %v, want acme registry:timeout and acme another", seen)
	}
	_, err = w.frictions.List(ctx, ann, "nonsense", 0)
	w.want(err, errs.Invalid)
}

func testFrictionOccurrences(w *world) {
	ann, bob := w.access("acme", "user:ann", memberScopes...), w.access("acme", "agent:bob", memberScopes...)
	once := func(r *friction.Report) { r.Occurrence = "job-1" }
	for range 3 {
		w.meet(ann, once)
	}
	out := w.meet(ann, once)
	if out.Friction.Count != 1 || out.Counted || out.Filed {
		w.Fatalf("repeated occurrence = %+v, want count 1, not counted", out)
	}
	if out = w.meet(bob, once); out.Friction.Count != 2 || !out.Counted {
		w.Errorf("same occurrence of another reporter = %+v, want count 2, counted", out)
	}
	if out = w.meet(bob, func(r *friction.Report) { r.Occurrence = "job-2" }); !out.Filed {
		w.Errorf("third distinct report = %+v, want it filed", out)
	}
	if out = w.meet(bob, once); out.Counted || out.Filed || out.Friction.ProposalID == "" {
		w.Errorf("repeat after the filing = %+v, want it not counted, with the proposal", out)
	}
	key, err := idempotency.New("friction", "k1", []byte("body"))
	w.must(err)
	r := frictionReport(func(r *friction.Report) { r.Once = key })
	first, err := w.frictions.Report(w.Context(), ann, r)
	w.must(err)
	again, err := w.frictions.Report(w.Context(), ann, r)
	w.must(err)
	if first.Replayed || !again.Replayed || again.Friction != first.Friction {
		w.Errorf("first = %+v, again = %+v, want the second replayed", first, again)
	}
}

func testFrictionEvidence(w *world) {
	ann := w.access("acme", "user:ann", memberScopes...)
	w.must(w.frictions.SetThreshold(w.Context(), w.access("acme", "user:root"), 8))
	long := strings.Repeat("é", friction.MaxEvidence/2)
	for i := range 8 {
		w.meet(ann, func(r *friction.Report) {
			r.Evidence, r.Problem = fmt.Sprint(i, long)[:friction.MaxEvidence], strings.Repeat("ß", friction.MaxProblem)
			r.Evidence = strings.ToValidUTF8(r.Evidence, "")
			if i == 0 {
				r.Occurrence = "old"
			}
		})
	}
	f, _, err := w.frictions.Get(w.Context(), ann, "registry:timeout")
	w.must(err)
	cur, err := w.proposals.Get(w.Context(), ann, f.ProposalID)
	w.must(err)
	text := cur.Proposal.Problem
	if n := utf8.RuneCountInString(text); n > proposal.MaxText || n < proposal.MaxText*3/4 {
		w.Errorf("problem has %d characters, want %d to %d", n, proposal.MaxText*3/4, proposal.MaxText)
	}
	if !strings.Contains(text, "\n7é") || strings.Contains(text, "\n0é") || !strings.Contains(text, "earlier reports") {
		w.Errorf("problem = %s\nwant the newest evidence without the oldest", text)
	}
	for range friction.KeepOccurrences {
		w.meet(ann, nil)
	}
	f, evidence, err := w.frictions.Get(w.Context(), ann, "registry:timeout")
	w.must(err)
	if f.Count != 8+friction.KeepOccurrences || len(evidence) != friction.KeepEvidence || evidence[0].Seq != f.Count ||
		evidence[friction.KeepEvidence-1].Text == "" {
		w.Errorf("reports = %d, evidence = %d, want %d and %d",
			f.Count, len(evidence), 8+friction.KeepOccurrences, friction.KeepEvidence)
	}
	// After that many reports the occurrence is forgotten.
	if out := w.meet(ann, func(r *friction.Report) { r.Occurrence = "old" }); !out.Counted {
		w.Errorf("forgotten occurrence = %+v, want it counted", out)
	}
}

func testFrictionThreshold(w *world) {
	ctx := w.Context()
	ann, root := w.access("acme", "user:ann", memberScopes...), w.access("acme", "user:root")
	globex := w.access("globex", "user:root")
	w.want(w.frictions.SetThreshold(ctx, ann, 2), errs.Forbidden)
	for _, n := range []int{-1, 1, 101} {
		w.want(w.frictions.SetThreshold(ctx, root, n), errs.Invalid)
	}
	w.must(w.frictions.SetThreshold(ctx, root, friction.Off))
	for range 5 {
		if out := w.meet(ann, nil); out.Filed || out.Threshold != friction.Off {
			w.Fatalf("report with the threshold off = %+v, want it not filed", out)
		}
	}
	n, err := w.frictions.Threshold(ctx, globex)
	w.must(err)
	if n != friction.DefaultThreshold {
		w.Errorf("threshold of the other org = %d, want %d", n, friction.DefaultThreshold)
	}
	// Reports made meanwhile count.
	w.must(w.frictions.SetThreshold(ctx, root, 2))
	if out := w.meet(ann, nil); !out.Filed || out.Friction.Count != 6 {
		w.Errorf("report with the threshold on again = %+v, want count 6, filed", out)
	}
	_, err = w.frictions.Report(ctx, w.access("acme", "service:ci"), frictionReport(nil))
	w.want(err, errs.Forbidden)
	_, err = w.frictions.Report(ctx, w.access("acme", "user:ann", identity.Admin), frictionReport(nil))
	w.want(err, errs.Forbidden)
}

func testRacingFriction(w *world) {
	const rivals, rounds = 50, 4
	for round := range rounds {
		org := fmt.Sprint("acme", round)
		// The first two reports are made before, except in the last round, where all race.
		before := 2
		if round == rounds-1 {
			before = 0
		}
		for range before {
			w.meet(w.access(org, "user:ann", memberScopes...), nil)
		}
		var filed, counted atomic.Int32
		race(w, rivals, func(i int) error {
			a := w.access(org, fmt.Sprint("agent:a", i%10), memberScopes...)
			r := frictionReport(func(r *friction.Report) { r.Occurrence = fmt.Sprint("o", i/20) })
			out, err := w.frictions.Report(w.Context(), a, r)
			if out.Filed {
				filed.Add(1)
			}
			if out.Counted {
				counted.Add(1)
			}
			return err
		})
		root := w.access(org, "user:root")
		f, _, err := w.frictions.Get(w.Context(), root, "registry:timeout")
		w.must(err)
		if n := w.proposalsOf(root); n != 1 || filed.Load() != 1 {
			w.Errorf("proposals = %d, filed by %d reports, want 1 and 1", n, filed.Load())
		}
		if counted.Load() != 30 || f.Count != int64(before)+30 {
			w.Errorf("counted %d of %d reports, count = %d, want 30 and %d", counted.Load(), rivals, f.Count, before+30)
		}
	}
}
