package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/proposal"
)

// eachOlderStore creates a store on each engine with so many of the migrations, runs the
// statements on it, and opens it with all migrations.
func eachOlderStore(t *testing.T, migrations int, statements []string, test func(t *testing.T, s *Store)) {
	files, err := schemaFiles()
	if err != nil {
		t.Fatal(err)
	}
	for name, where := range map[string]func(t *testing.T) Options{
		"sqlite":   func(t *testing.T) Options { return Options{Dir: t.TempDir()} },
		"postgres": func(t *testing.T) Options { return Options{URL: pgtest.URL(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := where(t)
			o.schema = files[:migrations]
			s, err := Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.eng.write(t.Context(), func(x *tx) error {
				for _, sql := range statements {
					x.exec(sql)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			o.schema = nil // all
			if s, err = Open(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			test(t, s)
		})
	}
}

// Stores from before 0009 counted the rows of a submitter only by status.
func TestSubmitterCountersAreMadeAnew(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			o := Options{Dir: t.TempDir()}
			if engine == "postgres" {
				o = Options{URL: pgtest.URL(t)}
			}
			s, err := Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			ann := identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"}
			for i := range 6 {
				p := proposal.Proposal{
					Org: "acme", ID: fmt.Sprintf("prop-%026d", i), Title: "x", Status: proposal.Open, Category: proposal.Reliability,
					Priority: proposal.Normal, SubmittedBy: ann.Ref(), SubmittedAt: time.Unix(1, 0),
					UpdatedAt: time.Unix(1, 0), Version: 1,
				}
				if i < 2 {
					p.Category, p.Priority = proposal.Security, proposal.High
				}
				if _, err := s.Proposals().Insert(t.Context(), p, ann, nil); err != nil {
					t.Fatal(err)
				}
			}
			files, err := schemaFiles()
			if err != nil {
				t.Fatal(err)
			}
			all, err := s.d.migrations(files)
			if err != nil {
				t.Fatal(err)
			}
			err = s.eng.write(t.Context(), func(x *tx) error {
				x.exec(`DELETE FROM counters WHERE who <> ''`)
				x.exec(`INSERT INTO counters (org_id, kind, who, status, category, priority, slot, n)
					VALUES ('acme', 'proposal', $1, 'open', '', 0, 0, 6)`, ann.Ref())
				for _, sql := range all[8].statements {
					x.exec(sql)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for want, f := range map[int64]proposal.Filter{
				6: {SubmittedBy: ann.Ref()},
				2: {SubmittedBy: ann.Ref(), Category: proposal.Security},
				4: {SubmittedBy: ann.Ref(), Priority: proposal.Normal},
				0: {SubmittedBy: ann.Ref(), Category: proposal.Security, Priority: proposal.Normal},
			} {
				f.Org, f.Limit, f.Sort, f.Viewer = "acme", 10, proposal.SortReview, proposal.Viewer{Principal: ann, Admin: true}
				items, total, err := s.Proposals().List(t.Context(), f)
				if err != nil || total != want || int64(len(items)) != want {
					t.Errorf("%+v: total %d, %d items, %v, want %d", f, total, len(items), err, want)
				}
			}
		})
	}
}
