package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
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

// halfErased returns a store in which the erasure of ada, whose name is name, was interrupted.
func halfErased(t *testing.T, o Options, name string) (*Store, identity.Member) {
	t.Helper()
	s, ctx, now := openFor(t, o), t.Context(), time.Now().UTC()
	org := identity.Org{ID: "acme", Name: "Acme", CreatedAt: now}
	entry := identity.NewEntry(ctx, now, "acme", identity.OrgCreate, "acme", "")
	if err := s.Identity().CreateOrg(ctx, org, entry); err != nil {
		t.Fatal(err)
	}
	former := identity.Member{
		Principal: identity.Principal{Org: "acme", Kind: identity.User, ID: "former-1"}, Name: "Former member 1",
		Disabled: true, CreatedAt: time.UnixMicro(now.UnixMicro()).UTC(),
	}
	if _, err := s.Identity().CreateMember(ctx, former,
		identity.NewEntry(ctx, now, "acme", identity.MemberCreate, former.Ref(), "")); err != nil {
		t.Fatal(err)
	}
	left, err := json.Marshal(erasing{ID: "ada", Name: name})
	if err != nil {
		t.Fatal(err)
	}
	run(t, s, `INSERT INTO org_settings (org_id, name, value) VALUES ('acme', '`+settingErasing+`former-1', '`+
		string(left)+`')`)
	return s, former
}

// run runs statements in one transaction.
func run(t *testing.T, s *Store, statements ...string) {
	t.Helper()
	if err := s.eng.write(t.Context(), func(x *tx) error {
		for _, sql := range statements {
			x.exec(sql)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// eraseAgain continues the erasure of ada by the old id.
func eraseAgain(t *testing.T, s *Store, want identity.Member) {
	t.Helper()
	ada := identity.Principal{Org: "acme", Kind: identity.User, ID: "ada"}
	got, err := s.Identity().EraseMember(t.Context(), ada, func(identity.MemberScene) (identity.Erasure, error) {
		t.Error("it was decided again")
		return identity.Erasure{}, nil
	})
	if err != nil || got != want {
		t.Fatalf("erased %+v, %v, want %+v", got, err, want)
	}
}

// column returns the values of a query.
func column(t *testing.T, s *Store, sql string) []string {
	t.Helper()
	out, err := strs(t.Context(), s.eng, sql)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func insertAudit(id, actor, target, detail string) string {
	return `INSERT INTO audit (org_id, at, id, actor, key_id, action, target, detail, outcome, code, request_id, address)
		VALUES ('acme', 1, '` + id + `', '` + actor + `', '', 'key.create', '` + target + `', '` + detail +
		`', 'done', '', '', '192.0.2.1')`
}

// A name that is also a usual word, and ids that begin alike, do not change what is another's.
func TestErasingLeavesOthers(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"sqlite": {Dir: t.TempDir()}, "postgres": {URL: pgtest.URL(t)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, former := halfErased(t, o, "agent")
			kept := func(principal, operation, outcome string) string {
				return `INSERT INTO idempotency (org_id, principal, operation, key, fingerprint, outcome, expires_at)
					VALUES ('acme', '` + principal + `', '` + operation + `', 'k', '', '` + outcome + `', 1)`
			}
			delivered := func(n, response string) string {
				return `INSERT INTO webhook_deliveries (org_id, webhook_id, n, event_id, type, seq, at, attempt, status, latency,
					response, error, outcome, redelivery)
					VALUES ('acme', 'w', ` + n + `, '', '', 0, 0, 1, 200, 0, '` + response + `', '', '', 0)`
			}
			run(
				t, s, insertAudit("a1", "user:eve", "agent:worker", "by an agent"),
				insertAudit("a2", "user:ada", "agent", "agent made svc:agent:all for user:adam"),
				insertAudit("a3", "user:eve", "user:ada", `name "agent"`),
				insertAudit("a4", "user:eve", "key-1", `user:ada "agent" svc:agent:all`),
				insertAudit("a5", "", "user:ada", "with idp, as agent (s-1)"), insertAudit("a6", "", "", "with idp, as agent"),
				kept("user:ada", "a", "{}"), kept("user:adam", "b", `{"Kind":"agent"}`), kept("user:eve", "c", `{"By":"user:ada"}`),
				kept("user:eve", "d", `{"By":"user:adam"}`), kept("user:eve", "e user:ada", "{}"),
				delivered("1", "to user:ada"), delivered("2", "to user:adam"),
			)
			eraseAgain(t, s, former)
			for sql, want := range map[string][]string{
				`SELECT actor || ' ' || target || ' ' || detail || ' ' || address FROM audit WHERE at = 1 ORDER BY id`: {
					"user:eve agent:worker by an agent 192.0.2.1",
					"user:former-1 agent Former member 1 made svc:agent:all for user:adam ",
					`user:eve user:former-1 name "Former member 1" 192.0.2.1`,
					`user:eve key-1 user:former-1 "Former member 1" svc:agent:all 192.0.2.1`,
					" user:former-1 with idp, as Former member 1 (s-1) ", "  with idp, as Former member 1 192.0.2.1",
				},
				`SELECT operation FROM idempotency ORDER BY operation`:     {"b", "d"},
				`SELECT response FROM webhook_deliveries ORDER BY n`:       {"", "to user:adam"},
				`SELECT name FROM org_settings WHERE name LIKE 'member.%'`: nil,
			} {
				if got := column(t, s, sql); !slices.Equal(got, want) {
					t.Errorf("%s\n got %q\nwant %q", sql, got, want)
				}
			}
		})
	}
}

// What the user wrote again after earlier rows were moved does not keep the erasure from ending.
func TestErasingMovesLateRows(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"sqlite": {Dir: t.TempDir()}, "postgres": {URL: pgtest.URL(t)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, former := halfErased(t, o, "Ada Lovelace")
			vote := func(voter, choice string) string {
				return `INSERT INTO votes (org_id, proposal_id, voter, choice, comment, voted_at)
					VALUES ('acme', 'prop-1', '` + voter + `', '` + choice + `', '', 0)`
			}
			report := func(seq, reporter string) string {
				return `INSERT INTO friction_reports (org_id, fingerprint, seq, reporter, occurrence, evidence, at)
					VALUES ('acme', 'f', ` + seq + `, '` + reporter + `', 'run-1', 'e', 0)`
			}
			run(
				t, s, `INSERT INTO proposals (org_id, id, status, category, priority, submitted_by, submitted_at, updated_at,
					votes_for, votes_against, score, version, followup_id, title, problem, suggested_fix, resolution_note,
					submitted_as)
					VALUES ('acme', 'prop-1', 'open', 'process', 1, 'user:ada', 0, 0, 1, 1, 0, 1, '', 't', 'p', 's', '', 'open')`,
				vote("user:former-1", "for"), vote("user:ada", "against"), report("1", "user:former-1"), report("2", "user:ada"),
				`INSERT INTO event_subjects (org_id, subject, last_seq) VALUES ('acme', 'member:user:ada', 99),
					('acme', 'member:user:former-1', 99)`,
			)
			eraseAgain(t, s, former)
			for sql, want := range map[string][]string{
				`SELECT voter || ' ' || choice FROM votes`: {"user:former-1 for"},
				`SELECT submitted_by || ' ' || votes_for || ' ' || votes_against || ' ' || score FROM proposals`: {
					"user:former-1 1 0 1",
				},
				`SELECT reporter || ' ' || occurrence FROM friction_reports ORDER BY seq`: {
					"user:former-1 run-1", "user:former-1 ",
				},
				`SELECT subject FROM event_subjects WHERE last_seq = 99`: {"member:user:former-1"},
			} {
				if got := column(t, s, sql); !slices.Equal(got, want) {
					t.Errorf("%s\n got %q\nwant %q", sql, got, want)
				}
			}
		})
	}
}

// More rows than one page has are changed.
func TestErasingReadsAllPages(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"sqlite": {Dir: t.TempDir()}, "postgres": {URL: pgtest.URL(t)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, former := halfErased(t, o, "Ada Lovelace")
			const n = 2*wipePage + 1
			var statements []string
			for i := range n {
				statements = append(statements, insertAudit(fmt.Sprint(i), "user:ada", "x", ""))
			}
			run(t, s, statements...)
			eraseAgain(t, s, former)
			if got := column(t, s, `SELECT id FROM audit WHERE actor = 'user:former-1' AND address = ''`); len(got) != n {
				t.Errorf("%d entries have the pseudonym, want %d", len(got), n)
			}
		})
	}
}

// The id of a user who is being erased is not free, and is free afterwards.
func TestErasingKeepsTheID(t *testing.T) {
	t.Parallel()
	s, former := halfErased(t, Options{Dir: t.TempDir()}, "Ada Lovelace")
	ctx, now := t.Context(), time.Now().UTC()
	ada := identity.Member{
		Principal: identity.Principal{Org: "acme", Kind: identity.User, ID: "ada"}, Name: "Ada", CreatedAt: now,
	}
	create := func() error {
		_, err := s.Identity().CreateMember(ctx, ada,
			identity.NewEntry(ctx, now, "acme", identity.MemberCreate, ada.Ref(), ""))
		return err
	}
	if err := create(); errs.KindOf(err) != errs.Conflict {
		t.Errorf("a user who is being erased was created: %v", err)
	}
	eraseAgain(t, s, former)
	if err := create(); err != nil {
		t.Error(err)
	}
}

// While a server uses the store, what a request of the user writes after the first pass is found.
func TestErasingWaitsForServers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, former := halfErased(t, Options{Dir: dir, Settle: time.Second}, "Ada Lovelace")
	s.used = func(context.Context) (bool, error) { // asked after the first pass
		run(t, s, insertAudit("late", "user:ada", "x", ""))
		return true, nil
	}
	before, err := s.Identity().Epoch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	eraseAgain(t, s, former)
	if got := column(t, s, `SELECT actor FROM audit WHERE id = 'late'`); !slices.Equal(got, []string{former.Ref()}) {
		t.Errorf("the late entry is by %v", got)
	}
	if after, err := s.Identity().Epoch(t.Context()); err != nil || after == before {
		t.Errorf("the epoch is %d, %v: servers keep their lists", after, err)
	}
}

// Events of other orgs that name the user are found without the tasks, which are deleted earlier.
func TestErasingReadsEventsOfOtherOrgs(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"sqlite": {Dir: t.TempDir()}, "postgres": {URL: pgtest.URL(t)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, former := halfErased(t, o, "Ada Lovelace")
			ctx, now := t.Context(), time.Now().UTC()
			if err := s.Identity().CreateOrg(ctx, identity.Org{ID: "beta", Name: "Beta", CreatedAt: now},
				identity.NewEntry(ctx, now, "beta", identity.OrgCreate, "beta", "")); err != nil {
				t.Fatal(err)
			}
			if err := s.eng.write(ctx, func(x *tx) error {
				x.emit(event.New("beta", event.TaskCreated, now, "task:t-1", "acme/user:ada", event.Members,
					json.RawMessage(`{"sender":"acme/user:ada"}`)))
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			eraseAgain(t, s, former)
			if _, n, err := s.rewriteEvents(ctx, "beta", 0, func(text string) string {
				return strings.ReplaceAll(text, "acme/user:former-1", "")
			}); err != nil || n != 1 {
				t.Errorf("%d packs have the pseudonym, %v", n, err)
			}
			if _, n, err := s.rewriteEvents(ctx, "beta", 0, func(text string) string {
				return strings.ReplaceAll(text, "user:ada", "")
			}); err != nil || n != 0 {
				t.Errorf("%d packs name the user, %v", n, err)
			}
		})
	}
}

// In the event of a key, only its name can have the name of the user.
func TestErasingKeepsTheShapeOfEvents(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"admin": `"name":"Former member 1 laptop","admin":true,"scopes":["svc:admin:admin"]`,
		"name":  `"name":"admin laptop","admin":true,"scopes":["svc:admin:admin"]`,
	} {
		w := newWipe("acme", erasing{ID: "ada", Name: name}, &identity.Member{
			Principal: identity.Principal{Org: "acme", Kind: identity.User, ID: "former-1"}, Name: "Former member 1",
		})
		line := func(ref, rest string) string {
			return "id\t1\tkey.created\t1\tkey:k-1\t" + ref + "\tadmins\t" + `{"principal":"` + ref + `",` + rest + "}\n"
		}
		got := w.pack(line("user:ada", `"name":"admin laptop","admin":true,"scopes":["svc:admin:admin"]`))
		if want := line("user:former-1", want); got != want {
			t.Errorf("for the name %q:\n got %s\nwant %s", name, got, want)
		}
	}
}
