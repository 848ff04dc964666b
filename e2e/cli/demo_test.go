package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/servertest"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// demoGreeting is what serve --demo --json prints.
type demoGreeting struct {
	Store, Org, User, Key, Curl, Link string
	Demo, Temporary                   bool
}

func startDemo(t *testing.T, args ...string) (*servertest.Process, demoGreeting) {
	t.Helper()
	dir := t.TempDir() // also for the store: a server that is killed does not remove it
	began := time.Now()
	s, err := startServer(dir, cleanEnv(dir, "TMPDIR="+dir), append([]string{"--demo", "--json"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the demo was ready after %s", time.Since(began).Round(time.Millisecond))
	t.Cleanup(s.Kill)
	var g demoGreeting
	if err := json.Unmarshal([]byte(s.Stdout.String()), &g); err != nil {
		t.Fatalf("%v: %s", err, &s.Stdout)
	}
	if g.Org != "main" || g.User == "" || g.Key == "" || g.Curl == "" || g.Link == "" || !g.Demo {
		t.Fatalf("greeting = %+v, want an org, a user, a key, a request and a link", g)
	}
	return s, g
}

// read gets a part of the org of a demo.
func (g *demoGreeting) read(s *servertest.Process, path string, out any) error {
	req, err := http.NewRequest(http.MethodGet, s.URL+"/api/v1/orgs/"+g.Org+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+g.Key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s, %w: %s", path, res.Status, err, body)
	}
	return json.Unmarshal(body, out)
}

// proposals returns how many proposals the org has.
func (g *demoGreeting) proposals(t *testing.T, s *servertest.Process) int {
	t.Helper()
	var page struct{ Total int }
	if err := g.read(s, "/proposals?status=all&limit=1", &page); err != nil {
		t.Fatal(err)
	}
	return page.Total
}

// awaitWork waits until an agent works on a task.
func (g *demoGreeting) awaitWork(t *testing.T, s *servertest.Process) {
	t.Helper()
	if err := eventually(func() error {
		var page struct{ Tasks []struct{ ID string } }
		err := g.read(s, "/a2a/tasks?state=working", &page)
		if err == nil && len(page.Tasks) == 0 {
			err = fmt.Errorf("no agent works on a task")
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

func TestDemoOnAStoreThatIsRemoved(t *testing.T) {
	t.Parallel()
	s, g := startDemo(t)
	if !g.Temporary || !strings.Contains(g.Store, "parley-demo-") {
		t.Errorf("greeting = %+v, want a temporary store", g)
	}
	if _, err := os.Stat(filepath.Join(g.Store, "parley.db")); err != nil {
		t.Error(err)
	}
	if n := g.proposals(t, s); n != 40 {
		t.Errorf("%d proposals, want 40", n)
	}
	res, err := http.Get(g.Link)
	if err != nil {
		t.Fatal(err)
	}
	page, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK || !bytes.Contains(page, []byte(g.User)) {
		t.Errorf("the link: %s %s, want the page to choose the password of %s", res.Status, page, g.User)
	}
	g.awaitWork(t, s)
	if err := s.Stop(syscall.SIGTERM); err != nil {
		t.Errorf("%v\n%s", err, &s.Stderr)
	}
	if _, err := os.Stat(g.Store); !os.IsNotExist(err) {
		t.Errorf("the folder %s: %v, want it removed", g.Store, err)
	}
	if said := s.Stderr.String(); strings.Contains(said, "WARN") || strings.Contains(said, "ERROR") {
		t.Errorf("the log has warnings:\n%s", said)
	}
}

// A terminal that is closed ends the server as Ctrl-C does.
func TestDemoInATerminalThatIsClosed(t *testing.T) {
	t.Parallel()
	// Under nohup this process ignores the signal, and so would the server, until there is a handler.
	handled := make(chan os.Signal, 1)
	signal.Notify(handled, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(handled) })
	s, g := startDemo(t)
	if err := s.Stop(syscall.SIGHUP); err != nil {
		t.Errorf("%v\n%s", err, &s.Stderr)
	}
	if _, err := os.Stat(g.Store); !os.IsNotExist(err) {
		t.Errorf("the folder %s: %v, want it removed", g.Store, err)
	}
}

func TestDemoRefusesAStoreWithAnOrg(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	s, g := startDemo(t, "--data", data)
	if g.Temporary || g.Store != data {
		t.Errorf("greeting = %+v, want the folder %s", g, data)
	}
	if err := s.Stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	before := contents(t, data)
	refuseDemo(t, "needs an empty store", "--data", data)
	if after := contents(t, data); after != before {
		t.Errorf("the store that was refused has changed, from\n%s\nto\n%s", before, after)
	}
	again := start(t, "--data", data)
	if n := g.proposals(t, again); n != 40 {
		t.Errorf("%d proposals without --demo, want 40", n)
	}
	if strings.Contains(again.Stdout.String(), "demo") {
		t.Errorf("a start without --demo says:\n%s", &again.Stdout)
	}
}

func TestDemoOnPostgres(t *testing.T) {
	t.Parallel()
	database := pgtest.URL(t)
	s, g := startDemo(t, "--database", database)
	if n := g.proposals(t, s); g.Temporary || n != 40 {
		t.Errorf("greeting = %+v and %d proposals, want 40 in the database", g, n)
	}
	g.awaitWork(t, s)
	refuseDemo(t, "needs an empty store", "--database", database)
	if n := g.proposals(t, s); n < 40 {
		t.Errorf("%d proposals after the refusal, want 40", n)
	}
}

func TestDemoRefusesFlagsThatDoNotFit(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"leave out one of them":         {"--issuers", "issuers.json"},
		"--task-retention 24h0m0s":      {"--task-retention", "24h"},
		"--event-retention 24h0m0s":     {"--event-retention", "24h"},
		"cannot read the configuration": {"--config", "no/such/file"},
	} {
		refuseDemo(t, want, args...)
	}
}

// refuseDemo checks that serve --demo fails, prints nothing but an error, and leaves no folder.
func refuseDemo(t *testing.T, want string, args ...string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(filepath.Join(binDir, "parley"),
		append([]string{"serve", "--demo", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Dir, cmd.Env = dir, cleanEnv(dir, "TMPDIR="+dir)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err == nil || stdout.Len() > 0 || !strings.Contains(stderr.String(), want) {
		t.Errorf("parley serve --demo %v: %v\nstdout: %s\nstderr: %s\nwant an error with %q", args, err, &stdout, &stderr,
			want)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "parley-d*")); err != nil || len(left) > 0 {
		t.Errorf("parley serve --demo %v left %v, %v", args, left, err)
	}
}

// contents returns all rows of the database of a folder. The files may differ between two stores with
// the same rows: a log that was left is moved into the database at the next start.
func contents(t *testing.T, dir string) string {
	t.Helper()
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	conn, err := sqlite.OpenConn(filepath.Join(copied, "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var out strings.Builder
	rows := func(sql string, row func(*sqlite.Stmt)) {
		t.Helper()
		if err := sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{
			ResultFunc: func(s *sqlite.Stmt) error { row(s); return nil },
		}); err != nil {
			t.Fatal(sql, err)
		}
	}
	var tables []string
	rows(`SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`, func(s *sqlite.Stmt) {
		tables = append(tables, s.ColumnText(0))
	})
	if len(tables) < 10 {
		t.Fatalf("the store has the tables %v, want more", tables)
	}
	for _, name := range tables {
		rows(`SELECT * FROM "`+name+`"`, func(s *sqlite.Stmt) {
			out.WriteString(name)
			for i := range s.ColumnCount() {
				fmt.Fprintf(&out, "\t%q", s.ColumnText(i))
			}
			out.WriteString("\n")
		})
	}
	return out.String()
}
