package identity_test

import (
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

func authorized(t *testing.T, action identity.Action, scopes ...identity.Scope) identity.Access {
	t.Helper()
	ann := identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"}
	a, err := identity.Authorize(&identity.Caller{Principal: ann, Scopes: scopes}, "acme", action)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAccessIsForItsActionOnly(t *testing.T) {
	t.Parallel()
	a := authorized(t, identity.ReadProposal, identity.AllScopes...)
	if err := a.For(identity.ReadProposal); err != nil {
		t.Error(err)
	}
	if err := a.For(identity.ChangeProposal, identity.ReadProposal); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		access identity.Access
		have   string
	}{"another action": {a, string(identity.ReadProposal)}, "the zero Access": {identity.Access{}, `""`}} {
		err := c.access.For(identity.SubmitProposal, identity.VoteOnProposal)
		e := errs.As(err)
		if err == nil || e.Kind != errs.Internal || e.Code != "auth.wrong_action" {
			t.Errorf("%s: %v; want auth.wrong_action", name, err)
			continue
		}
		for _, word := range []string{c.have, string(identity.SubmitProposal), string(identity.VoteOnProposal)} {
			if !strings.Contains(e.Message, word) {
				t.Errorf("%s: %q does not say %q", name, e.Message, word)
			}
		}
	}
	if err := (identity.Access{}).For(""); err == nil {
		t.Error("the zero Access is for the empty action; want it to be for none")
	}
	if err := a.For(); err == nil {
		t.Error("an Access is for no action at all; want a refusal")
	}
}

func TestAsAuthorizesAgain(t *testing.T) {
	t.Parallel()
	a := authorized(t, identity.ChangeProposal, identity.TasksWrite)
	b, err := a.As(identity.SubmitProposal)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.For(identity.SubmitProposal); err != nil {
		t.Error(err)
	}
	if err := b.For(identity.ChangeProposal); err == nil {
		t.Error("the new Access is for the old action, too")
	}
	if b.Org() != "acme" || b.Caller() != a.Caller() {
		t.Errorf("got %s of %s; want the same caller", b.Principal().Ref(), b.Org())
	}
	if _, err := a.As(identity.ResolveProposal); errs.As(err).Code != "auth.scope_missing" {
		t.Errorf("without the scope: %v; want auth.scope_missing", err)
	}
	if _, err := (identity.Access{}).As(identity.ReadProposal); err == nil || errs.As(err).Code != "auth.wrong_action" {
		t.Errorf("the zero Access: %v; want auth.wrong_action", err)
	}
}

// Every service call asks, so it must cost nothing.
func TestForAllocatesNothing(t *testing.T) {
	a := authorized(t, identity.ChangeProposal, identity.AllScopes...)
	n := testing.AllocsPerRun(100, func() {
		if err := a.For(identity.ReadProposal, identity.ChangeProposal); err != nil {
			t.Error(err)
		}
	})
	if n != 0 {
		t.Errorf("For allocates %v times; want 0", n)
	}
}

func TestWhatIsOnesOwnNeedsNoScope(t *testing.T) {
	t.Parallel()
	for _, kind := range identity.Kinds {
		for _, delegated := range []bool{false, true} {
			c := &identity.Caller{Principal: identity.Principal{Org: "acme", Kind: kind, ID: "x"}, Delegated: delegated}
			if _, err := identity.Authorize(c, "acme", identity.ReadSelf); err != nil {
				t.Errorf("%s, delegated %v, reads itself: %v", kind, delegated, err)
			}
			_, err := identity.Authorize(c, "acme", identity.ManageOwnCredentials)
			if want := delegated; want != (err != nil) || want && errs.As(err).Code != "auth.delegated" {
				t.Errorf("%s, delegated %v, manages its keys: %v", kind, delegated, err)
			}
			if _, err := identity.Authorize(c, "other", identity.ReadSelf); errs.As(err) != errs.ErrNotFound {
				t.Errorf("%s in another org: %v; want not found", kind, err)
			}
		}
	}
}
