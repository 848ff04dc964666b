//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pair is a primary and a synchronous replica, both on TCP ports: every commit on the primary is
// on the replica.
type Pair struct {
	Primary, Replica *Member
}

// Member is one server of a Pair.
type Member struct {
	bin, dir string
	who      *account
	port     int
	options  []string
	stdin    io.Closer
}

// StartPair starts both. They end with the test.
func StartPair(t testing.TB) *Pair {
	t.Helper()
	skipShort(t)
	bin, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	who, err := unprivileged()
	if err != nil {
		t.Fatal(err)
	}
	member := func(options ...string) *Member {
		dir, err := who.tempDir()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		m := &Member{bin: bin, dir: dir, who: who, port: freePort(t), options: options}
		t.Cleanup(m.end)
		return m
	}
	p := &Pair{Primary: member("synchronous_standby_names=*"), Replica: member()}
	p.Primary.run(t, "initdb", "--pgdata="+p.Primary.data(), "--username=postgres", "--auth=trust", "--encoding=UTF8",
		"--locale=C", "--no-sync")
	p.Primary.Start(t)
	p.Primary.wait(t)
	p.Primary.run(t, "pg_basebackup", "-h", p.Primary.dir, "-p", strconv.Itoa(p.Primary.port), "-U", "postgres",
		"-D", p.Replica.data(), "-R", "--checkpoint=fast", "--no-sync")
	p.Replica.Start(t)
	p.Primary.Exec(t, "CREATE DATABASE parley") // returns when the replica has it
	return p
}

// URL names both servers; clients use the one that accepts writes.
func (p *Pair) URL() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/parley?sslmode=disable&target_session_attrs=read-write",
		p.Primary.port, p.Replica.port)
}

// URL names this server only.
func (m *Member) URL() string { return m.url("parley") }

func (m *Member) data() string { return filepath.Join(m.dir, "data") }

func (m *Member) url(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", m.port, database)
}

// Exec runs a statement outside of the test's database.
func (m *Member) Exec(t testing.TB, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, m.url("postgres"))
	if err == nil {
		defer func() { _ = conn.Close(ctx) }()
		_, err = conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	}
	if err != nil {
		t.Fatalf("pgtest: %s: %v", sql, err)
	}
}

// run runs a program of PostgreSQL to its end.
func (m *Member) run(t testing.TB, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(m.bin, program), args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = m.dir, []string{"LC_ALL=C", "TZ=UTC"}, m.who.attributes()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("pgtest: %s: %v\n%s", program, err, out)
	}
}

// Start starts the server; it may take a moment to accept connections. Like supervise.sh, the
// shell around it stops it when this process is gone.
func (m *Member) Start(t testing.TB) {
	t.Helper()
	args := []string{
		"-c", `"$@" >>log 2>&1 </dev/null & cat >/dev/null; kill -CONT $!; kill -QUIT $!; wait`, "pgtest",
		filepath.Join(m.bin, "postgres"), "-D", m.data(), "-p", strconv.Itoa(m.port),
	}
	for _, set := range append([]string{
		"listen_addresses=127.0.0.1", "unix_socket_directories=" + m.dir, "max_connections=200", "shared_buffers=64MB",
		"fsync=off", "full_page_writes=off", "max_wal_senders=5", "wal_level=replica", "hot_standby=on",
		"wal_retrieve_retry_interval=200ms", // writes wait for the replica, which must reconnect soon
	}, m.options...) {
		args = append(args, "-c", set)
	}
	cmd := exec.Command("/bin/sh", args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = m.dir, []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"},
		m.who.attributes()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m.stdin = stdin
	go func() { _ = cmd.Wait() }()
}

// wait returns when the server accepts connections.
func (m *Member) wait(t testing.TB) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		conn, err := pgx.Connect(ctx, m.url("postgres"))
		if err == nil {
			_ = conn.Close(ctx)
		}
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			said, _ := os.ReadFile(filepath.Join(m.dir, "log"))
			t.Fatalf("pgtest: PostgreSQL did not start: %v\n%s", err, said)
		}
	}
}

// Stop ends all sessions and the server ("fast"), and waits until it has ended.
func (m *Member) Stop(t testing.TB) {
	t.Helper()
	_ = syscall.Kill(m.pid(t), syscall.SIGINT)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(m.data(), "postmaster.pid")); errors.Is(err, os.ErrNotExist) {
			_ = m.stdin.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("pgtest: PostgreSQL did not stop")
		}
	}
}

// Promote makes a replica a primary. It may take a moment.
func (m *Member) Promote(t testing.TB) {
	t.Helper()
	m.run(t, "pg_ctl", "promote", "-D", m.data(), "-W")
}

// Freeze suspends all processes of the server; Thaw resumes them.
func (m *Member) Freeze(t testing.TB) { m.signal(t, syscall.SIGSTOP) }

// Thaw undoes Freeze.
func (m *Member) Thaw(t testing.TB) { m.signal(t, syscall.SIGCONT) }

// signal signals the postmaster first, so that it starts no other process meanwhile.
func (m *Member) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	parent := m.pid(t)
	_ = syscall.Kill(parent, s)
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) == 2 && f[1] == strconv.Itoa(parent) {
			if pid, err := strconv.Atoi(f[0]); err == nil {
				_ = syscall.Kill(pid, s)
			}
		}
	}
}

func (m *Member) pid(t testing.TB) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(m.data(), "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func (m *Member) end() {
	if m.stdin != nil {
		_ = m.stdin.Close()
	}
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}
