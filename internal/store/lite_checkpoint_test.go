package store

import (
	"strings"
	"testing"
	"time"
)

// TestTheCheckpointerCopiesWhatTheWriterLeaves writes fewer pages than the writer copies itself,
// and more than the checkpointer leaves.
func TestTheCheckpointerCopiesWhatTheWriterLeaves(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	row := strings.Repeat("x", 1<<20)
	for i := range checkpointFrames * 3 / 2 / 256 { // 256 pages each
		if err := s.eng.write(t.Context(), func(x *tx) error {
			x.exec(`INSERT INTO task_events (org_id, uid, seq, at, data) VALUES ('main', 't', $1, 0, $2)`, int64(i), row)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	look, err := openLite(s.eng.(*lite).path, "query_only=1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = look.close() }()
	c := &checkpointer{conn: look}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		waiting, err := c.frames("NOOP")
		if err != nil {
			t.Fatal(err)
		}
		if waiting < checkpointFrames {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d pages wait in the WAL, want fewer than %d", waiting, checkpointFrames)
		}
	}
}

// TestLargeRowsHaveARowid guards against tables whose rows SQLite reads whole to compare their
// keys: look-ups would read the long texts of other callers.
func TestLargeRowsHaveARowid(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for _, table := range []string{"tasks", "task_events", "messages", "proposals", "followups"} {
		sql := ""
		found, err := one(t.Context(), s.eng, []any{&sql},
			`SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = $1`, table)
		if err != nil || !found {
			t.Fatalf("table %s: found = %t, %v, want true", table, found, err)
		}
		if strings.Contains(sql, "WITHOUT ROWID") {
			t.Errorf("%s has long texts and is WITHOUT ROWID, want a rowid", table)
		}
	}
}
