package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/parley-dev/parley/internal/config"
)

// grow adds rows to a table that nothing reads, and deletes nearly all of them.
func grow(t *testing.T, cfg config.Config) {
	t.Helper()
	filler := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
	damage(t, cfg, `INSERT INTO audit (org_id, at, id, actor, key_id, action, target, detail, outcome, code, request_id, address) `+
		filler+`SELECT 'gone', i, 'audit-' || i, 'user:x', '', 'x.y', 'target', '`+strings.Repeat("word ", 100)+`', 'done', '',
			'', '' FROM n`)
	damage(t, cfg, `DELETE FROM audit WHERE org_id = 'gone' AND at % 50 <> 0`)
}

// TestCompact gives space back while the server writes, and loses nothing.
func TestCompact(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			cfg := fixtureConfig(t, engine)
			cfg.RateLimit = 0
			s := startServer(t, cfg)
			t.Cleanup(func() { _ = s.Shutdown() })
			grow(t, cfg)
			var stop atomic.Bool
			var writers sync.WaitGroup
			var wrote atomic.Int64
			for range 4 {
				writers.Go(func() {
					for !stop.Load() {
						code, body := post(t, s.URL()+"/api/v1/orgs/main/proposals", s.First().Secret,
							`{"title":"During","category":"process","problem":"It fails.","suggested_fix":"Repair it."}`)
						if code != 201 {
							t.Errorf("a write during the compaction: %d %s", code, body)
							return
						}
						wrote.Add(1)
						time.Sleep(10 * time.Millisecond) // else they fill the space that is given back
					}
				})
			}
			steps := 0
			r, err := Compact(t.Context(), cfg.Store, false, func(string) { steps++ })
			stop.Store(true)
			writers.Wait()
			if err != nil {
				t.Fatal(err)
			}
			if r.Engine != engine || steps < 2 || wrote.Load() == 0 {
				t.Errorf("compacted %+v in %d steps beside %d writes", r, steps, wrote.Load())
			}
			if engine == "sqlite" && (r.After > r.Before/2 || fileBytes(t, cfg) > r.Before/2) {
				t.Errorf("the file has %d bytes, said %+v, want less than half", fileBytes(t, cfg), r)
			}
			if engine == "postgres" && r.After > r.Before*9/10 { // new indexes of the table that lost its rows
				t.Errorf("the store had %d bytes, and has %d", r.Before, r.After)
			}
			checkClean(t, cfg)
			_, err = Compact(t.Context(), cfg.Store, true, func(string) {})
			if engine == "postgres" {
				if err != nil {
					t.Error(err)
				}
				checkClean(t, cfg)
				return
			}
			if err == nil || !strings.Contains(err.Error(), "a server uses the store") {
				t.Errorf("in full beside a server: %v, want a refusal", err)
			}
		})
	}
}

func fileBytes(t *testing.T, cfg config.Config) int64 {
	t.Helper()
	st, err := os.Stat(filepath.Join(cfg.Data, "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	return st.Size()
}

func checkClean(t *testing.T, cfg config.Config) {
	t.Helper()
	c, err := Check(t.Context(), cfg.Store, false, func(string) {})
	if err != nil || len(c.Findings) > 0 {
		t.Errorf("check: %+v, %v", c.Findings, err)
	}
}

// A file of an older release must be written anew once.
func TestCompactAnOldStore(t *testing.T) {
	t.Parallel()
	cfg := fixtureConfig(t, "sqlite")
	cfg.Data = t.TempDir()
	conn, err := sqlite.OpenConn(filepath.Join(cfg.Data, "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"PRAGMA journal_mode=WAL", "CREATE TABLE older (x)"} {
		if err := sqlitex.ExecuteTransient(conn, sql, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, cfg)
	for i := range 3 {
		post(t, s.URL()+"/api/v1/orgs/main/proposals", s.First().Secret, fmt.Sprintf(
			`{"title":"Kept %d","category":"process","problem":"It fails.","suggested_fix":"Repair it."}`, i))
	}
	grow(t, cfg)
	if _, err := Compact(t.Context(), cfg.Store, false, func(string) {}); err == nil ||
		!strings.Contains(err.Error(), `run "parley compact --full"`) {
		t.Errorf("an old store: %v, want what to do", err)
	}
	if err := s.Shutdown(); err != nil {
		t.Fatal(err)
	}
	before := countRows(t, cfg)
	r, err := Compact(t.Context(), cfg.Store, true, func(string) {})
	if err != nil || r.After > r.Before/2 {
		t.Fatalf("in full: %+v, %v, want less than half", r, err)
	}
	if after := countRows(t, cfg); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("rows %v, want %v", after, before)
	}
	checkClean(t, cfg)
	s = startServer(t, cfg)
	t.Cleanup(func() { _ = s.Shutdown() })
	if _, err := Compact(t.Context(), cfg.Store, false, func(string) {}); err != nil {
		t.Errorf("in small steps, after it was written anew: %v", err)
	}
}

// A compaction that was stopped leaves indexes, which the next one removes.
func TestCompactAfterAnother(t *testing.T) {
	t.Parallel()
	cfg := fixtureConfig(t, "postgres")
	s := startServer(t, cfg)
	t.Cleanup(func() { _ = s.Shutdown() })
	conn, err := pgx.Connect(t.Context(), cfg.Database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	grow(t, cfg)
	// It fails, because the values are not unique, and leaves an index that is not valid.
	if _, err := conn.Exec(t.Context(), `CREATE UNIQUE INDEX CONCURRENTLY audit_pkey_ccnew ON audit (org_id)`); err == nil {
		t.Fatal("an index was made that should fail")
	}
	c, err := Check(t.Context(), cfg.Store, false, func(string) {})
	if err != nil || len(c.Findings) != 1 || !strings.Contains(c.Findings[0].Text, `run "parley compact"`) {
		t.Errorf("check: %+v, %v, want the index that is left", c.Findings, err)
	}
	lock := func(call string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), `SELECT `+call+`(7305800614)`); err != nil {
			t.Fatal(err)
		}
	}
	lock("pg_advisory_lock")
	checkClean(t, cfg) // it may be one that is being built
	if _, err := Compact(t.Context(), cfg.Store, false, func(string) {}); err == nil ||
		!strings.Contains(err.Error(), "another parley compact") {
		t.Errorf("beside another: %v, want a refusal", err)
	}
	lock("pg_advisory_unlock")
	if _, err := Compact(t.Context(), cfg.Store, false, func(string) {}); err != nil {
		t.Fatal(err)
	}
	checkClean(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Compact(ctx, cfg.Store, false, func(table string) {
		if table == "audit" {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a compaction that is stopped: %v", err)
	}
	checkClean(t, cfg)
}
