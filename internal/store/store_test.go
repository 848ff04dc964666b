package store_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/orgtest"
	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/secret"
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
// shared. Each store has a pooler of its own: versions of pgbouncer up to 1.20 can exit when a
// query is cancelled (pgbouncer/pgbouncer#801), as the queries of a store are that closes, and
// must not take the connections of other tests with them.
func TestPooler(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, o store.Options) *store.Store {
		base := orgtest.EmptyDatabase(t)
		o.URL = pgtest.StartPooler(t, base).URL(t, base)
		return open(t, o)
	}, "two", "search", "votes", "concurrent", "follow-up", "lease", "swept", "lives", "audit", "filters", "push",
		"friction", "events have", "events are deleted")
}

// keys are those of all stores of this test.
var keys = sync.OnceValues(func() (*secret.Keyring, error) {
	dir, err := os.MkdirTemp("", "parley-keys-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the keys stay in memory
	path := filepath.Join(dir, "secret.key")
	if err := secret.CreateFile(path, secret.Keys{secret.NewKey(time.Now())}); err != nil {
		return nil, err
	}
	return secret.Load(path, time.Now)
})

func open(t *testing.T, o store.Options) *store.Store {
	t.Helper()
	var err error
	if o.Keys, err = keys(); err != nil {
		t.Fatal(err)
	}
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
