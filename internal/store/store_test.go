package store_test

import (
	"testing"

	"github.com/parley-dev/parley/internal/orgtest"
	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/store"
	"github.com/parley-dev/parley/internal/store/storetest"
)

func TestSQLite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, o store.Options) *store.Store {
		o.Dir = orgtest.EmptyDir(t)
		return open(t, o)
	})
}

func TestPostgreSQL(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, o store.Options) *store.Store {
		o.URL = orgtest.EmptyDatabase(t)
		return open(t, o)
	})
}

// Each kind of statement works through pgbouncer in transaction mode, in which sessions are
// shared.
func TestPooler(t *testing.T) {
	t.Parallel()
	pooler := pgtest.StartPooler(t, pgtest.URL(t))
	storetest.Run(t, func(t *testing.T, o store.Options) *store.Store {
		o.URL = pooler.URL(t, orgtest.EmptyDatabase(t))
		return open(t, o)
	}, "two", "search", "votes", "concurrent", "follow-up", "lease", "swept", "lives", "audit", "filters", "push",
		"friction", "events have", "events are deleted")
}

func open(t *testing.T, o store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
