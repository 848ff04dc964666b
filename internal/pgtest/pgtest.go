// Package pgtest starts a temporary PostgreSQL from the installed binaries, so that tests and
// benchmarks run against the real engine without a configured server or container.
//
// A server lives in a temporary directory and listens on a Unix socket in it, so it needs no port
// and other users cannot reach it. A small shell process stops it and removes the directory when
// the process that started it ends in any way. The package knows nothing of Parley.
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

var prepared struct {
	once sync.Once
	name string
	err  error
}

// URL returns the URL of a fresh, empty database that is dropped when the test ends. The first
// call in a process starts the server that all its tests share; it stops with the process. Without
// PostgreSQL the test fails, so that a partial test run does not look complete. Only 'make check'
// skips it.
func URL(t testing.TB) string {
	t.Helper()
	return database(t, "template1")
}

// Copy is URL with the contents that prepare gives to the first database of the process. Later
// calls copy that database, so all calls of a process must prepare the same.
func Copy(t testing.TB, prepare func(url string) error) string {
	t.Helper()
	s := server(t)
	prepared.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if prepared.name, prepared.err = s.CreateDatabase(ctx); prepared.err == nil {
			prepared.err = prepare(s.URL(prepared.name))
		}
	})
	if prepared.err != nil {
		t.Fatal(prepared.err)
	}
	return database(t, prepared.name)
}

// server returns the server that all tests of the process share.
func server(t testing.TB) *Server {
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
	return shared.server
}

// database returns the URL of a new copy of another database.
func database(t testing.TB, template string) string {
	t.Helper()
	s := server(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	name, err := s.copyDatabase(ctx, template)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.DropDatabase(ctx, name); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return s.URL(name)
}

// skipShort skips tests on PostgreSQL in 'go test -short'.
func skipShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("on PostgreSQL: 'make test' runs it")
	}
}

// CreateDatabase creates an empty database and returns its name.
func (s *Server) CreateDatabase(ctx context.Context) (string, error) {
	return s.copyDatabase(ctx, "template1")
}

func (s *Server) copyDatabase(ctx context.Context, template string) (string, error) {
	name := fmt.Sprintf("t%d", s.databases.Add(1))
	return name, s.exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+template)
}

// DropDatabase removes a database of CreateDatabase and ends its connections.
func (s *Server) DropDatabase(ctx context.Context, name string) error {
	return s.exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
}
