package store

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/pgtest"
)

// An erasure that was interrupted is continued when the pseudonym is erased.
func TestErasingContinues(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"sqlite": {Dir: t.TempDir()}, "postgres": {URL: pgtest.URL(t)}} {
		t.Run(name, func(t *testing.T) {
			s := openFor(t, o)
			ctx, now := t.Context(), time.Now().UTC()
			entry := func(org string) identity.AuditEntry {
				return identity.NewEntry(ctx, now, org, identity.OrgCreate, org, "")
			}
			org := identity.Org{ID: "acme", Name: "Acme", CreatedAt: now}
			if err := s.Identity().CreateOrg(ctx, org, entry("acme")); err != nil {
				t.Fatal(err)
			}
			former := identity.Member{
				Principal: identity.Principal{Org: "acme", Kind: identity.User, ID: "former-1"}, Name: "Former member 1",
				Disabled: true, CreatedAt: time.UnixMicro(now.UnixMicro()).UTC(),
			}
			if _, err := s.Identity().CreateMember(ctx, former, entry("acme")); err != nil {
				t.Fatal(err)
			}
			left, err := json.Marshal(erasing{ID: "ada", Name: "Ada Lovelace"})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.eng.write(ctx, func(x *tx) error {
				x.exec(`INSERT INTO org_settings (org_id, name, value) VALUES ('acme', $1, $2)`, settingErasing+"former-1",
					string(left))
				x.exec(`INSERT INTO votes (org_id, proposal_id, voter, choice, comment, voted_at)
					VALUES ('acme', 'prop-1', 'user:ada', 'for', '', 0)`)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			got, err := s.Identity().EraseMember(ctx, former.Principal,
				func(identity.MemberScene) (identity.Erasure, error) {
					t.Error("it was decided again")
					return identity.Erasure{}, nil
				})
			if err != nil || got != former {
				t.Errorf("erased %+v, %v", got, err)
			}
			voters, err := strs(ctx, s.eng, `SELECT voter FROM votes WHERE org_id = 'acme'`)
			if err != nil || len(voters) != 1 || voters[0] != "user:former-1" {
				t.Errorf("voters are %v, %v", voters, err)
			}
			if kept, err := strs(ctx, s.eng, `SELECT name FROM org_settings`); err != nil || len(kept) > 0 {
				t.Errorf("settings %v, %v are left", kept, err)
			}
		})
	}
}
