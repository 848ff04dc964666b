package storetest

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

func testDuplicates(w *world) {
	ctx := w.Context()
	ann, root := w.access("acme", "user:ann", memberScopes...), w.access("acme", "user:root")
	original, copied := w.submit(ann, nil), w.submit(ann, nil)
	foreign := w.submit(w.access("other", "user:eve"), nil)
	reject := func(id, of, note string) (proposal.Proposal, error) {
		out, err := w.proposals.Resolve(ctx, root, id, proposal.Resolution{
			Status: proposal.Rejected, DuplicateOf: of, Note: note,
		})
		return out.Proposal, err
	}
	for name, of := range map[string]string{
		"itself": copied.ID, "another org's": foreign.ID, "none": "prop-00000000000000000000009999", "no id": "x",
	} {
		if _, err := reject(copied.ID, of, ""); errs.KindOf(err) != errs.Invalid {
			w.Errorf("reject as a duplicate of %s = %v, want kind %s", name, err, errs.Invalid)
		}
	}
	_, err := w.proposals.Resolve(ctx, root, copied.ID, proposal.Resolution{
		Status: proposal.Approved, DuplicateOf: original.ID,
	})
	w.want(err, errs.Invalid)

	done, err := reject(copied.ID, original.ID, "")
	w.must(err)
	want := "Duplicate of " + original.ID + ": " + original.Title
	cur, err := w.proposals.Get(ctx, ann, copied.ID)
	w.must(err)
	for _, p := range []proposal.Proposal{done, cur.Proposal} {
		if p.DuplicateOf != original.ID || p.ResolutionNote != want || p.Status != proposal.Rejected {
			w.Errorf("%+v, want a duplicate of %s", p, original.ID)
		}
	}
	if _, err := reject(original.ID, copied.ID, ""); errs.KindOf(err) != errs.Invalid {
		w.Errorf("reject as a duplicate of its duplicate = %v, want kind %s", err, errs.Invalid)
	}
	_, err = w.proposals.Resolve(ctx, root, copied.ID, proposal.Resolution{Status: proposal.Open})
	w.must(err)
	if cur, err = w.proposals.Get(ctx, ann, copied.ID); err != nil || cur.Proposal.DuplicateOf != "" {
		w.Errorf("reopened: duplicate of %q, %v, want none", cur.Proposal.DuplicateOf, err)
	}
	done, err = reject(copied.ID, original.ID, "We have that.")
	w.must(err)
	if done.ResolutionNote != "We have that." {
		w.Errorf("note = %q, want %q", done.ResolutionNote, "We have that.")
	}
	entries, _, err := w.proposals.History(ctx, ann, copied.ID, &proposal.Paging{})
	w.must(err)
	var got []string
	for _, e := range entries {
		if e.Kind == proposal.StatusChanged {
			got = append(got, string(e.To)+" "+e.DuplicateOf)
		}
	}
	if diff := gocmp.Diff([]string{"rejected " + original.ID, "open ", "rejected " + original.ID}, got); diff != "" {
		w.Error(diff)
	}
}

// testRacingDuplicates: of two proposals that are concurrently rejected as duplicates of each
// other, one stays open.
func testRacingDuplicates(w *world) {
	ann, root := w.access("acme", "user:ann", memberScopes...), w.access("acme", "user:root")
	const pairs = 60
	var refused [pairs]atomic.Int32
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range pairs {
		a, b := w.submit(ann, nil).ID, w.submit(ann, nil).ID
		for _, pair := range [][2]string{{a, b}, {b, a}} {
			wg.Go(func() {
				<-start
				r := proposal.Resolution{Status: proposal.Rejected, DuplicateOf: pair[1]}
				if _, err := w.proposals.Resolve(w.Context(), root, pair[0], r); err != nil {
					refused[i].Add(1)
				}
			})
		}
	}
	close(start)
	wg.Wait()
	for i := range refused {
		if n := refused[i].Load(); n != 1 {
			w.Errorf("%d of pair %d were refused, want 1", n, i)
		}
	}
}

func testDecideTogether(w *world) {
	ctx := w.Context()
	ann, root := w.access("acme", "user:ann", memberScopes...), w.access("acme", "user:root")
	foreign := w.submit(w.access("other", "user:eve"), nil)
	var items []proposal.BulkItem
	for range 20 {
		items = append(items, proposal.BulkItem{ID: w.submit(ann, nil).ID, TextVersion: 1})
	}
	_, err := w.proposals.Edit(ctx, ann, items[3].ID, proposal.Edit{Title: ptr("Another")})
	w.must(err)
	_, err = w.proposals.Resolve(ctx, root, items[5].ID, proposal.Resolution{Status: proposal.Rejected, Note: "no"})
	w.must(err)
	items = append(items, proposal.BulkItem{ID: foreign.ID, TextVersion: 1})
	once, err := idempotency.New("POST decisions", "k", []byte("body"))
	w.must(err)
	cmd := proposal.Bulk{Status: proposal.Approved, Items: items, Once: once}
	_, err = w.proposals.ResolveAll(ctx, ann, cmd)
	w.want(err, errs.Forbidden)
	first, err := w.proposals.ResolveAll(ctx, root, cmd)
	w.must(err)
	again, err := w.proposals.ResolveAll(ctx, root, cmd)
	w.must(err)
	followups := map[string]bool{}
	for i, r := range first {
		code := ""
		if r.Err != nil {
			code = errs.As(r.Err).Code
		}
		want := map[int]string{
			3: "proposal.text_changed", 5: "proposal.transition_not_allowed", 20: errs.ErrNotFound.Code,
		}[i]
		if r.ID != items[i].ID || code != want {
			w.Errorf("%d: %s %q, want %q", i, r.ID, code, want)
		}
		if (again[i].Err == nil) != (r.Err == nil) || again[i].Outcome.Replayed != (r.Err == nil) {
			w.Errorf("%d: repeat = %+v, want the first result %+v", i, again[i], r)
		}
		if r.Err == nil {
			followups[r.Outcome.Proposal.FollowupID] = true
			if again[i].Outcome.Proposal.FollowupID != r.Outcome.Proposal.FollowupID {
				w.Errorf("%d: follow-up of the repeat = %s, want %s",
					i, again[i].Outcome.Proposal.FollowupID, r.Outcome.Proposal.FollowupID)
			}
		}
	}
	if len(followups) != 18 {
		w.Errorf("%d follow-ups, want 18", len(followups))
	}
	counts, err := w.proposals.Counts(ctx, root, proposal.Query{})
	w.must(err)
	if counts[proposal.Approved] != 18 || counts[proposal.Open] != 1 || counts[proposal.Rejected] != 1 {
		w.Errorf("counts = %v, want 18 approved, 1 open and 1 rejected", counts)
	}
}

func testGroups(w *world) {
	ctx := w.Context()
	ann, bob := w.access("acme", "user:ann", memberScopes...), w.access("acme", "agent:bob", memberScopes...)
	root := w.access("acme", "user:root")
	first := w.submit(ann, nil)
	for range 3 {
		w.submit(bob, nil)
	}
	w.submit(bob, func(s *proposal.Submission) { s.Status = proposal.Draft })
	w.submit(w.access("other", "user:ann"), nil)
	w.friction(bob, "ci:slow", 5)
	last := w.friction(ann, "ci:red", 3)
	cur, err := w.proposals.Get(ctx, ann, last)
	w.must(err)
	type group struct {
		Key             string
		Count, Evidence int64
	}
	check := func(a identity.Access, q proposal.Query, by proposal.GroupBy, want ...group) []proposal.Group {
		w.Helper()
		list, err := w.proposals.Groups(ctx, a, q, by)
		w.must(err)
		var got []group
		for _, g := range list {
			got = append(got, group{g.Key, g.Count, g.Evidence})
			if g.Newest.Before(g.Oldest) || g.Oldest.IsZero() {
				w.Errorf("group = %+v, want the newest not before the oldest", g)
			}
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			w.Errorf("%+v: diff of the groups (-want +got):\n%s", q, diff)
		}
		return list
	}
	list := check(ann, proposal.Query{}, proposal.BySubmitter, group{"agent:bob", 4, 0}, group{"user:ann", 2, 0})
	if g := list[1]; !g.Oldest.Equal(first.SubmittedAt) || !g.Newest.Equal(cur.Proposal.SubmittedAt) {
		w.Errorf("%+v, want %s to %s", g, first.SubmittedAt, cur.Proposal.SubmittedAt)
	}
	all := proposal.Query{Status: proposal.All}
	check(ann, all, proposal.BySubmitter, group{"agent:bob", 4, 0}, group{"user:ann", 2, 0})
	check(root, all, proposal.BySubmitter, group{"agent:bob", 5, 0}, group{"user:ann", 2, 0})
	check(bob, proposal.Query{Status: proposal.Draft}, proposal.BySubmitter, group{"agent:bob", 1, 0})
	check(ann, proposal.Query{Kind: identity.User}, proposal.BySubmitter, group{"user:ann", 2, 0})
	check(ann, proposal.Query{Evidence: proposal.WithEvidence}, proposal.BySubmitter,
		group{"agent:bob", 1, 0}, group{"user:ann", 1, 0})
	check(ann, proposal.Query{Text: "upload"}, proposal.BySubmitter, group{"agent:bob", 3, 0}, group{"user:ann", 1, 0})
	check(ann, proposal.Query{}, proposal.ByFingerprint, group{"ci:slow", 1, 5}, group{"ci:red", 1, 3})
	check(ann, proposal.Query{Fingerprint: "ci:red"}, proposal.ByFingerprint, group{"ci:red", 1, 3})
	check(ann, proposal.Query{Kind: identity.Agent}, proposal.ByFingerprint, group{"ci:slow", 1, 5})
	check(ann, proposal.Query{Evidence: proposal.WithoutEvidence}, proposal.ByFingerprint)
	check(ann, proposal.Query{Text: "hurry"}, proposal.ByFingerprint, group{"ci:slow", 1, 5}, group{"ci:red", 1, 3})
	check(ann, proposal.Query{Kind: identity.Service}, proposal.BySubmitter)
	_, err = w.proposals.Groups(ctx, ann, proposal.Query{Status: "x"}, "colour")
	w.want(err, errs.Invalid)
	if n := len(errs.As(err).Fields); n != 2 {
		w.Errorf("invalid fields = %d, want 2", n)
	}
}

func testSimilar(w *world) {
	ctx := w.Context()
	ann, bob := w.access("acme", "user:ann", memberScopes...), w.access("acme", "agent:bob", memberScopes...)
	root := w.access("acme", "user:root")
	add := func(a identity.Access, title, problem string, st proposal.Status) string {
		return w.submit(a, func(s *proposal.Submission) {
			s.Title, s.Problem, s.Status, s.SuggestedFix = title, problem, st, "Fix."
		}).ID
	}
	gateway := add(ann, "Webhook gateway drops deliveries", "When the gateway restarts, deliveries are lost.", "")
	lost := add(ann, "Deliveries are lost", "The webhook gateway forgets them.", "")
	title := add(ann, "Dark mode", "A webhook would not help here.", "")
	draft := add(bob, "Webhook gateway drops deliveries", "Mine.", proposal.Draft)
	foreign := add(w.access("other", "user:eve"), "Webhook gateway drops deliveries", "Theirs.", "")
	resolved := add(ann, "Webhook gateway drops deliveries", "Done.", "")
	for _, st := range []proposal.Status{proposal.Approved, proposal.Resolved} {
		_, err := w.proposals.Resolve(ctx, root, resolved, proposal.Resolution{Status: st})
		w.must(err)
	}
	find := func(a identity.Access, to proposal.SimilarTo, limit int) []string {
		w.Helper()
		list, err := w.proposals.Similar(ctx, a, to, limit)
		w.must(err)
		out := []string{}
		for _, l := range list {
			out = append(out, l.ID)
			if l.Title == "" || l.Problem != "" || l.Excerpt == "" || l.Words == 0 {
				w.Errorf("similar = %+v, want title, excerpt and words, but no problem", l)
			}
		}
		return out
	}
	to := proposal.SimilarTo{Title: "The webhook gateway drops deliveries", Problem: "They are lost at restarts."}
	if diff := gocmp.Diff([]string{gateway, lost}, find(ann, to, 0)); diff != "" {
		w.Error(diff)
	}
	if diff := gocmp.Diff([]string{gateway, draft, lost}, find(bob, to, 0)); diff != "" {
		w.Error(diff)
	}
	if diff := gocmp.Diff([]string{gateway}, find(root, to, 1)); diff != "" { // no drafts of others, also for an admin
		w.Error(diff)
	}
	except := proposal.SimilarTo{Title: to.Title, Problem: to.Problem, Except: gateway}
	if diff := gocmp.Diff([]string{lost}, find(ann, except, 0)); diff != "" {
		w.Error(diff)
	}
	// One word is enough if there is only one.
	if diff := gocmp.Diff([]string{title}, find(ann, proposal.SimilarTo{Title: "Dark"}, 0)); diff != "" {
		w.Error(diff)
	}
	for _, to := range []proposal.SimilarTo{
		{Title: "of the and"}, {Title: "…"}, {Problem: "Unheard of, altogether unseen."}, {Title: `"') OR 1`},
	} {
		if got := find(ann, to, 0); len(got) != 0 {
			w.Errorf("similar to %+v = %v, want none", to, got)
		}
	}
	one, err := w.proposals.SimilarToOne(ctx, ann, gateway, 0)
	w.must(err)
	if len(one) != 1 || one[0].ID != lost {
		w.Errorf("similar = %+v, want %s", one, lost)
	}
	for _, id := range []string{foreign, draft, "x"} {
		_, err = w.proposals.SimilarToOne(ctx, ann, id, 0)
		w.want(err, errs.NotFound)
	}
	_, err = w.proposals.Similar(ctx, ann, proposal.SimilarTo{}, 6)
	w.want(err, errs.Invalid)
	long := proposal.SimilarTo{Title: strings.Repeat("x", 201), Problem: strings.Repeat("x", 20_001)}
	_, err = w.proposals.Similar(ctx, ann, long, 0)
	w.want(err, errs.Invalid)
}

// testSimilarLarge looks for duplicates in an org that is too large for a scan.
func testSimilarLarge(w *world) {
	ann := w.access("acme", "user:ann", memberScopes...)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 75 {
				s := proposal.Submission{
					Title: "Lost webhook", Category: proposal.Process, Problem: "Filler.", SuggestedFix: "Filler.",
				}
				if _, err := w.proposals.Submit(w.Context(), w.access("acme", "agent:cy", memberScopes...), s); err != nil {
					w.Error(err)
				}
			}
		})
	}
	wg.Wait()
	gateway := w.submit(ann, func(s *proposal.Submission) {
		s.Title, s.Problem = "Webhook gateway drops deliveries", "They are lost."
	})
	to := proposal.SimilarTo{Title: "Lost deliveries of the webhook gateway"}
	list, err := w.proposals.Similar(w.Context(), ann, to, 0)
	w.must(err)
	if len(list) != proposal.MaxSimilar || list[0].ID != gateway.ID {
		w.Errorf("similar = %+v, want %d, the first one %s", list, proposal.MaxSimilar, gateway.ID)
	}
}

func testSavedNotes(w *world) {
	ctx := w.Context()
	for _, org := range []string{"acme", "other"} {
		_, err := w.operator.CreateOrg(ctx, org, "")
		w.must(err)
	}
	ann, root := w.access("acme", "user:ann", memberScopes...), w.access("acme", "user:root")
	eve := w.access("other", "user:eve")
	create := func(a identity.Access, title, text string) (proposal.SavedNote, error) {
		return w.proposals.CreateNote(ctx, a, proposal.NoteCreation{Title: title, Text: text})
	}
	later, err := create(root, "Out of scope", "This is out of scope.")
	w.must(err)
	sooner, err := create(root, "Known", "We know.")
	w.must(err)
	_, err = create(ann, "x", "x")
	w.want(err, errs.Forbidden)
	_, err = create(root, strings.Repeat("x", 101), " ")
	w.want(err, errs.Invalid)
	list, err := w.proposals.Notes(ctx, root)
	w.must(err)
	if diff := gocmp.Diff([]proposal.SavedNote{sooner, later}, list); diff != "" {
		w.Error(diff)
	}
	_, err = w.proposals.Notes(ctx, ann)
	w.want(err, errs.Forbidden)
	if list, err := w.proposals.Notes(ctx, eve); err != nil || len(list) != 0 {
		w.Errorf("notes of another org = %v, %v, want none", list, err)
	}
	remove := func(a identity.Access, id string) error {
		_, err := w.proposals.DeleteNote(ctx, a, id)
		return err
	}
	w.want(remove(eve, later.ID), errs.NotFound)
	w.want(remove(ann, later.ID), errs.Forbidden)
	w.must(remove(root, later.ID))
	w.want(remove(root, later.ID), errs.NotFound)
	w.want(remove(root, "note-1"), errs.NotFound)
	log, err := w.store.Audit().List(ctx, "acme", identity.AuditFilter{})
	w.must(err)
	var actions []string
	for _, e := range log {
		if strings.HasPrefix(string(e.Action), "note.") {
			actions = append(actions, string(e.Action)+" "+e.Target+" "+e.Detail)
		}
	}
	want := []string{
		"note.delete " + later.ID + " Out of scope", "note.create " + sooner.ID + " Known",
		"note.create " + later.ID + " Out of scope",
	}
	if diff := gocmp.Diff(want, actions); diff != "" {
		w.Error(diff)
	}
	var wg sync.WaitGroup
	for i := range proposal.MaxNotes + 10 {
		wg.Go(func() {
			if _, err := create(root, fmt.Sprint("Note ", i), "x"); err != nil && errs.As(err).Code != "quota.notes" {
				w.Error(err)
			}
		})
	}
	wg.Wait()
	if list, err := w.proposals.Notes(ctx, root); err != nil || len(list) != proposal.MaxNotes {
		w.Errorf("notes = %d, %v, want %d", len(list), err, proposal.MaxNotes)
	}
}
