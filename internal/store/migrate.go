package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Policy controls how opening a store may change its schema.
type Policy int

// The policies. All of them set up an empty store.
const (
	// MigrateSafely applies pending migrations, but no incompatible one while another node
	// uses the store.
	MigrateSafely Policy = iota
	// MigrateByForce also applies incompatible migrations while other nodes run.
	MigrateByForce
	// MigrateNever refuses a store with pending migrations.
	MigrateNever
	// migrateDry rolls back at the end.
	migrateDry
)

// Report describes what opening a store found and did.
type Report struct {
	Engine  string
	Schema  int    // number of the last migration that the store had
	Pending []Step // migrations to apply; applied, unless this was a dry run
	Nodes   []Node // other nodes that use the store and do not support all of Pending
	// Ahead lists migrations of a newer program that the store already has.
	Ahead []Step
}

// migrator is a transaction that excludes other migrations.
type migrator struct {
	reader
	exec func(sql string, args ...any) error
	// stopWriters waits for the running writes of all nodes, and blocks new ones until the
	// transaction ends.
	stopWriters func() error
	// others returns the nodes that use the store and do not support the schema.
	others func(schema int) ([]Node, error)
}

// migrateAll brings the schema up to date as far as the policy allows.
func (s *Store) migrateAll(ctx context.Context, m migrator, o Options) error {
	if err := s.d.makeBooks(ctx, m); err != nil {
		return err
	}
	all, err := s.d.migrations(o.schema)
	if err != nil {
		return err
	}
	if err := s.readReport(ctx, m, all); err != nil {
		return err
	}
	if err := s.report.refuse(o.Migrate); err != nil {
		return err
	}
	if s.report.incompatible() != nil {
		if err := m.stopWriters(); err != nil {
			return err
		}
	}
	for _, p := range all[min(s.report.Schema, len(all)):] {
		for _, sql := range p.statements {
			if err := m.exec(sql); err != nil {
				return fmt.Errorf("migration %s: %w", p.Name, err)
			}
		}
		if err := m.exec(`INSERT INTO schema_migrations (number, name, compatible, program, applied_at)
			VALUES ($1, $2, $3, $4, $5)`,
			p.Number, p.Name, flag(p.Compatible), o.Version, micros(s.now())); err != nil {
			return err
		}
	}
	if o.Node == "" {
		return nil
	}
	return s.d.register(m, o, len(all))
}

// makeBooks creates the tables that record migrations. No migration creates them, because a
// program must be able to read them before it knows the schema.
func (d *dialect) makeBooks(ctx context.Context, m migrator) error {
	if err := m.exec(`CREATE TABLE IF NOT EXISTS schema_migrations (
		number INTEGER PRIMARY KEY, name TEXT NOT NULL, compatible INTEGER NOT NULL DEFAULT 1,
		program TEXT NOT NULL DEFAULT '', applied_at BIGINT NOT NULL DEFAULT 0)`); err != nil {
		return err
	}
	// Stores of development versions have only the columns number and name. Check first:
	// ALTER TABLE takes a lock that waits for all readers.
	n := 0
	if _, err := one(ctx, m, []any{&n}, d.hasCompatible); err != nil {
		return err
	}
	if n == 0 {
		for _, column := range []string{
			"compatible INTEGER NOT NULL DEFAULT 1",
			"program TEXT NOT NULL DEFAULT ''",
			"applied_at BIGINT NOT NULL DEFAULT 0",
		} {
			if err := m.exec(`ALTER TABLE schema_migrations ADD COLUMN ` + column); err != nil {
				return err
			}
		}
	}
	if d.makeNodes == "" {
		return nil
	}
	return m.exec(d.makeNodes)
}

func (s *Store) readReport(ctx context.Context, m migrator, all []migration) error {
	r := Report{Engine: s.d.name}
	if _, err := one(ctx, m, []any{&r.Schema}, `SELECT coalesce(max(number), 0) FROM schema_migrations`); err != nil {
		return err
	}
	ahead, err := s.fence.look(ctx, m)
	if err != nil {
		return err
	}
	for _, a := range ahead {
		r.Ahead = append(r.Ahead, a.Step)
	}
	for _, p := range all[min(r.Schema, len(all)):] {
		r.Pending = append(r.Pending, p.Step)
	}
	if r.Schema > 0 && len(r.Pending) > 0 { // an empty store has no nodes yet
		if r.Nodes, err = m.others(len(all)); err != nil {
			return err
		}
	}
	s.report = r
	if s.fence.err() != nil {
		newest := ahead[len(ahead)-1]
		return fmt.Errorf("the store was migrated to schema %d by a newer parley%s, and this one knows schema %d; "+
			"run that version",
			newest.Number, version(newest.program), len(all))
	}
	return nil
}

// incompatible returns the first pending migration that running nodes do not support, or nil.
func (r *Report) incompatible() *Step {
	for i := range r.Pending {
		if !r.Pending[i].Compatible {
			return &r.Pending[i]
		}
	}
	return nil
}

var errDry = errors.New("dry run")

// refuse returns an error if the policy does not allow the pending migrations.
func (r *Report) refuse(p Policy) error {
	bad := r.incompatible()
	switch {
	case p == migrateDry:
		return errDry
	case r.Schema == 0 || len(r.Pending) == 0 || p == MigrateByForce:
		return nil
	case p == MigrateNever && len(r.Nodes) > 0:
		return fmt.Errorf("the store has schema %d and this parley needs %d, but an older server uses the store: %s; "+
			"run this command with the parley of that server, or upgrade the server first",
			r.Schema, r.Pending[len(r.Pending)-1].Number, list(r.Nodes))
	case p == MigrateNever:
		return fmt.Errorf("the store has schema %d and this parley needs %d; run \"parley migrate\" first",
			r.Schema, r.Pending[len(r.Pending)-1].Number)
	case bad != nil && len(r.Nodes) > 0:
		return fmt.Errorf("migration %s is not compatible with older servers, and these still use the store: %s; "+
			"stop them and try again (one that crashed counts for %s more), or run \"parley migrate --force\", "+
			"after which they refuse all requests", bad.Name, list(r.Nodes), aliveFor)
	}
	return nil
}

func list(nodes []Node) string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = n.String()
	}
	return strings.Join(out, ", ")
}

// Plan reports what a migration would do. It changes nothing.
func Plan(ctx context.Context, o Options) (Report, error) {
	o.Migrate, o.Node = migrateDry, ""
	s, err := prepare(ctx, &o)
	if err != nil {
		return Report{}, err
	}
	err = s.migrate(ctx, o)
	if errors.Is(err, errDry) {
		err = nil
	}
	return s.report, errors.Join(err, s.eng.close())
}

// Migrated reports what opening the store did to its schema.
func (s *Store) Migrated() Report { return s.report }

// applied is a migration that the store already has.
type applied struct {
	Step
	program string
}
