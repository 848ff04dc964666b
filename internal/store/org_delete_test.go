package store

import (
	"slices"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/pgtest"
)

// A server that keeps pages of an org's lists notices that another process has deleted the org: the next
// org with its id must not get them.
func TestListsOfADeletedOrgAreNotKept(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"sqlite": {Dir: t.TempDir()}, "postgres": {URL: pgtest.URL(t)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ctx := openFor(t, o), t.Context()
			org := func(s *Store) {
				t.Helper()
				now := time.Now().UTC()
				if err := s.Identity().CreateOrg(ctx, identity.Org{ID: "acme", Name: "Acme", CreatedAt: now},
					identity.NewEntry(ctx, now, "acme", identity.OrgCreate, "acme", "")); err != nil {
					t.Fatal(err)
				}
			}
			version := func() uint64 {
				t.Helper()
				if _, err := s.Identity().Epoch(ctx); err != nil { // as the server does every second
					t.Fatal(err)
				}
				v, err := s.Proposals().DataVersion(ctx, "acme")
				if err != nil {
					t.Fatal(err)
				}
				return v
			}
			org(s)
			before := version()
			d := OrgDeletion{Entry: identity.NewEntry(ctx, time.Now(), "", identity.OrgDelete, "acme", "")}
			if err := DeleteOrg(ctx, o, "acme", d, func(string, int64) {}); err != nil {
				t.Fatal(err)
			}
			if err := DeleteOrg(ctx, o, "acme", d, func(string, int64) {}); errs.KindOf(err) != errs.NotFound {
				t.Errorf("deleted again: %v", err)
			}
			org(openFor(t, o))
			if after := version(); after <= before {
				t.Errorf("the new org has the data version %d, and the old one had %d", after, before)
			}
		})
	}
}

// An id is not free while an org is imported under it, and no member joins an org that is being deleted.
func TestMarkedOrgsAreRefused(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"sqlite": {Dir: t.TempDir()}, "postgres": {URL: pgtest.URL(t)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ctx, now := openFor(t, o), t.Context(), time.Now().UTC()
			create := func() error {
				return s.Identity().CreateOrg(ctx, identity.Org{ID: "acme", Name: "Acme", CreatedAt: now},
					identity.NewEntry(ctx, now, "acme", identity.OrgCreate, "acme", ""))
			}
			mark := func(name string) {
				t.Helper()
				if err := s.eng.write(ctx, func(x *tx) error {
					x.exec(`INSERT INTO org_settings (org_id, name, value) VALUES ('acme', $1, 'x')`, name)
					x.exec(`INSERT INTO votes (org_id, proposal_id, voter, choice, comment, voted_at)
						VALUES ('acme', $1, 'user:ada', 'for', '', 0)`, name)
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			mark(settingImporting)
			if err := create(); errs.KindOf(err) != errs.Conflict {
				t.Errorf("an org that is being imported was created: %v", err)
			}
			d := OrgDeletion{Entry: identity.NewEntry(ctx, now, "", identity.OrgDelete, "acme", "")}
			if err := DeleteOrg(ctx, o, "acme", d, func(string, int64) {
				token, err := strs(ctx, s.eng, `SELECT value FROM org_settings WHERE name = $1`, settingImporting)
				if err != nil || slices.Contains(token, "x") {
					t.Errorf("the import could go on with its token while its rows are deleted: %v, %v", token, err)
				}
			}); err != nil {
				t.Fatalf("delete what an import left: %v", err)
			}
			if left, err := strs(ctx, s.eng, `SELECT voter FROM votes`); err != nil || len(left) > 0 {
				t.Errorf("%v, %v are left of the import", left, err)
			}
			if err := create(); err != nil {
				t.Fatal(err)
			}
			mark(settingDeleting)
			m := identity.Member{
				Principal: identity.Principal{Org: "acme", Kind: identity.User, ID: "ada"}, Name: "Ada", CreatedAt: now,
			}
			e := identity.NewEntry(ctx, now, "acme", identity.MemberCreate, "user:ada", "")
			_, err := s.Identity().CreateMember(ctx, m, e)
			if errs.KindOf(err) != errs.Conflict {
				t.Errorf("a member joined an org that is being deleted: %v", err)
			}
		})
	}
}
