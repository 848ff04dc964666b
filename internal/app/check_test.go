package app

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/parley-dev/parley/internal/config"
)

// damage runs a statement on a store, which no program of ours would run.
func damage(t *testing.T, cfg config.Config, sql string) {
	t.Helper()
	if cfg.Database != "" {
		conn, err := pgx.Connect(t.Context(), cfg.Database)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		if tag, err := conn.Exec(t.Context(), sql); err != nil || !strings.HasPrefix(sql, "DROP") && tag.RowsAffected() == 0 {
			t.Fatal(sql, tag, err)
		}
		return
	}
	conn, err := sqlite.OpenConn(filepath.Join(cfg.Data, "parley.db"), sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := sqlitex.ExecuteTransient(conn, sql, nil); err != nil {
		t.Fatal(sql, err)
	}
}

// TestCheck damages a store in every way that is checked, and finds it.
func TestCheck(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			cfg := fixtureConfig(t, engine)
			s := startServer(t, cfg)
			const path = "/api/v1/orgs/main/"
			for i := range 4 {
				code, body := post(t, s.URL()+path+"proposals", s.First().Secret, fmt.Sprintf(
					`{"title":"Proposal %d","category":"process","problem":"It fails.","suggested_fix":"Repair it."}`, i))
				if code != 201 {
					t.Fatal(code, body)
				}
				post(t, s.URL()+path+"proposals/"+decoded(t, []byte(body)).(map[string]any)["id"].(string)+"/vote",
					s.First().Secret, `{"vote":"for"}`)
			}
			post(t, s.URL()+path+"followups", s.First().Secret, `{"title":"By hand"}`)
			checked(t, cfg, false) // while it serves
			for deadline := time.Now().Add(time.Minute); countRows(t, cfg)["search_waiting"] > 0; {
				if time.Now().After(deadline) {
					t.Fatal("the text index does not follow")
				}
				time.Sleep(20 * time.Millisecond)
			}
			if code, body := get(t, s.URL()+path+"events", s.First().Secret); code != 200 { // waits for the numbers
				t.Fatal(code, body)
			}
			if err := s.Shutdown(); err != nil {
				t.Fatal(err)
			}
			checked(t, cfg, false)

			damage(t, cfg, `UPDATE counters SET n = n + 1 WHERE kind = 'followup'`)
			damage(t, cfg, `UPDATE proposals SET votes_for = 7 WHERE title = 'Proposal 1'`)
			checked(t, cfg, false, "votes", "counters")
			if r := checked(t, cfg, true); r.Repaired != 3 {
				t.Errorf("%d numbers were repaired, want 2 totals and 1 proposal", r.Repaired)
			}

			damage(t, cfg, `UPDATE event_heads SET kept = kept - 3`) // as if the first events were lost
			checked(t, cfg, false, "events")
			damage(t, cfg, `UPDATE event_heads SET kept = kept + 3`)
			if engine == "sqlite" {
				checkDamagedPack(t, cfg)
			}

			damage(t, cfg, `DELETE FROM search_pages WHERE page = 1`)
			damage(t, cfg, `DROP INDEX proposals_votes`)
			damage(t, cfg, `DELETE FROM events WHERE last_seq = (SELECT min(last_seq) FROM events WHERE last_seq - n > 2)`)
			damage(t, cfg, `UPDATE event_heads SET seq = seq + 5`)
			damage(t, cfg, `DELETE FROM proposals WHERE title = 'Proposal 3'`)
			want := []string{"indexes", "references", "references", "counters", "events", "events", "text index"}
			checked(t, cfg, false, want...)
			checked(t, cfg, true, slices.DeleteFunc(want, func(c string) bool { return c == "counters" || c == "text index" })...)
		})
	}
}

// checkDamagedPack changes the bytes of a pack of events, and changes them back.
func checkDamagedPack(t *testing.T, cfg config.Config) {
	t.Helper()
	const first = ` WHERE last_seq = (SELECT min(last_seq) FROM events)`
	damage(t, cfg, `UPDATE events SET data = CAST(x'ff' || data AS BLOB)`+first)
	checked(t, cfg, false, "events")
	_, err := Backup(t.Context(), cfg.Store, BackupTo{Dest: filepath.Join(t.TempDir(), "damaged.backup")},
		func(string, int64) {})
	if err == nil || !strings.Contains(err.Error(), "a pack of events is damaged") {
		t.Errorf("a back-up of a damaged pack: %v, want a refusal", err)
	}
	damage(t, cfg, `UPDATE events SET data = substr(data, 2)`+first)
	checked(t, cfg, false)
}

// checked checks a store and compares the kinds of findings.
func checked(t *testing.T, cfg config.Config, repair bool, want ...string) Checked {
	t.Helper()
	r, err := Check(t.Context(), cfg.Store, repair, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.Check)
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %v, want %v: %+v", got, want, r.Findings)
	}
	return r
}

// TestCheckFindsADamagedFile: a page that was overwritten is found by the engine.
func TestCheckFindsADamagedFile(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	if err := startServer(t, cfg).Shutdown(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(cfg.Data, "parley.db")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	for name, from := range map[string]int{"a page of rows": len(data)/page - 3, "the first pages": 0} {
		damaged := bytes.Clone(data)
		copy(damaged[from*page+100:], bytes.Repeat([]byte{0xa5}, 2*page))
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Check(t.Context(), cfg.Store, false, func(string) {})
		found := len(r.Findings) > 0 && r.Findings[0].Check == "file"
		if !found && (err == nil || !strings.Contains(err.Error(), "restore a back-up")) {
			t.Errorf("%s: found %+v, %v; want that the file is damaged", name, r.Findings, err)
		}
	}
}
