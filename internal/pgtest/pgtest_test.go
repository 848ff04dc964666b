package pgtest_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-dev/parley/internal/pgtest"
)

// childEnv turns the test program into the child of TestServerEndsWithAKilledProcess.
const childEnv = "PGTEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	s, err := pgtest.Start(context.Background())
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("serving in " + s.SocketDir())
	select {} // until killed
}

func TestURLGivesEachTestItsOwnEmptyDatabase(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	one, two := connect(t, pgtest.URL(t)), connect(t, pgtest.URL(t))
	if _, err := one.Exec(ctx, "CREATE TABLE x (n int)"); err != nil {
		t.Fatal(err)
	}
	var tables int
	err := two.QueryRow(ctx, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").Scan(&tables)
	if err != nil || tables != 0 {
		t.Errorf("the second database has %d tables, err %v; want an empty one", tables, err)
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// The test runs itself as a child that starts a server and waits, kills the
// child without mercy, and expects the server to be gone soon after.
func TestServerEndsWithAKilledProcess(t *testing.T) {
	t.Parallel()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"=1")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	dir := ""
	for lines := bufio.NewScanner(out); dir == "" && lines.Scan(); {
		_, dir, _ = strings.Cut(lines.Text(), "serving in ")
	}
	if dir == "" {
		t.Fatal("the child started no server")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	// The supervisor removes the folder last, after the server has ended.
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the server's folder is still there 30 s after its process was killed")
		}
	}
}

func TestCloseStopsTheServerAndRemovesItsFolder(t *testing.T) {
	t.Parallel()
	s, err := pgtest.Start(t.Context(), pgtest.Durable())
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.Close()
	if _, err := os.Stat(s.SocketDir()); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}
