package account

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/errs/errstest"
	"github.com/parley-dev/parley/internal/identity"
)

var ruleNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// standing is a membership of the user ann with a password, of generation 4.
func standing(org string, edit ...func(*Standing)) Standing {
	s := Standing{Account: "acct-1", Epoch: 2}
	s.Member.Principal, s.Hash, s.Generation = userOf(org, "ann"), "hash", 4
	for _, e := range edit {
		e(&s)
	}
	return s
}

func switchedOff(s *Standing)  { s.Member.Disabled = true }
func noPassword(s *Standing)   { s.Hash = "" }
func withProvider(s *Standing) { s.Provider = true }
func unlinked(s *Standing)     { s.Account, s.Epoch = "", 0 }
func signedOut(s *Standing)    { s.Generation++ }

// desk is a store that knows what the memberships are, and runs decisions on them.
type desk struct {
	Store
	of, and []Standing
	written []identity.AuditEntry
}

func (d *desk) Credentials(_ context.Context, p identity.Principal) (Credentials, error) {
	if s := find(d.and, p); s != nil {
		c := s.Credentials
		c.Hash, c.Generation, c.Member.Disabled = "hash", 4, false // as it was a moment ago
		return c, nil
	}
	return Credentials{}, errs.ErrNotFound
}

func (d *desk) Append(context.Context, identity.AuditEntry) error { return nil }

func (d *desk) LinkUsers(_ context.Context, _, _ identity.Principal, _ string, _ time.Time,
	decide func(of, and []Standing) ([]identity.AuditEntry, error),
) (err error) {
	d.written, err = decide(d.of, d.and)
	return err
}

func (d *desk) Unlink(
	_ context.Context, _ identity.Principal, decide func(of []Standing) ([]identity.AuditEntry, error),
) (err error) {
	d.written, err = decide(d.of)
	return err
}

func (d *desk) Linked(context.Context, identity.Principal) ([]Standing, error) { return d.of, nil }

// anyPassword takes every password for the right one.
type anyPassword struct{}

func (anyPassword) Hash(context.Context, string) (string, error)         { return "hash", nil }
func (anyPassword) Verify(context.Context, string, string) (bool, error) { return true, nil }
func (anyPassword) Decoy() string                                        { return "" }

// Every state of a membership × of the one that opened it.
func TestWhenAnEntryOfASessionStands(t *testing.T) {
	t.Parallel()
	type state struct {
		name   string
		edit   func(*Standing)
		itself bool // an entry that was proven itself stands
		opened bool // so does one that another membership opened
		opens  bool // the state lets a membership keep others open
	}
	states := []state{
		{"as it was", func(*Standing) {}, true, true, true},
		{"disabled", switchedOff, false, false, true},
		{"signed out everywhere", signedOut, false, false, true},
		{"without a password", noPassword, true, true, true},
		{"with an identity provider", withProvider, true, false, true},
		{"no longer linked", unlinked, true, false, false},
		{"linked to another account", func(s *Standing) { s.Account = "acct-2" }, true, false, false},
	}
	via := &Opener{Org: "home", User: "ann", Epoch: 2}
	for _, s := range states {
		own := standing("acme", s.edit)
		itself, opened := Entry{Org: "acme", User: "ann", Generation: 4}, Entry{
			Org: "acme", User: "ann", Generation: 4,
			Via: via,
		}
		now := map[identity.Principal]*Standing{userOf("acme", "ann"): &own}
		if got := itself.good(now); got != s.itself {
			t.Errorf("%s, proven itself: got %v, want %v", s.name, got, s.itself)
		}
		if opened.good(now) {
			t.Errorf("%s, opened by a membership that is gone: got true, want false", s.name)
		}
		for _, o := range states {
			opener := standing("home", o.edit)
			now[userOf("home", "ann")] = &opener
			want := s.opened && o.opens
			if own.Account == "acct-2" && opener.Account == "acct-2" {
				want = true // both went to that account, under the same link
			}
			if got := opened.good(now); got != want {
				t.Errorf("%s, opened by one that is %s: got %v, want %v", s.name, o.name, got, want)
			}
			if opener.Epoch++; opened.good(now) {
				t.Errorf("%s, opened by one that is %s, linked anew: got true, want false", s.name, o.name)
			}
		}
	}
	if (&Entry{Org: "acme", User: "ann"}).good(nil) {
		t.Error("a user that is gone: got true, want false")
	}
}

func TestWhoMayJoin(t *testing.T) {
	t.Parallel()
	many := make([]Standing, MaxMemberships)
	for i := range many {
		many[i] = standing(fmt.Sprint("org-", i))
	}
	many[0] = standing("home")
	open := identity.Invitation{Org: "acme", User: "ann", ExpiresAt: ruleNow.Add(1)}
	over := identity.Invitation{Org: "acme", User: "ann", ExpiresAt: ruleNow}
	home := identity.Invitation{Org: "home", User: "ann", ExpiresAt: ruleNow.Add(1)}
	for _, c := range []struct {
		name    string
		invited identity.Invitation
		of      []Standing
		want    string
	}{
		{"a member of another org", open, []Standing{standing("home")}, ""},
		{"a member of some other orgs", open, []Standing{standing("b"), standing("home"), standing("c")}, ""},
		{"as many orgs as can be", open, many[:MaxMemberships-1], ""},
		{"too many orgs", open, many, "account.too_many"},
		{"an invitation that is over", over, []Standing{standing("home")}, "identity.bad_invitation"},
		{"nobody, and an invitation that is over", over, nil, "identity.bad_invitation"},
		{"nobody", open, nil, "account.bad_login"},
		{"somebody else", open, []Standing{standing("b")}, "account.bad_login"},
		{"disabled", open, []Standing{standing("home", switchedOff)}, "account.bad_login"},
		{"signed out everywhere", open, []Standing{standing("home", signedOut)}, "account.bad_login"},
		{"without a password", open, []Standing{standing("home", noPassword)}, "account.no_password"},
		{
			"without a password, in too many orgs", open, append([]Standing{standing("home", noPassword)}, many[1:]...),
			"account.no_password",
		},
		{"a member of this org", home, []Standing{standing("home")}, "account.same_org"},
		{"a member of this org by a link", open, []Standing{standing("home"), standing("acme")}, "account.same_org"},
	} {
		by := Entry{Org: "home", User: "ann", Generation: 4, By: ByPassword}
		if got := errstest.Code(mayJoin(&c.invited, c.of, &by, ruleNow)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestWhatIsLinked(t *testing.T) {
	t.Parallel()
	many := make([]Standing, MaxMemberships)
	for i := range many {
		many[i] = standing(fmt.Sprint("org-", i))
	}
	other := func(s *Standing) { s.Account = "acct-2" }
	for _, c := range []struct {
		name    string
		of, and []Standing // the accounts of ann of home and of ann of acme
		linked  bool
		writes  bool
		want    string
	}{
		{
			"two that were never linked",
			[]Standing{standing("home", unlinked)},
			[]Standing{standing("acme", unlinked)},
			true,
			true, "",
		},
		{
			"two accounts",
			[]Standing{standing("home"), standing("b")},
			[]Standing{standing("acme", other), standing("c", other)},
			true, true, "",
		},
		{
			"one account already",
			[]Standing{standing("home"), standing("acme")},
			[]Standing{standing("home"), standing("acme")},
			true, false, "",
		},
		{
			"the first has a provider",
			[]Standing{standing("home", withProvider)},
			[]Standing{standing("acme", other)},
			false,
			false, "",
		},
		{
			"the second has a provider",
			[]Standing{standing("home")},
			[]Standing{standing("acme", other, withProvider)},
			false, false, "",
		},
		{
			"the first is disabled",
			[]Standing{standing("home", switchedOff)},
			[]Standing{standing("acme", other)},
			false,
			false, "account.bad_login",
		},
		{
			"the second is disabled",
			[]Standing{standing("home")},
			[]Standing{standing("acme", other, switchedOff)},
			false,
			false, "account.bad_login",
		},
		{
			"the second was signed out meanwhile",
			[]Standing{standing("home")},
			[]Standing{standing("acme", other, signedOut)},
			false, false, "account.bad_login",
		},
		{"the first is gone", nil, []Standing{standing("acme", other)}, false, false, "account.bad_login"},
		{
			"both are in a third org",
			[]Standing{standing("home"), standing("b")},
			[]Standing{standing("acme", other), standing("b", other)},
			false, false, "account.same_org",
		},
		{
			"the second's account is in the first's org",
			[]Standing{standing("home")},
			[]Standing{standing("acme", other), standing("home", other)},
			false, false, "account.same_org",
		},
		{
			"as many as can be", append([]Standing{standing("home")}, many[2:]...),
			[]Standing{standing("acme", other)},
			true,
			true, "",
		},
		{
			"too many", append([]Standing{standing("home")}, many[1:]...),
			[]Standing{standing("acme", other)},
			false, false,
			"account.too_many",
		},
	} {
		d := &desk{of: c.of, and: c.and}
		a := New(d, d, anyPassword{}, func() time.Time { return ruleNow })
		_, linked, err := a.LinkMembership(t.Context(), userOf("home", "ann"), "acme", "ann", "password")
		if errstest.Code(err) != c.want || linked != c.linked || (len(d.written) == 2) != c.writes {
			t.Errorf("%s: got %q, linked %v, %d entries; want %q, %v, written %v",
				c.name, errstest.Code(err), linked, len(d.written), c.want, c.linked, c.writes)
		}
	}
	a := New(&desk{}, &desk{}, anyPassword{}, func() time.Time { return ruleNow })
	if _, _, err := a.LinkMembership(t.Context(), userOf("home", "ann"), "home", "bob",
		"password"); errstest.Code(err) != "account.same_org" {
		t.Errorf("another user of the same org: got %v, want account.same_org", err)
	}
}

// Every membership must keep a way to sign in.
func TestWhatIsUnlinked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		of     []Standing // the account of ann of home
		writes bool
		want   string
	}{
		{"a membership that is not linked", []Standing{standing("home", unlinked)}, false, ""},
		{"a user that is gone", nil, false, ""},
		{"the only one of its account", []Standing{standing("home")}, true, ""},
		{"the only one, without a password", []Standing{standing("home", noPassword)}, true, ""},
		{"each with a password", []Standing{standing("home"), standing("acme")}, true, ""},
		{"without a password", []Standing{standing("home", noPassword), standing("acme")}, false, "account.last_way"},
		{
			"without a password, with a provider",
			[]Standing{standing("home", noPassword, withProvider), standing("acme")},
			true, "",
		},
		{"the other has none", []Standing{standing("home"), standing("acme", noPassword)}, false, "account.last_way"},
		{"the other has a provider", []Standing{standing("home"), standing("acme", noPassword, withProvider)}, true, ""},
		{
			"a third has one for the other",
			[]Standing{standing("home"), standing("acme", noPassword), standing("b")},
			true,
			"",
		},
		{
			"a third has one, and is disabled",
			[]Standing{standing("home"), standing("acme", noPassword), standing("b", switchedOff)},
			false, "account.last_way",
		},
	} {
		d := &desk{of: c.of}
		a := New(d, d, nil, func() time.Time { return ruleNow })
		err := a.UnlinkMembership(t.Context(), userOf("home", "ann"))
		if errstest.Code(err) != c.want || (len(d.written) == 1) != c.writes {
			t.Errorf("%s: got %q, %d entries; want %q, written %v", c.name, errstest.Code(err), len(d.written), c.want, c.writes)
		}
	}
}

// What a sign-in opens beside its own membership.
func TestWhatASignInOpens(t *testing.T) {
	t.Parallel()
	all := []Standing{
		standing("acme"), standing("b", switchedOff), standing("c", withProvider), standing("d", noPassword), standing("e"),
		standing("home"),
	}
	for _, c := range []struct {
		name    string
		by      Way
		of      []Standing
		session []Entry
		want    string
	}{
		{"a password", ByPassword, all, nil, "acme d e"},
		{"a provider", ByProvider, all, nil, ""},
		{"a session that has one already", ByPassword, all, []Entry{{Org: "acme"}}, "d e"},
		{"a session with one place left", ByPassword, all, make([]Entry, MaxMemberships-1), "acme"},
		{"a session that is full", ByPassword, all, make([]Entry, MaxMemberships), ""},
		{"one that is not linked", ByPassword, all[5:], nil, ""},
	} {
		a := New(&desk{of: c.of}, &desk{}, nil, func() time.Time { return ruleNow })
		s := Signed{Member: identity.Member{Principal: userOf("home", "ann")}, By: c.by}
		list, err := a.Open(t.Context(), s, ruleNow, c.session...)
		var got []string
		for _, e := range list {
			got = append(got, e.Org)
			if e.Generation != 4 || e.By != c.by || e.At != ruleNow.Unix() || e.Via == nil ||
				*e.Via != (Opener{"home", "ann", 2}) {
				t.Errorf("%s: got %+v by %+v, want generation 4, by ann of home", c.name, e, e.Via)
			}
		}
		if strings.Join(got, " ") != c.want || err != nil {
			t.Errorf("%s: got %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}

func TestLifetimesOfLinks(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "request.invalid", 0: "request.invalid", time.Second - 1: "request.invalid", time.Second: "",
		LinkLifetime:    "",
		MaxLinkLifetime: "", MaxLinkLifetime + 1: "request.invalid",
	} {
		if got := errstest.Code(CheckLifetime(d)); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	ann := userOf("acme", "annabelle")
	for _, c := range []struct {
		name, password string
		want           string
	}{
		{"words", "correct horse battery", ""},
		{"the shortest", "k7#Lq9!vTz2w", ""},
		{"too short", "k7#Lq9!vTz2", "account.bad_password"},
		{"as many characters, not bytes", strings.Repeat("長い", 6), ""},
		{"too few characters in many bytes", strings.Repeat("長い", 5) + "長", "account.bad_password"},
		{"the longest", strings.Repeat("ab", MaxPassword/2), ""},
		{"too long", strings.Repeat("ab", MaxPassword/2) + "c", "account.bad_password"},
		{"one letter", strings.Repeat("x", MinPassword), "account.bad_password"},
		{"blanks", strings.Repeat(" ", MinPassword), "account.bad_password"},
		{"the word itself", "Password2026x", "account.bad_password"},
		{"digits in order", "123456789012", "account.bad_password"},
		{"the user's id", "annabelle2026", "account.bad_password"},
		{"the user's id among words", "annabelle likes rain", ""},
	} {
		if got := errstest.Code(CheckPassword(ann, c.password)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
