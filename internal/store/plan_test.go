package store

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/pgtest"
)

// asked is an engine that records its queries.
type asked struct {
	engine
	queries []string
	slowly  bool
}

func (a *asked) stale() reader { return a.slow() }

func (a *asked) slow() reader {
	a.slowly = true
	return a
}

func (a *asked) query(ctx context.Context, sql string, args ...any) (rows, error) {
	a.queries = append(a.queries, sql)
	return a.engine.query(ctx, sql, args...)
}

// A caller that sends wrong keys and tokens must not cause more than one look-up in a unique
// index.
func TestAWrongCredentialCostsOneLookUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open func(t *testing.T) Options
		plan func(t *testing.T, s *Store, sql string)
	}{
		"sqlite":   {func(t *testing.T) Options { return Options{Dir: t.TempDir()} }, sqlitePlan},
		"postgres": {func(t *testing.T) Options { return Options{URL: pgtest.URL(t)} }, postgresPlan},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Open(t.Context(), c.open(t))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			for what, lookUp := range map[string]func(h identity.Hash) error{
				"key": func(h identity.Hash) error {
					_, err := s.Identity().KeyByHash(t.Context(), h)
					return err
				},
				"token": func(h identity.Hash) error {
					_, err := s.OAuth().TokenByHash(t.Context(), h)
					return err
				},
			} {
				t.Run(what, func(t *testing.T) {
					a := &asked{engine: s.eng}
					s.eng = a
					err := lookUp(identity.HashSecret("wrong"))
					s.eng = a.engine
					if errs.KindOf(err) != errs.NotFound || len(a.queries) != 1 {
						t.Fatalf("%v after %q, want one query that finds nothing", err, a.queries)
					}
					c.plan(t, s, a.queries[0])
				})
			}
		})
	}
}

// A request of a session costs one read of its memberships, by indexes.
func TestMembershipsCostOneLookUp(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	a := &asked{engine: s.eng}
	s.eng = a
	_, err = s.Accounts().Standings(t.Context(), []identity.Principal{
		{Org: "acme", Kind: identity.User, ID: "ada"}, {Org: "beta", Kind: identity.User, ID: "ada"},
	})
	s.eng = a.engine
	if err != nil || len(a.queries) != 1 {
		t.Fatalf("queries = %q, %v, want 1", a.queries, err)
	}
	steps := explain(t, s, func(r rows) (detail string, err error) {
		var id, parent, unused int64
		err = r.Scan(&id, &parent, &unused, &detail)
		return detail, err
	}, `EXPLAIN QUERY PLAN `+a.queries[0], "acme", "ada", "beta", "ada")
	for _, step := range steps {
		if strings.HasPrefix(step, "SCAN") {
			t.Errorf("plan = %q, want no scan of a table", steps)
		}
	}
}

func explain(t *testing.T, s *Store, scan func(r rows) (string, error), sql string, args ...any) (steps []string) {
	t.Helper()
	err := each(t.Context(), s.eng, func(r rows) error {
		step, err := scan(r)
		steps = append(steps, step)
		return err
	}, sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// searches returns how SQLite would find the rows. It fails the test if the plan scans a table, or
// sorts what an index has in order.
func searches(t *testing.T, s *Store, sql string, args ...any) []string {
	t.Helper()
	steps := explain(t, s, func(r rows) (detail string, err error) {
		var id, parent, unused int64
		err = r.Scan(&id, &parent, &unused, &detail)
		return detail, err
	}, `EXPLAIN QUERY PLAN `+sql, args...)
	for _, step := range steps {
		if !strings.HasPrefix(step, "SEARCH ") {
			t.Errorf("plan = %q, want no scan of a table", steps)
		}
	}
	return steps
}

// sqlitePlan: each table is searched by an index, first the one with the hash. If nothing is found
// there, the other tables are not read.
func sqlitePlan(t *testing.T, s *Store, sql string) {
	t.Helper()
	if steps := searches(t, s, sql, "x"); len(steps) == 0 || !strings.Contains(steps[0], "(hash=?)") {
		t.Errorf("plan = %q, want it to begin with the hash", steps)
	}
}

var (
	scanned = regexp.MustCompile(`(Seq|Index|Index Only|Bitmap \w+) Scan`)
	ran     = regexp.MustCompile(`Index Scan using (keys_hash_key|oauth_tokens_pkey) on \w+ \w ` +
		`\(actual rows=0(\.00)? loops=1\)`)
)

// postgresPlan: one index was searched once for the hash, and nothing else was read.
func postgresPlan(t *testing.T, s *Store, sql string) {
	t.Helper()
	steps := explain(t, s, func(r rows) (step string, err error) {
		err = r.Scan(&step)
		return step, err
	}, `EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off, BUFFERS off) `+sql, "x")
	searched := 0
	for _, step := range steps {
		switch {
		case !scanned.MatchString(step) || strings.HasSuffix(step, "(never executed)"):
		case ran.MatchString(step):
			searched++
		default:
			t.Errorf("step = %s, want no other read", step)
		}
	}
	plan := strings.Join(steps, "\n")
	if searched != 1 || !strings.Contains(plan, "Index Cond: (hash = 'x'::text)") {
		t.Errorf("plan looks up the hash %d times, want 1:\n%s", searched, plan)
	}
}

func TestClientsAndProgramsAreFoundByTheirIndexes(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	searches(t, s, clientsOf+`org_id = $1 AND org_id <> '' AND id < $2 ORDER BY id DESC`, "acme", "client-1")
	searches(t, s, programsOf, "acme", "user", "ann", 1)
	searches(t, s, `SELECT 1 FROM oauth_grants WHERE client_id = $1 AND org_id = $2 AND revoked_at = 0`,
		"client-1", "acme")
}

// The entries about one target are read from an index in their order, for any length of the log.
func TestTheAuditLogIsFoundByItsIndexes(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		a := &asked{engine: s.eng}
		s.eng = a
		_, err := s.Audit().List(t.Context(), "a", identity.AuditFilter{
			Target: "key-1", Before: s.now(), BeforeID: "audit-1", Limit: 51,
		})
		s.eng = a.engine
		if err != nil || len(a.queries) != 1 {
			t.Fatalf("queries = %q, %v, want 1", a.queries, err)
		}
		args := []any{"a", "key-1", int64(1), "audit-1"}
		if s.d == &sqliteDialect {
			if steps := searches(t, s, a.queries[0], args...); len(steps) != 1 || !strings.Contains(steps[0], "audit_target") {
				t.Errorf("%q, want audit_target", steps)
			}
			return
		}
		// In an empty table all plans cost the same, so sorts and scans are ruled out.
		if err := s.eng.write(t.Context(), func(x *tx) error {
			x.exec(`INSERT INTO audit (org_id, at, id, actor, key_id, action, target, detail, outcome, code, request_id,
					address)
				SELECT 'a', n, 'audit-' || n, 'server', '', 'x', 'key-' || n, '', 'done', '', '', ''
				FROM generate_series(1, 20000) n`)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		plan := strings.Join(explain(t, s, func(r rows) (step string, err error) {
			err = r.Scan(&step)
			return step, err
		}, `EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off, BUFFERS off) `+a.queries[0], args...), "\n")
		if !strings.Contains(plan, "using audit_target") || strings.Contains(plan, "Seq Scan") ||
			strings.Contains(plan, "Rows Removed") {
			t.Errorf("plan =\n%s\nwant audit_target without a scan or removed rows", plan)
		}
	})
}

// The target of an audit entry can be longer than an index allows.
func TestALongTargetIsWritten(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		for _, n := range []int{identity.MaxAuditTarget, identity.MaxAuditTarget + 1, 5000} {
			var long strings.Builder // must not be compressible
			for i := range n {
				long.WriteRune(rune(0x10000 + (i*7919+n)%0x8000))
			}
			e := identity.NewEntry(t.Context(), s.now(), "a", identity.KeyCreate, long.String(), "")
			if err := s.Audit().Append(t.Context(), e); err != nil {
				t.Fatalf("target of %d characters: Append = %v, want no error", n, err)
			}
			got, err := s.Audit().List(t.Context(), "a", identity.AuditFilter{Target: e.Target})
			if want := n <= identity.MaxAuditTarget; err != nil || (len(got) == 1) != want {
				t.Errorf("target of %d characters: entries = %d, %v, want found = %t", n, len(got), err, want)
			}
		}
	})
}
