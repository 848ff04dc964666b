package storetest

import (
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

func testErase(w *world) {
	m, ann := w.manage()
	ctx := w.Context()
	_, err := m.CreateMember(ctx, ann, identity.User, "bob", "Robert", true)
	w.must(err)
	bob := principal("user:bob")
	// The other org has a user with the same id and name.
	_, err = w.operator.CreateOrg(ctx, "beta", "")
	w.must(err)
	same := identity.Principal{Org: "beta", Kind: identity.User, ID: "bob"}
	twin, err := w.operator.CreateMember(ctx, same, "Robert", true)
	w.must(err)
	p := w.submit(w.access("acme", "user:bob"), nil)
	other := w.submit(w.access("beta", "user:bob"), nil)
	_, err = w.proposals.Vote(ctx, w.access("acme", "user:bob"), p.ID, proposal.Ballot{Choice: proposal.For})
	w.must(err)

	_, err = m.EraseMember(ctx, w.access("beta", "user:bob"), bob)
	w.want(err, errs.NotFound)
	_, err = m.EraseMember(ctx, ann, principal("agent:scout"))
	w.want(err, errs.Conflict)
	_, err = m.EraseMember(ctx, ann, principal("user:nobody"))
	w.want(err, errs.NotFound)

	// Of several admins at once, one erases. Others continue that, or find no user.
	erased := make([]identity.Member, 3)
	race(w, len(erased), func(i int) error {
		got, err := m.EraseMember(ctx, ann, bob)
		if errs.KindOf(err) == errs.NotFound {
			return nil
		}
		erased[i] = got
		return err
	})
	var former identity.Member
	for _, e := range erased {
		if e.ID == "" {
			continue
		}
		if former.ID != "" && e != former {
			w.Errorf("erased twice: %+v", erased)
		}
		former = e
	}
	if !strings.HasPrefix(former.ID, "former-") || former.Admin || !former.Disabled {
		w.Fatalf("erased %+v", former)
	}
	if got, err := m.Member(ctx, ann, former.Principal); err != nil || got != former {
		w.Errorf("member = %+v, %v, want %+v", got, err, former)
	}
	got, err := w.proposals.Get(ctx, ann, p.ID)
	w.must(err)
	if got.Proposal.SubmittedBy != former.Ref() || got.Proposal.VotesFor != 1 {
		w.Errorf("proposal = %+v, want that of %s with its vote", got, former.Ref())
	}
	for _, by := range []string{former.Ref(), "user:bob"} {
		page, err := w.proposals.List(ctx, ann, proposal.Query{Status: proposal.All, SubmittedBy: by})
		w.must(err)
		if want := flagOf(by == former.Ref()); page.Total != want || int64(len(page.Items)) != want {
			w.Errorf("proposals of %s: %d, total %d, want %d", by, len(page.Items), page.Total, want)
		}
	}
	for _, e := range allAudit(w, m, ann) {
		text := e.Actor + " " + e.Target + " " + e.Detail
		if strings.Contains(text, "bob") || strings.Contains(text, "Robert") {
			w.Errorf("the audit log names the user: %s %s", e.Action, text)
		}
	}
	if got, err := w.operator.Member(ctx, twin.Principal); err != nil || got != twin {
		w.Errorf("the user of the other org is %+v, %v, want %+v", got, err, twin)
	}
	got, err = w.proposals.Get(ctx, w.access("beta", "user:bob"), other.ID)
	if err != nil || got.Proposal.SubmittedBy != "user:bob" {
		w.Errorf("the proposal in the other org is %+v, %v", got, err)
	}
}

func flagOf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func allAudit(w *world, m orgAdmin, a identity.Access) []identity.AuditEntry {
	w.Helper()
	list, err := m.Audit(w.Context(), a, identity.AuditFilter{Limit: identity.MaxLimit})
	w.must(err)
	return list
}
