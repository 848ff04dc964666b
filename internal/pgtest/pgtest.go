// Package pgtest starts a throw-away PostgreSQL from the binaries that are
// installed, so that tests and benchmarks run against the real engine and need
// no server, no container and no configuration.
//
// A server lives in a temporary folder, listens on a Unix socket inside it (no
// port to fight over, nothing for other users to reach) and is watched by a
// small shell process that stops it and removes the folder when the process that
// started it ends, however it ends. The package knows nothing of Parley.
package pgtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// URL returns the address of a fresh, empty database that is dropped when the
// test ends. The first call in a process starts the server that all tests of
// the process share; it stops with the process. Without PostgreSQL the test
// fails: half a test run must not look like a whole one. Only 'make check', which is
// not a whole one, skips it.
func URL(t testing.TB) string {
	t.Helper()
	skipShort(t)
	shared.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		shared.server, shared.err = Start(ctx)
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	name, err := shared.server.CreateDatabase(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := shared.server.DropDatabase(ctx, name); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return shared.server.URL(name)
}

// skipShort skips tests on PostgreSQL in 'go test -short'.
func skipShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("on PostgreSQL: 'make test' runs it")
	}
}

// CreateDatabase makes an empty database and returns its name.
func (s *Server) CreateDatabase(ctx context.Context) (string, error) {
	name := fmt.Sprintf("t%d", s.databases.Add(1))
	return name, s.exec(ctx, "CREATE DATABASE "+name)
}

// DropDatabase removes a database that CreateDatabase made, ending whatever
// connections there still are.
func (s *Server) DropDatabase(ctx context.Context, name string) error {
	return s.exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
}
