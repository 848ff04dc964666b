package identity

import (
	"testing"

	"github.com/parley-dev/parley/internal/errs"
)

// Every user × with and without another admin.
func TestWhoIsErased(t *testing.T) {
	t.Parallel()
	for state := range 4 {
		for others := range 2 {
			cur := Member{
				Principal: Principal{Org: "acme", Kind: User, ID: "ann"}, Name: "Ann",
				Admin: state&1 != 0, Disabled: state&2 != 0, CreatedAt: ruleNow,
			}
			e, err := decideErasure(t.Context(), MemberScene{Member: cur, OtherAdmins: others}, "7f3a", ruleNow)
			if last := cur.Admin && !cur.Disabled && others == 0; last {
				if errs.As(err).Code != "identity.last_admin" {
					t.Errorf("%+v, %d others: %v, want identity.last_admin", cur, others, err)
				}
				continue
			}
			want := Member{
				Principal: Principal{Org: "acme", Kind: User, ID: "former-7f3a"}, Name: "Former member 7f3a", Disabled: true,
				CreatedAt: ruleNow,
			}
			if err != nil || e.Member != want || e.Entry.Target != "user:former-7f3a" || e.Entry.Detail != "" {
				t.Errorf("%+v, %d others: %+v, %v", cur, others, e, err)
			}
			if _, err := ParseRef("acme", want.Ref()); err != nil {
				t.Error(err)
			}
		}
	}
	if a, b := newPseudonym(), newPseudonym(); a == b || len(a) != 8 {
		t.Errorf("pseudonyms %q and %q", a, b)
	}
}
