package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/idptest"
	"github.com/parley-dev/parley/internal/secret"
)

func still(string, int64) {}

// backedUp returns a back-up of the store with its key file, which it makes if no server has done it.
func backedUp(t *testing.T, cfg config.Config) ([]byte, BackedUp) {
	t.Helper()
	if err := secret.CreateFile(cfg.KeyFile(), secret.Keys{secret.NewKey(Now())}); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	var b bytes.Buffer
	out, err := Backup(t.Context(), cfg.Store, BackupTo{Dest: "-", Stdout: &b, WithKey: true}, still)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), out
}

// mustRestore restores a store with its key file, which replaces that of cfg.
func mustRestore(t *testing.T, cfg config.Config, data []byte) {
	t.Helper()
	if err := os.Remove(cfg.KeyFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), cfg.Store, bytes.NewReader(data), false, still); err != nil {
		t.Fatal(err)
	}
}

// rowsOf returns the text of a back-up without its header and end, in an order that does not depend on
// the engine.
func rowsOf(t *testing.T, data []byte) []string {
	t.Helper()
	r, err := zstd.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	lines = lines[1 : len(lines)-1]
	table := ""
	for i, line := range lines {
		if strings.HasPrefix(line, "{") {
			table = line
			continue
		}
		lines[i] = table + line
	}
	slices.Sort(lines)
	return lines
}

// readAll returns what the interface returns for these paths.
func readAll(t *testing.T, s *Server, key string, paths []string) map[string]json.RawMessage {
	t.Helper()
	out := map[string]json.RawMessage{}
	for _, path := range paths {
		code, body := get(t, s.URL()+path, key)
		if code != 200 {
			t.Fatal(path, code, body)
		}
		out[path] = json.RawMessage(body)
	}
	return out
}

// TestBackupMovesAStore takes a store with rows in every table from one engine to the other and back.
func TestBackupMovesAStore(t *testing.T) {
	t.Parallel()
	other := map[string]string{"sqlite": "postgres", "postgres": "sqlite"}
	for engine := range other {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			cfg := fixtureConfig(t, engine)
			is := idptest.New(t)
			is.Person = idptest.Claims{
				"sub": "s-1", "preferred_username": "ada", "name": "Ada Lovelace", "email": "ada@acme.example",
			}
			receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusServiceUnavailable)
			}))
			t.Cleanup(receiver.Close)
			cfg.Issuers, cfg.PushAllow = issuerFile(t, "", map[string]*idptest.Issuer{"acme": is}), []string{"127.0.0.1"}
			cfg.OutboundAllow = []string{"127.0.0.1"}
			s := startServer(t, cfg)
			key := s.First().Secret
			fillStore(t, s, receiver.URL)
			s.settle(t)
			paths := backupReads(t, s, key)
			want := readAll(t, s, key, paths)
			if err := s.Shutdown(); err != nil {
				t.Fatal(err)
			}

			first, made := backedUp(t, cfg)
			for table, n := range made.Tables {
				if n == 0 {
					t.Errorf("the table %s is empty; add to fillStore what fills it", table)
				}
			}
			for table := range countRows(t, cfg) {
				if _, ok := made.Tables[table]; !ok && !slices.Contains([]string{
					"schema_migrations", "nodes", "data_versions", "events_new", "search_orgs", "search_segments",
					"search_pages", "search_waiting",
				}, table) {
					t.Errorf("the table %s is not backed up", table)
				}
			}
			second := cfg
			second.Store = fixtureConfig(t, other[engine]).Store
			mustRestore(t, second, first)
			copied, _ := backedUp(t, second)
			third := cfg
			third.Store = fixtureConfig(t, engine).Store
			mustRestore(t, third, copied)
			again, _ := backedUp(t, third)
			rows := rowsOf(t, first)
			for name, data := range map[string][]byte{other[engine]: copied, "back on " + engine: again} {
				if got := rowsOf(t, data); !slices.Equal(got, rows) {
					t.Errorf("%s: %d rows differ from %d: %.2000q", name, len(got), len(rows), missing(rows, got))
				}
			}
			for _, c := range []config.Config{second, third} {
				moved := startServer(t, c)
				got := readAll(t, moved, key, paths)
				for path := range want {
					if at := lacks("", decoded(t, want[path]), decoded(t, got[path])); at != "" {
						t.Errorf("%s differs: %s", path, at)
					}
				}
				checkCounters(t, moved, key)
				checkFound(t, moved, key)
				if err := moved.Shutdown(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// backupReads are the lists of the interface, and what fixtureReads reads.
func backupReads(t *testing.T, s *Server, key string) []string {
	t.Helper()
	const org = "/api/v1/orgs/main/"
	return append(fixtureReads(t, s, key), org+"invitations", org+"audit", org+"events?limit=100", org+"webhooks",
		"/api/v1/me")
}

// checkFound: a search finds what was submitted before and after the move.
func checkFound(t *testing.T, s *Server, key string) {
	t.Helper()
	const path = "/api/v1/orgs/main/proposals"
	if code, body := post(t, s.URL()+path, key, `{"title":"After the move","category":"process","problem":"It fails again.",
		"suggested_fix":"Repair it."}`); code != 201 {
		t.Fatal(code, body)
	}
	var page struct{ Total int }
	_, body := get(t, s.URL()+path+"?status=all&q=fails", key)
	if err := json.Unmarshal([]byte(body), &page); err != nil || page.Total != 5 {
		t.Errorf("found %d, %v; want the 4 of before and the new one: %s", page.Total, err, body)
	}
}

// missing returns the strings of want that got lacks.
func missing(want, got []string) (out []string) {
	for _, w := range want {
		if _, ok := slices.BinarySearch(got, w); !ok {
			out = append(out, w)
		}
	}
	return out
}

// TestBackupOfAnOlderStore: a store that was not migrated is backed up as it is, and migrated when it
// is restored, on either engine.
func TestBackupOfAnOlderStore(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(storesFolder, "0011")
	for _, engine := range []string{"sqlite", "postgres"} {
		for _, to := range []string{"sqlite", "postgres"} {
			t.Run(engine+" to "+to, func(t *testing.T) {
				t.Parallel()
				var want kept
				data, err := os.ReadFile(filepath.Join(folder, engine+".json"))
				if err == nil {
					err = json.Unmarshal(renamed(data), &want)
				}
				if err != nil {
					t.Fatal(err)
				}
				old, cfg := fixtureConfig(t, engine), fixtureConfig(t, to)
				restoreStore(t, filepath.Join(folder, engine+".sql.gz"), filepath.Join(folder, engine+".db.gz"), old)
				saved, made := backedUp(t, old)
				if made.Schema != 11 {
					t.Errorf("schema = %d, want 11", made.Schema)
				}
				mustRestore(t, cfg, saved)
				s := startServer(t, cfg)
				want.check(t, s)
				if err := s.Shutdown(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestRestoreAllOrNothing: what is refused leaves an empty store, in which a good back-up still fits.
func TestRestoreAllOrNothing(t *testing.T) {
	t.Parallel()
	source := testConfig(t)
	s := startServer(t, source)
	if err := s.Shutdown(); err != nil {
		t.Fatal(err)
	}
	good, _ := backedUp(t, source)
	r, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := r.DecodeAll(good, nil)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(old, replacement string) []byte {
		t.Helper()
		if !bytes.Contains(plain, []byte(old)) {
			t.Fatalf("the back-up has no %s", old)
		}
		return w.EncodeAll(bytes.Replace(plain, []byte(old), []byte(replacement), 1), nil)
	}
	bad := map[string][]byte{
		"cut short":             good[:len(good)-20],
		"checksum":              changed(`"Main"`, `"Maim"`),
		"newer parley":          changed(`"schema":`, `"schema":9`),
		"unknown schema 0":      changed(`"schema":`, `"schema":0,"x":`),
		"does not have":         changed(`{"table":"orgs"`, `{"table":"orgs; DROP TABLE keys"`),
		"does not fit":          changed(`{"table":"orgs","columns":["created_at"`, `{"table":"orgs","columns":["id"`),
		"lacks columns":         changed(`{"table":"orgs","columns":["created_at",`, `{"table":"orgs","columns":[`),
		"is not a back-up":      []byte("hello"),
		"in the column":         changed(`"main","Main"]`, `7,"Main"]`),
		"empty or was cut shor": nil,
	}
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			cfg := fixtureConfig(t, engine)
			for want, data := range bad {
				_, err := Restore(t.Context(), cfg.Store, bytes.NewReader(data), false, still)
				if err == nil || want != "lacks columns" && !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want an error with %q", err, want)
				}
				if left, _ := filepath.Glob(filepath.Join(cfg.Data, "parley.db.*")); len(left) > 0 {
					t.Errorf("%s left %v", want, left)
				}
			}
			mustRestore(t, cfg, good)
			if _, err := Restore(t.Context(), cfg.Store, bytes.NewReader(good), false, still); err == nil ||
				!strings.Contains(err.Error(), "has an org already") {
				t.Errorf("a second restore: %v, want that the store is not empty", err)
			}
			s := startServer(t, cfg)
			if _, err := Restore(t.Context(), cfg.Store, bytes.NewReader(good), false, still); err == nil {
				t.Error("a restore beside a server: no error")
			}
			if err := s.Shutdown(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBackupFiles: names, modes and rotation.
func TestBackupFiles(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	if err := startServer(t, cfg).Shutdown(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	to := func(dest string, keep int) (BackedUp, error) {
		return Backup(t.Context(), cfg.Store, BackupTo{Dest: dest, Keep: keep}, still)
	}
	one := filepath.Join(dir, "one")
	b, err := to(one, 0)
	st, statErr := os.Stat(one)
	if err != nil || statErr != nil || b.Path != one || st.Size() != b.Size || st.Mode().Perm() != 0o600 {
		t.Errorf("backed up %+v, %v; file %v, %v", b, err, st, statErr)
	}
	if _, err := to(one, 0); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("a second back-up to the same file: %v", err)
	}
	if _, err := to(filepath.Join(dir, "two"), 3); err == nil || !strings.Contains(err.Error(), "needs a folder") {
		t.Errorf("--keep with a file: %v", err)
	}
	folder := filepath.Join(dir, "folder") + string(filepath.Separator)
	strange := []string{"parley-20200101T000000Z.backup.bak", "notes", "parley-2020.backup"}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(strange, "parley-20200101T000000Z.backup", "parley-20210101T000000Z.backup") {
		if err := os.WriteFile(folder+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err = to(folder, 2)
	if err != nil || len(b.Removed) != 1 || filepath.Base(b.Removed[0]) != "parley-20200101T000000Z.backup" {
		t.Errorf("removed %v, %v; want the oldest", b.Removed, err)
	}
	want := append(strange, "parley-20210101T000000Z.backup", filepath.Base(b.Path))
	slices.Sort(want)
	var got []string
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the folder has %v, %v; want %v", got, err, want)
	}
	none := testConfig(t)
	none.Data = filepath.Join(dir, "none")
	if _, err := Backup(t.Context(), none.Store, BackupTo{Dest: filepath.Join(dir, "x")}, still); err == nil {
		t.Error("a back-up of no store: no error")
	}
	if _, err := os.Stat(none.Data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of no store: %v, want that it does not exist", err)
	}
}
