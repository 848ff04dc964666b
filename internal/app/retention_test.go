package app

import (
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// TestRetentionSettings makes rows of different ages, and looks at which the server deletes.
func TestRetentionSettings(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	cfg := testConfig(t)
	cfg.AuditRetention, cfg.FrictionRetention = 10*day, 20*day
	cfg.SessionRetention, cfg.IdempotencyRetention = 5*day, 2*time.Hour
	s := startServer(t, cfg)
	t.Cleanup(func() { _ = s.Shutdown() })
	conn, err := sqlite.OpenConn(filepath.Join(cfg.Data, "parley.db"), sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	conn.SetBusyTimeout(10 * time.Second)
	run := func(sql string, args ...any) {
		t.Helper()
		if err := sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{Args: args}); err != nil {
			t.Fatal(sql, err)
		}
	}
	ago := func(d time.Duration) int64 { return Now().Add(-d).UnixMicro() }
	for name, age := range map[string]time.Duration{"3": 3 * day, "7": 7 * day, "15": 15 * day, "25": 25 * day} {
		run(`INSERT INTO audit (org_id, at, id, actor, key_id, action, target, detail, outcome, code, request_id, address)
			VALUES ('main', ?, 'audit-' || ?, 'user:x', '', 'x.y', '', '', 'done', '', '', '')`, ago(age), name)
		run(`INSERT INTO friction (org_id, fingerprint, title, category, problem, suggested_fix, priority, reports,
				proposal_id, first_at, last_at, last_by)
			VALUES ('main', ?, 't', 'process', 'p', '', 'low', 1, '', 0, ?, 'user:x')`, name, ago(age))
		run(`INSERT INTO sessions (hash, data, expires_at) VALUES (?, '', ?)`, name, ago(age))
	}
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL()+"/api/v1/orgs/main/proposals", strings.NewReader(
		`{"title":"Once","category":"process","problem":"It fails.","suggested_fix":"Repair it."}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.First().Secret)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", "one")
	res, err := http.DefaultClient.Do(r)
	if err != nil || res.StatusCode != http.StatusCreated {
		t.Fatal(res, err)
	}
	_ = res.Body.Close()
	s.sweepAll(t.Context())
	kept := func(sql string) string {
		t.Helper()
		var out []string
		if err := sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{ResultFunc: func(row *sqlite.Stmt) error {
			out = append(out, row.ColumnText(0))
			return nil
		}}); err != nil {
			t.Fatal(sql, err)
		}
		return strings.Join(out, " ")
	}
	for sql, want := range map[string]string{
		`SELECT substr(id, 7) FROM audit WHERE action = 'x.y' ORDER BY at`:      "7 3",
		`SELECT fingerprint FROM friction ORDER BY last_at`:                     "15 7 3",
		`SELECT hash FROM sessions WHERE expires_at < 1e15 * 10 ORDER BY 1`:     "3",
		`SELECT target FROM audit WHERE action = 'retention.delete' ORDER BY 1`: "audit entries friction",
	} {
		if got := kept(sql); got != want {
			t.Errorf("%s: kept %q, want %q", sql, got, want)
		}
	}
	left := kept(`SELECT expires_at FROM idempotency`)
	until, err := strconv.ParseInt(left, 10, 64)
	if d := time.UnixMicro(until).Sub(Now()); err != nil || d > 2*time.Hour || d < time.Hour {
		t.Errorf("the outcome is kept until %s, %v, want two hours", left, err)
	}
}
