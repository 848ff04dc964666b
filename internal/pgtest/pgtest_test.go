package pgtest_test

import (
	"bufio"
	"context"
	"errors"
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

func TestCopyPreparesOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	prepared := 0
	prepare := func(url string) error {
		prepared++
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "CREATE TABLE x (n int)")
		return errors.Join(err, conn.Close(ctx))
	}
	one, two := connect(t, pgtest.Copy(t, prepare)), connect(t, pgtest.Copy(t, prepare))
	if _, err := one.Exec(ctx, "INSERT INTO x VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	var rows int
	err := two.QueryRow(ctx, "SELECT count(*) FROM x").Scan(&rows)
	if err != nil || rows != 0 || prepared != 1 {
		t.Errorf("the second copy has %d rows, err %v, prepared %d times; want 0 rows, prepared once", rows, err, prepared)
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

// The test runs itself as a child that starts a server and waits, kills the child, and expects the
// server to be gone soon after.
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
		t.Fatal("the child started no server, want one")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	// The supervisor removes the directory last, after the server has ended.
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the server's directory is still there 30 s after its process was killed, want it gone")
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
		t.Errorf("stat of the server's directory: %v, want it gone", err)
	}
}
