package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// userOf creates a user with a password, and the org if it does not exist.
func (w *world) userOf(org, id, password string) identity.Principal {
	w.Helper()
	ctx := w.Context()
	if _, err := w.operator.CreateOrg(ctx, org, ""); err != nil && errs.KindOf(err) != errs.Conflict {
		w.Fatal(err)
	}
	p := identity.Principal{Org: org, Kind: identity.User, ID: id}
	_, err := w.operator.CreateMember(ctx, p, "", false)
	w.must(err)
	if password != "" {
		w.setPassword(p, password)
	}
	return p
}

// session signs in and returns the memberships of the session.
func (w *world) session(org, id, password string) []account.Entry {
	w.Helper()
	people := w.people()
	s, err := people.Login(w.Context(), org, id, password)
	w.must(err)
	opened, err := people.Open(w.Context(), s, w.now())
	w.must(err)
	return append([]account.Entry{s.Entry(w.now())}, opened...)
}

// wantOrgs fails unless the session reaches exactly these orgs.
func (w *world) wantOrgs(list []account.Entry, want ...string) {
	w.Helper()
	found, err := w.people().Members(w.Context(), list)
	w.must(err)
	got := []string{}
	for _, m := range found {
		got = append(got, m.Org)
	}
	if slices.Sort(got); !slices.Equal(got, want) && len(got)+len(want) > 0 {
		w.Errorf("the session reaches %q, want %q", got, want)
	}
}

func testLinkedAccounts(w *world) {
	m, ann := w.manage()
	ctx, people := w.Context(), w.people()
	a, b := w.userOf("acme", "ada", "words of ada one"), w.userOf("beta", "lovelace", "words of ada two")
	w.wantOrgs(w.session("acme", "ada", "words of ada one"), "acme")

	// Only the password of the other membership is a proof.
	_, _, err := people.LinkMembership(ctx, a, "beta", "lovelace", "not the password")
	w.want(err, errs.Unauthenticated)
	_, _, err = people.LinkMembership(ctx, a, "acme", "ann", "whatever it may be")
	w.refusedAs(err, errs.Conflict, "account.same_org")
	w.wantOrgs(w.session("acme", "ada", "words of ada one"), "acme")
	s, linked, err := people.LinkMembership(ctx, a, "beta", "lovelace", "words of ada two")
	w.must(err)
	if !linked || s.Member.Principal != b {
		w.Errorf("LinkMembership = %+v, linked %t, want %s, linked", s, linked, b.Ref())
	}
	_, again, err := people.LinkMembership(ctx, b, "acme", "ada", "words of ada one")
	w.must(err)
	if !again {
		w.Error("repeated LinkMembership: linked = false, want true")
	}
	fromA, fromB := w.session("acme", "ada", "words of ada one"), w.session("beta", "lovelace", "words of ada two")
	w.wantOrgs(fromA, "acme", "beta")
	w.wantOrgs(fromB, "acme", "beta")
	list, err := people.Memberships(ctx, a)
	w.must(err)
	if len(list) != 2 {
		w.Errorf("memberships = %+v, want 2", list)
	}

	// The logs have entries that do not name the other org.
	entries, actions := w.log(m, ann, identity.AuditFilter{Actor: "user:ada"})
	if !slices.Contains(actions, "account.link user:ada") {
		w.Errorf("log = %q, want account.link user:ada", actions)
	}
	for _, e := range entries {
		if s := fmt.Sprintf("%+v", e); strings.Contains(s, "beta") || strings.Contains(s, "lovelace") {
			w.Errorf("log of acme = %s, want no name of the other org", s)
		}
	}

	// A user who is disabled in one org keeps the other, in sessions of either.
	yes, no := true, false
	_, err = m.UpdateMember(ctx, ann, a, identity.MemberEdit{Disabled: &yes})
	w.must(err)
	w.wantOrgs(fromA, "beta")
	w.wantOrgs(fromB, "beta")
	w.wantOrgs(w.session("beta", "lovelace", "words of ada two"), "beta")
	_, err = m.UpdateMember(ctx, ann, a, identity.MemberEdit{Disabled: &no})
	w.must(err)
	w.wantOrgs(fromB, "beta") // a session that ended stays ended
	fromA, fromB = w.session("acme", "ada", "words of ada one"), w.session("beta", "lovelace", "words of ada two")
	w.wantOrgs(fromB, "acme", "beta")

	// After signing out everywhere in one org, all sessions lose that membership and the
	// memberships that its password opened.
	w.must(people.LogoutEverywhere(ctx, b))
	w.wantOrgs(fromA, "acme")
	w.wantOrgs(fromB)
	fromA, fromB = w.session("acme", "ada", "words of ada one"), w.session("beta", "lovelace", "words of ada two")
	_, err = people.ChangePassword(ctx, a, "words of ada one", "words of ada three")
	w.must(err)
	w.wantOrgs(fromA)
	w.wantOrgs(fromB, "beta")
	fromA = w.session("acme", "ada", "words of ada three")
	w.wantOrgs(fromA, "acme", "beta")

	// An admin of acme can take over the membership there by a link, but gets no access to beta.
	token, err := w.newLink(a)
	w.must(err)
	_, err = people.UseLink(ctx, token, "words of an admin")
	w.must(err)
	w.wantOrgs(fromA)
	w.wantOrgs(w.session("acme", "ada", "words of an admin"), "acme")
	w.wantOrgs(w.session("beta", "lovelace", "words of ada two"), "beta")

	// The owner of both links them again, and unlinks them.
	_, _, err = people.LinkMembership(ctx, b, "acme", "ada", "words of an admin")
	w.must(err)
	fromA = w.session("acme", "ada", "words of an admin")
	w.wantOrgs(fromA, "acme", "beta")
	w.must(people.UnlinkMembership(ctx, b))
	w.must(people.UnlinkMembership(ctx, b))
	w.wantOrgs(fromA, "acme")
	w.wantOrgs(w.session("acme", "ada", "words of an admin"), "acme")
}

func testJoinLinked(w *world) {
	m, ann := w.manage()
	ctx, people := w.Context(), w.people()
	b := w.userOf("beta", "lovelace", "words of ada two")
	_, token, err := m.Invite(ctx, ann, identity.InvitationRequest{User: "ada", Admin: true})
	w.must(err)
	session := w.session("beta", "lovelace", "words of ada two")
	provided := session[0]
	provided.By = account.ByProvider
	_, _, err = people.Join(ctx, provided, token)
	w.refusedAs(err, errs.Conflict, "account.no_password")
	e, member, err := people.Join(ctx, session[0], token)
	w.must(err)
	if member.Ref() != "user:ada" || member.Org != "acme" || !member.Admin {
		w.Errorf("member = %+v, want admin user:ada of acme", member)
	}
	w.wantOrgs(append(session, e), "acme", "beta")
	_, _, err = people.Join(ctx, session[0], token)
	w.want(err, errs.NotFound) // already used
	_, err = people.Login(ctx, "acme", "ada", "words of ada two")
	w.want(err, errs.Unauthenticated) // the membership has no password
	session = w.session("beta", "lovelace", "words of ada two")
	w.wantOrgs(session, "acme", "beta")

	// There is one membership per org; the invitation stays valid for another user.
	_, second, err := m.Invite(ctx, ann, identity.InvitationRequest{User: "ada2"})
	w.must(err)
	_, _, err = people.Join(ctx, session[0], second)
	w.refusedAs(err, errs.Conflict, "account.same_org")
	_, err = m.Accept(ctx, second, "")
	w.must(err)

	// The last way to sign in cannot be unlinked, from neither side.
	a := identity.Principal{Org: "acme", Kind: identity.User, ID: "ada"}
	w.refusedAs(people.UnlinkMembership(ctx, a), errs.Conflict, "account.last_way")
	w.refusedAs(people.UnlinkMembership(ctx, b), errs.Conflict, "account.last_way")
	// A provider of acme cannot take the membership by its name.
	_, err = people.Arrive(ctx, arrival("s-ada", "ada"), account.Proof{})
	w.want(err, errs.Conflict)
	// Once connected explicitly, the provider is the only way to sign in, and opens nothing else.
	_, err = people.Arrive(ctx, arrival("s-ada", "ada"), account.Proof{User: "ada"})
	w.must(err)
	w.wantOrgs(session, "beta")
	w.wantOrgs(w.session("beta", "lovelace", "words of ada two"), "beta")
	by, err := people.Arrive(ctx, arrival("s-ada", "ada"), account.Proof{})
	w.must(err)
	opened, err := people.Open(ctx, by, w.now())
	w.must(err)
	if by.By != account.ByProvider || len(opened) != 0 {
		w.Errorf("memberships opened by a provider = %+v, want none", opened)
	}
	w.setPassword(a, "a first password")
	w.wantOrgs(w.session("acme", "ada", "a first password"), "acme")
	// A membership with a provider is added to sessions, but not linked.
	_, linked, err := people.LinkMembership(ctx, b, "acme", "ada", "a first password")
	w.must(err)
	if linked {
		w.Error("membership with a provider: linked = true, want false")
	}
}

// testLinkedProvider: the provider of an org is the only way into memberships that use it, even
// if they are linked.
func testLinkedProvider(w *world) {
	w.manage()
	ctx, people := w.Context(), w.people()
	a := w.userOf("acme", "ada", "words of ada one")
	w.userOf("beta", "lovelace", "words of ada two")
	_, _, err := people.LinkMembership(ctx, a, "beta", "lovelace", "words of ada two")
	w.must(err)
	session := w.session("beta", "lovelace", "words of ada two")
	w.wantOrgs(session, "acme", "beta")
	_, err = people.Arrive(ctx, arrival("s-ada", "ada"), account.Proof{User: "ada"})
	w.must(err)
	w.wantOrgs(session, "beta")
	if list := w.session("beta", "lovelace", "words of ada two"); len(list) != 1 {
		w.Errorf("memberships without the provider = %+v, want 1", list)
	}
	// The password belongs to the user and opens the memberships that the user linked.
	w.wantOrgs(w.session("acme", "ada", "words of ada one"), "acme", "beta")
	by, err := people.Arrive(ctx, arrival("s-ada", "ada"), account.Proof{})
	w.must(err)
	if opened, err := people.Open(ctx, by, w.now()); err != nil || len(opened) != 0 {
		w.Errorf("memberships opened by a provider = %+v, %v, want none", opened, err)
	}
	names, err := people.OrgNames(ctx, "acme", "beta", "none")
	w.must(err)
	if len(names) != 2 || names["acme"] != "acme" || names["beta"] != "beta" {
		w.Errorf("org names = %q, want acme and beta", names)
	}
}

func testLinkedAccountsMerge(w *world) {
	ctx, people := w.Context(), w.people()
	pass := func(i int) string { return fmt.Sprintf("number %d of words", i) }
	users := make([]identity.Principal, account.MaxMemberships+1)
	for i := range users {
		users[i] = w.userOf(fmt.Sprintf("org-%02d", i), "me", pass(i))
	}
	link := func(i, j int) error {
		_, _, err := people.LinkMembership(ctx, users[i], users[j].Org, "me", pass(j))
		return err
	}
	// Two accounts with several memberships are merged.
	w.must(link(0, 1))
	w.must(link(2, 3))
	w.must(link(0, 3))
	w.wantOrgs(w.session("org-02", "me", pass(2)), "org-00", "org-01", "org-02", "org-03")
	// They are not merged if both have a membership in the same org.
	twin := w.userOf("org-00", "twin", "words of a twin")
	w.must(func() error { _, _, err := people.LinkMembership(ctx, twin, "org-04", "me", pass(4)); return err }())
	w.refusedAs(link(1, 4), errs.Conflict, "account.same_org")
	w.must(people.UnlinkMembership(ctx, twin))
	for i := 4; i < account.MaxMemberships; i++ {
		w.must(link(0, i))
	}
	w.refusedAs(link(0, account.MaxMemberships), errs.Conflict, "account.too_many")
	if n := len(w.session("org-07", "me", pass(7))); n != account.MaxMemberships {
		w.Errorf("session has %d memberships, want %d", n, account.MaxMemberships)
	}
}

// testRacingAccountLinks: of many concurrent links that would put two memberships of one org
// into an account, one succeeds.
func testRacingAccountLinks(w *world) {
	me := w.userOf("acme", "me", "words of mine only")
	for i := range 20 {
		w.userOf("beta", fmt.Sprintf("me%d", i), "words of mine only")
	}
	n := make(chan int, 20)
	for i := range 20 {
		n <- i
	}
	won := w.race(func() error {
		_, _, err := w.people().LinkMembership(w.Context(), me, "beta", fmt.Sprintf("me%d", <-n), "words of mine only")
		if err != nil && errs.KindOf(err) != errs.Conflict {
			w.Error(err)
		}
		return err
	})
	if won != 1 {
		w.Errorf("%d links into one org, want 1", won)
	}
	w.advance(time.Second)
	w.wantOrgs(w.session("acme", "me", "words of mine only"), "acme", "beta")
}
