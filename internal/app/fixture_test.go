package app

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/secret"
)

// Stores as earlier releases left them are kept in testdata/stores, one folder for each
// schema. Before a release with a new schema, add that of the release:
//
//	go test ./internal/app -run TestStoresOfEveryRelease -update
//
// An existing folder is never written again: it is what operators have.
var update = flag.Bool("update", false, "keep a store of this schema, if there is none yet")

const storesFolder = "testdata/stores"

// kept is what is known of a store in testdata.
type kept struct {
	Key   string                     // of the first admin
	Rows  map[string]int64           // of each table
	Reads map[string]json.RawMessage // what the interface returned, by path
}

// bookkeeping is not the program's data: it changes with every migration and start, or by itself.
var bookkeeping = map[string]bool{
	"schema_migrations": true, "nodes": true,
	"search_orgs": true, "search_segments": true, "search_pages": true, "search_waiting": true,
}

// changedLater names tables whose number of rows a later migration changes on purpose,
// with the first schema in which it does.
var changedLater = map[string]int{"proposal_search": 27, "proposal_search_docsize": 27}

func TestStoresOfEveryRelease(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		if *update {
			t.Run("keep/"+engine, func(t *testing.T) { keepStore(t, engine) })
		}
		folders, err := filepath.Glob(filepath.Join(storesFolder, "[0-9]*"))
		if err != nil || len(folders) == 0 {
			t.Fatalf("no stores in %s: %v", storesFolder, err)
		}
		for _, folder := range folders {
			t.Run(filepath.Base(folder)+"/"+engine, func(t *testing.T) {
				t.Parallel()
				checkStore(t, folder, engine)
			})
		}
	}
}

// checkStore restores a store, migrates it to the newest schema and compares what can
// be read with what its own release read.
func checkStore(t *testing.T, folder, engine string) {
	var want kept
	data, err := os.ReadFile(filepath.Join(folder, engine+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(renamed(data), &want); err != nil {
		t.Fatal(err)
	}
	cfg := fixtureConfig(t, engine)
	restoreStore(t, filepath.Join(folder, engine+".sql.gz"), filepath.Join(folder, engine+".db.gz"), cfg)
	report, err := Migrate(t.Context(), cfg.Store, Migration{})
	if err != nil {
		t.Fatal(err)
	}
	// The rows are counted before a server deletes those that have expired.
	got := countRows(t, cfg)
	for table, n := range want.Rows {
		later, changes := changedLater[table]
		if n == 0 {
			t.Errorf("the table %s of the kept store is empty", table)
		}
		if table == "counters" { // may be spread otherwise; see checkCounters
			continue
		}
		if got[table] != n && (!changes || report.Schema >= later) {
			t.Errorf("the table %s has %d rows after the migration; want %d", table, got[table], n)
		}
	}
	s := startServer(t, cfg)
	defer func() { _ = s.Shutdown() }()
	want.check(t, s)
}

// check compares what a server reads with what the release of the store read.
func (want *kept) check(t *testing.T, s *Server) {
	t.Helper()
	for path, before := range want.Reads {
		code, body := get(t, s.URL()+path, want.Key)
		if code != 200 {
			t.Errorf("%s: %d %s", path, code, body)
			continue
		}
		if at := lacks("", decoded(t, before), decoded(t, []byte(body))); at != "" {
			t.Errorf("%s reads differently now: %s", path, at)
		}
	}
	checkCounters(t, s, want.Key)
}

// checkCounters compares the totals, which are counters, with the rows.
func checkCounters(t *testing.T, s *Server, key string) {
	t.Helper()
	for _, path := range []string{"proposals?status=all", "proposals?status=open", "proposals?status=approved", "followups"} {
		_, body := get(t, s.URL()+"/api/v1/orgs/main/"+path, key)
		var page struct {
			Proposals, Followups []json.RawMessage
			Total                int
		}
		if err := json.Unmarshal([]byte(body), &page); err != nil || page.Total == 0 ||
			page.Total != len(page.Proposals)+len(page.Followups) {
			t.Errorf("%s: total %d, %d and %d rows, %v", path, page.Total, len(page.Proposals), len(page.Followups), err)
		}
	}
}

// renamed is what a release before schema 20 read, in today's names: a follow-up was
// called a task.
func renamed(data []byte) []byte {
	data = regexp.MustCompile(`"task-([0-9a-z]{26})"`).ReplaceAll(data, []byte(`"fup-$1"`))
	data = bytes.ReplaceAll(data, []byte(`"/api/v1/orgs/main/tasks"`), []byte(`"/api/v1/orgs/main/followups"`))
	return regexp.MustCompile(`"tasks":(\s*)\[(\s*)\{(\s*)"id":(\s*)"fup-`).ReplaceAll(data,
		[]byte(`"followups":$1[$2{$3"id":$4"fup-`))
}

func decoded(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return v
}

// volatile reports whether a member depends on the time of reading: when a key was used
// last, whether an agent has workers, or had them last, and what a webhook sent.
func volatile(path string) bool {
	agent := strings.HasPrefix(path, "/agents/")
	if strings.HasPrefix(path, "/webhooks/") {
		return regexp.MustCompile(`attempt|due|next|error|failing|behind`).MatchString(path)
	}
	return strings.HasSuffix(path, "/last_used_at") || agent && strings.HasSuffix(path, "/status") ||
		agent && strings.HasSuffix(path, "/last_seen_at")
}

// lacks says where got lacks something of want. A newer release may show more.
func lacks(at string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v; want an object", at, got)
		}
		for name := range w {
			if volatile(at + "/" + name) {
				continue
			}
			if where := lacks(at+"/"+name, w[name], g[name]); where != "" {
				return where
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s is %v; want %v", at, got, want)
		}
		for i := range w {
			if where := lacks(fmt.Sprintf("%s/%d", at, i), w[i], g[i]); where != "" {
				return where
			}
		}
		return ""
	}
	if want != got {
		return fmt.Sprintf("%s is %v; want %v", at, got, want)
	}
	return ""
}

// fixtureConfig is a server on an empty store that sends and deletes nothing by itself.
func fixtureConfig(t *testing.T, engine string) config.Config {
	t.Helper()
	cfg := testConfig(t)
	cfg.TaskRetention = 100 * 365 * 24 * time.Hour
	if engine == "postgres" {
		cfg.Database, cfg.SecretKeyFile = pgtest.URL(t), newKeyFile(t)
	}
	return cfg
}

// newKeyFile returns a key file with one key.
func newKeyFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret.key")
	if err := secret.CreateFile(path, secret.Keys{secret.NewKey(Now())}); err != nil {
		t.Fatal(err)
	}
	return path
}

func restoreStore(t *testing.T, dump, file string, cfg config.Config) {
	t.Helper()
	if cfg.Database == "" {
		if err := os.WriteFile(filepath.Join(cfg.Data, "parley.db"), unzipped(t, file), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	conn, err := pgx.Connect(t.Context(), cfg.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), string(unzipped(t, dump))); err != nil {
		t.Fatalf("restore %s: %v", dump, err)
	}
}

func unzipped(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func zipped(t *testing.T, name string, data []byte) {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	_, err = z.Write(data)
	if err := errors.Join(err, z.Close(), os.WriteFile(name, b.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// countRows counts the rows of all tables.
func countRows(t *testing.T, cfg config.Config) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	if cfg.Database != "" {
		conn, err := pgx.Connect(t.Context(), cfg.Database)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		rows, err := conn.Query(t.Context(), `SELECT relname FROM pg_class
			WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition`)
		if err != nil {
			t.Fatal(err)
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			var n int64
			if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM `+name).Scan(&n); err != nil {
				t.Fatal(err)
			}
			out[name] = n
		}
		return out
	}
	conn, err := sqlite.OpenConn(filepath.Join(cfg.Data, "parley.db"), sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var names []string
	each := func(sql string, fn func(*sqlite.Stmt)) {
		t.Helper()
		if err := sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
			fn(s)
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
	}
	each(`SELECT name FROM sqlite_master WHERE type = 'table'`, func(s *sqlite.Stmt) { names = append(names, s.ColumnText(0)) })
	for _, name := range names {
		if strings.HasPrefix(name, "sqlite_") {
			continue
		}
		each(`SELECT count(*) FROM `+name, func(s *sqlite.Stmt) { out[name] = s.ColumnInt64(0) })
	}
	return out
}
