package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/proposal"
)

// Migrations of future versions. The incompatible one rebuilds counters, as 0009 did. A write
// that it misses, or a later write of a program that counts differently, would leave the counters
// wrong for good.
var (
	compatibleFile = schemaFile{
		"more_compatible.sql", "-- compatible: yes\nALTER TABLE proposals ADD COLUMN extra TEXT NOT NULL DEFAULT '';\n",
	}
	incompatibleFile = schemaFile{"more_incompatible.sql", `-- compatible: no
DELETE FROM counters WHERE kind = 'proposal' AND who = '';
INSERT INTO counters (org_id, kind, who, status, category, priority, slot, n)
  SELECT org_id, 'proposal', '', status, category, priority, 0, count(*)
  FROM proposals GROUP BY org_id, status, category, priority;
`}
)

// upgrade is a store that programs of several versions open.
type upgrade struct {
	t *testing.T
	o Options
}

// eachUpgrade runs a test on a new store of each engine.
func eachUpgrade(t *testing.T, test func(t *testing.T, u upgrade)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, upgrade{t, Options{Dir: t.TempDir()}})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, upgrade{t, Options{URL: pgtest.URL(t)}})
	})
}

// program returns the options of a program with more migrations than this one.
func (u upgrade) program(version string, more ...schemaFile) Options {
	u.t.Helper()
	files, err := schemaFiles()
	if err != nil {
		u.t.Fatal(err)
	}
	o := u.o
	o.Version, o.schema = version, slices.Concat(files, more)
	return o
}

func (u upgrade) open(o Options) *Store {
	u.t.Helper()
	s, _ := u.start(o)
	return s
}

// start is open, and also returns a function that closes the store before the test ends.
func (u upgrade) start(o Options) (*Store, func()) {
	u.t.Helper()
	s, err := Open(u.t.Context(), o)
	if err != nil {
		u.t.Fatal(err)
	}
	stop := sync.OnceFunc(func() { _ = s.Close() })
	u.t.Cleanup(stop)
	return s, stop
}

// serve opens the store like a server.
func (u upgrade) serve(o Options) (*Store, func()) {
	u.t.Helper()
	o.Node = "node-" + o.Version
	unlock := func() {}
	if o.Dir != "" {
		var err error
		if unlock, err = LockDir(o.Dir, "process 1, parley "+o.Version); err != nil {
			u.t.Fatal(err)
		}
		o.Locked = true
	}
	s, end := u.start(o)
	stop := func() {
		end()
		unlock()
	}
	u.t.Cleanup(stop)
	return s, stop
}

// refused opens the store and wants an error that contains all the words.
func (u upgrade) refused(o Options, words ...string) {
	u.t.Helper()
	s, err := Open(u.t.Context(), o)
	if err == nil {
		_ = s.Close()
		u.t.Fatalf("the store was opened, want an error with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			u.t.Errorf("%v, want %q in it", err, w)
		}
	}
}

var upgrader = identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"}

func submitTo(ctx context.Context, s *Store, n int) error {
	_, err := s.Proposals().Insert(ctx, proposal.Proposal{
		Org: "acme", ID: fmt.Sprintf("prop-%026d", n), Title: "x", Status: proposal.Open, Category: proposal.Reliability,
		Priority: proposal.Normal, SubmittedBy: upgrader.Ref(), SubmittedAt: time.Unix(1, 0),
		UpdatedAt: time.Unix(1, 0), Version: 1,
	}, upgrader, nil)
	return err
}

// mustCount fails the test unless the counters agree with the rows.
func (u upgrade) mustCount(s *Store, want int64) {
	u.t.Helper()
	items, total, err := s.Proposals().List(u.t.Context(), proposal.Filter{
		Org: "acme", Limit: 200, Sort: proposal.SortReview, Viewer: proposal.Viewer{Principal: upgrader, Admin: true},
	})
	if err != nil || total != want || int64(len(items)) != want {
		u.t.Errorf("counted %d, %d rows, %v, want %d", total, len(items), err, want)
	}
}

func (u upgrade) mustSubmit(s *Store, n int) {
	u.t.Helper()
	if err := submitTo(u.t.Context(), s, n); err != nil {
		u.t.Fatal(err)
	}
}

func moved(err error) bool {
	return err != nil && errs.As(err).Code == CodeMigrated && errs.KindOf(err) == errs.Unavailable
}

func TestEveryMigrationSaysWhetherItIsCompatible(t *testing.T) {
	t.Parallel()
	files, err := schemaFiles()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*dialect{&sqliteDialect, &postgresDialect} {
		if _, err := d.migrations(files); err != nil {
			t.Error(err)
		}
		for _, text := range []string{
			"", "CREATE TABLE x (y INTEGER);\n", "-- compatible: maybe\n", "\n-- compatible: yes\n",
		} {
			_, err := d.migrations([]schemaFile{{"0001_x.sql", text}})
			if err == nil || !strings.Contains(err.Error(), "0001_x.sql") {
				t.Errorf("%q = %v, want an error about 0001_x.sql", text, err)
			}
		}
	}
}

func TestOlderProgramsGoOnAfterACompatibleMigration(t *testing.T) {
	t.Parallel()
	eachUpgrade(t, func(t *testing.T, u upgrade) {
		old, stop := u.serve(u.program("1.0"))
		u.mustSubmit(old, 1)
		newer := u.open(u.program("1.1", compatibleFile))
		if r := newer.Migrated(); len(r.Pending) != 1 || r.Pending[0].Name != compatibleFile.name ||
			!r.Pending[0].Compatible {
			t.Errorf("report = %+v, want %s pending", r, compatibleFile.name)
		}
		steps, err := old.Beat(t.Context())
		if err != nil || len(steps) != 1 || !steps[0].Compatible {
			t.Errorf("%v, %v, want the new migration", steps, err)
		}
		u.mustSubmit(old, 2)
		u.mustSubmit(newer, 3)
		u.mustCount(old, 3)
		stop()
		again, _ := u.serve(u.program("1.0")) // a downgrade
		u.mustSubmit(again, 4)
		u.mustCount(again, 4)
		if r := again.Migrated(); len(r.Ahead) != 1 || len(r.Pending) != 0 {
			t.Errorf("report = %+v, want 1 migration ahead", r)
		}
	})
}

func TestAnIncompatibleMigrationWaitsForOlderNodes(t *testing.T) {
	t.Parallel()
	eachUpgrade(t, func(t *testing.T, u upgrade) {
		old, stop := u.serve(u.program("1.0"))
		u.mustSubmit(old, 1)
		next := u.program("2.0", compatibleFile, incompatibleFile)
		u.refused(next, incompatibleFile.name, "parley 1.0", "stop them", "parley migrate --force")
		if _, err := old.Beat(t.Context()); err != nil {
			t.Errorf("Beat after a refused migration = %v, want no error", err)
		}
		if r, err := Plan(t.Context(), u.o); err != nil || len(r.Ahead) > 0 {
			t.Errorf("Plan after a refused migration = %+v, %v, want none ahead", r, err)
		}
		u.mustSubmit(old, 2)
		stop()
		newer, _ := u.serve(next)
		u.mustSubmit(newer, 3)
		u.mustCount(newer, 3)
	})
}

// The fence works at once, before the node has noticed the migration.
func TestAForcedMigrationFencesOlderNodes(t *testing.T) {
	t.Parallel()
	eachUpgrade(t, func(t *testing.T, u upgrade) {
		old, stop := u.serve(u.program("1.0"))
		u.mustSubmit(old, 1)
		o := u.program("2.0", incompatibleFile)
		o.Migrate = MigrateByForce
		newer := u.open(o)
		if r := newer.Migrated(); len(r.Nodes) != 1 {
			t.Errorf("%+v, want the node that was overruled", r)
		}
		var wg sync.WaitGroup
		for i := range 40 { // enough for batches
			wg.Go(func() {
				if err := submitTo(t.Context(), old, 100+i); !moved(err) {
					t.Errorf("write of the old node = %v, want code %s", err, CodeMigrated)
				}
			})
		}
		wg.Wait()
		_, err := old.Beat(t.Context())
		if !moved(err) || !strings.Contains(err.Error(), "(2.0)") || !strings.Contains(err.Error(), "restart this node") {
			t.Errorf("Beat = %v, want to restart with 2.0", err)
		}
		if !moved(old.Moved()) || !moved(old.Ping(t.Context())) {
			t.Errorf("Moved = %v, Ping = %v, want code %s", old.Moved(), old.Ping(t.Context()), CodeMigrated)
		}
		f := proposal.Filter{Org: "acme", Limit: 1, Sort: proposal.SortReview}
		if _, _, err := old.Proposals().List(t.Context(), f); !moved(err) {
			t.Errorf("read of the old node = %v, want code %s", err, CodeMigrated)
		}
		u.mustSubmit(newer, 2)
		u.mustCount(newer, 2)
		stop()
		u.refused(u.program("1.0"), "newer parley (2.0)", "run that version")
	})
}

// Beat alone must notice the migration on a node that does not write.
func TestAQuietNodeNoticesAnIncompatibleMigration(t *testing.T) {
	t.Parallel()
	eachUpgrade(t, func(t *testing.T, u upgrade) {
		old, _ := u.serve(u.program("1.0"))
		o := u.program("2.0", incompatibleFile)
		o.Migrate = MigrateByForce
		u.open(o)
		if _, err := old.Beat(t.Context()); !moved(err) {
			t.Errorf("Beat = %v, want code %s", err, CodeMigrated)
		}
	})
}

func TestCommandsNeverMigrate(t *testing.T) {
	t.Parallel()
	eachUpgrade(t, func(t *testing.T, u upgrade) {
		command := func(more ...schemaFile) Options {
			o := u.program("1.1", more...)
			o.Migrate = MigrateNever
			return o
		}
		u.open(command()) // an empty store is set up
		_, stop := u.serve(u.program("1.0"))
		u.open(command())
		u.refused(command(compatibleFile), "an older server uses the store", "parley 1.0", "upgrade the server first")
		stop()
		u.refused(command(compatibleFile), `run "parley migrate" first`)
		u.open(u.program("1.1", compatibleFile))
		u.open(command(compatibleFile))
		u.open(command()) // of the older program
	})
}

func TestAPlanChangesNothing(t *testing.T) {
	t.Parallel()
	eachUpgrade(t, func(t *testing.T, u upgrade) {
		o := u.program("2.0", compatibleFile, incompatibleFile)
		if r, err := Plan(t.Context(), o); err != nil || r.Schema != 0 || len(r.Pending) != len(o.schema) {
			t.Errorf("Plan of an empty store = %+v, %v, want schema 0 and %d pending", r, err, len(o.schema))
		}
		_, stop := u.serve(u.program("1.0"))
		for range 2 {
			r, err := Plan(t.Context(), o)
			if err != nil || len(r.Pending) != 2 || r.Pending[1].Compatible || len(r.Nodes) != 1 {
				t.Errorf("Plan = %+v, %v, want 2 pending and 1 node", r, err)
			}
		}
		stop()
		if r, err := Plan(t.Context(), o); err != nil || len(r.Pending) != 2 || len(r.Nodes) != 0 {
			t.Errorf("Plan after the stop = %+v, %v, want 2 pending and no nodes", r, err)
		}
	})
}

// Stores of development versions recorded only number and name.
func TestBooksOfDevelopmentVersionsAreCompleted(t *testing.T) {
	t.Parallel()
	eachUpgrade(t, func(t *testing.T, u upgrade) {
		s, stop := u.start(u.program("0.9"))
		err := s.eng.write(t.Context(), func(x *tx) error {
			for _, column := range []string{"compatible", "program", "applied_at"} {
				x.exec(`ALTER TABLE schema_migrations DROP COLUMN ` + column)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		stop()
		u.mustSubmit(u.open(u.program("1.1", compatibleFile)), 1)
	})
}

func TestANodeThatVanishedIsNotWaitedForLong(t *testing.T) {
	t.Parallel()
	u := upgrade{t, Options{URL: pgtest.URL(t)}}
	old, _ := u.serve(u.program("1.0"))
	next := u.program("2.0", incompatibleFile)
	age := func(d time.Duration) {
		t.Helper()
		if err := old.eng.write(t.Context(), func(x *tx) error {
			x.exec(`UPDATE nodes SET seen_at = seen_at - $1`, d.Microseconds())
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	age(aliveFor / 2)
	u.refused(next, "parley 1.0")
	age(aliveFor)
	if r, err := Plan(t.Context(), next); err != nil || len(r.Nodes) != 0 {
		t.Errorf("%+v, %v, want no node", r, err)
	}
	if _, err := old.Beat(t.Context()); err != nil { // the node was only slow
		t.Fatal(err)
	}
	u.refused(next, "parley 1.0")
	age(sweepNodes)
	other, _ := u.serve(u.program("1.0b"))
	if _, err := other.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := 0
	if _, err := one(t.Context(), other.eng, []any{&n}, `SELECT count(*) FROM nodes`); err != nil || n != 1 {
		t.Errorf("%d nodes, %v, want the one that is alive", n, err)
	}
}

// On PostgreSQL a write can run while a migration counts the rows. The migration must wait for
// it.
func TestAnIncompatibleMigrationSeesTheWritesUnderWay(t *testing.T) {
	t.Parallel()
	u := upgrade{t, Options{URL: pgtest.URL(t)}}
	old, _ := u.serve(u.program("1.0"))
	u.mustSubmit(old, 1)
	begun, end := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		err := old.eng.write(context.Background(), func(x *tx) error {
			var n int
			if _, err := one(context.Background(), x, []any{&n}, `SELECT count(*) FROM proposals`); err != nil {
				return err
			}
			close(begun)
			<-end
			p := proposal.Proposal{
				Org: "acme", SubmittedBy: upgrader.Ref(), Status: proposal.Open, Category: proposal.Reliability,
				Priority: proposal.Normal,
			}
			x.exec(`INSERT INTO proposals (org_id, id, status, category, priority, submitted_by, submitted_at,
					submitted_as, updated_at, votes_for, votes_against, score, version, followup_id, title, problem,
					suggested_fix, resolution_note)
				SELECT org_id, 'prop-late', status, category, priority, submitted_by, submitted_at,
					submitted_as, updated_at, votes_for, votes_against, score, version, followup_id, title, problem,
					suggested_fix, resolution_note
				FROM proposals`)
			x.countProposal(&p, 1)
			return nil
		})
		if err != nil {
			t.Errorf("write that began before = %v, want no error", err)
		}
	})
	<-begun
	o := u.program("2.0", incompatibleFile)
	o.Migrate = MigrateByForce
	opened := make(chan *Store, 1)
	wg.Go(func() {
		s, err := Open(context.Background(), o)
		if err != nil {
			t.Error(err)
		}
		opened <- s
	})
	select {
	case s := <-opened:
		close(end)
		t.Error("the migration ended during the write, want it to wait")
		_ = s.Close()
		return
	case <-u.waitsForLock(old):
	}
	close(end)
	if s := <-opened; s != nil {
		u.mustCount(s, 2)
		_ = s.Close()
	}
}

// A write that waited for a migration sees its result.
func TestAWriteThatWaitedForAnIncompatibleMigrationIsRefused(t *testing.T) {
	t.Parallel()
	read := func(x *tx) error {
		var n int
		_, err := one(context.Background(), x, []any{&n}, `SELECT count(*) FROM proposals`)
		return err
	}
	for name, write := range map[string]func(s *Store) error{
		"with a read": func(s *Store) error {
			return s.eng.write(context.Background(), func(x *tx) error {
				x.newEpoch("acme")
				return read(x)
			})
		},
		"without a read": func(s *Store) error { return s.writeEpoch(context.Background()) },
		"in a batch":     func(s *Store) error { return s.addEpoch(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := upgrade{t, Options{URL: pgtest.URL(t), LockTimeout: long}}
			old, _ := u.serve(u.program("1.0"))
			migration := connect(t, u.o.URL)
			mustExec(t, migration, `BEGIN`)
			for _, s := range stopWriters {
				if _, err := migration.Exec(t.Context(), s.sql, s.args...); err != nil {
					t.Fatal(err)
				}
			}
			mustExec(t, migration, `INSERT INTO schema_migrations (number, name, compatible) VALUES (1000, 'later', 0)`)
			written := make(chan error, 1)
			go func() { written <- write(old) }()
			<-u.waitsForLock(old)
			mustExec(t, migration, `COMMIT`)
			if err := <-written; !moved(err) {
				t.Errorf("%v, want it refused", err)
			}
		})
	}
}

// waitsForLock returns a channel that is closed when a session waits for the writers' lock.
func (u upgrade) waitsForLock(s *Store) <-chan struct{} {
	out := make(chan struct{})
	go func() {
		for u.t.Context().Err() == nil {
			n := 0
			_, err := one(u.t.Context(), s.eng, []any{&n}, `SELECT count(*) FROM pg_locks
				WHERE relation = 'schema_migrations'::regclass AND NOT granted
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
			if err == nil && n > 0 {
				close(out)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return out
}
