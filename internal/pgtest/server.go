package pgtest

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// supervise is the shell process that owns the server; it reads its standard
// input only to learn that we are gone.
//
//go:embed supervise.sh
var supervise string

// Server is one running PostgreSQL.
type Server struct {
	bin       string // directory of its binaries
	dir       string
	stdin     io.Closer
	down      chan struct{} // closed when postgres has ended and its directory is gone
	closeOnce sync.Once
	databases atomic.Int64
}

type options struct{ durable bool }

// Option changes how a server is started.
type Option func(*options)

// Durable keeps fsync on, as in production. Tests do without: only a power failure would lose
// data, not a killed Parley.
func Durable() Option { return func(o *options) { o.durable = true } }

// Start starts a server and waits until it accepts connections. Close, or the end of this process,
// stops it.
func Start(ctx context.Context, opts ...Option) (*Server, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	who, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := who.tempDir()
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	s := &Server{bin: bin, dir: dir, down: make(chan struct{})}
	if err := s.launch(who, o); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	if err := s.waitReady(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) launch(who *account, o options) error {
	args := []string{"-c", supervise, "pgtest", s.bin, s.dir}
	for _, set := range settings(s.dir, o) {
		args = append(args, "-c", set)
	}
	cmd := exec.Command("/bin/sh", args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = who.attributes()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.stdin = stdin
	go func() {
		defer close(s.down)
		_, _ = io.Copy(io.Discard, bufio.NewReader(stdout)) // ends when the supervisor does
		_ = cmd.Wait()
	}()
	return nil
}

func settings(dir string, o options) []string {
	out := []string{
		"listen_addresses=", "unix_socket_directories=" + dir,
		"max_connections=200", "shared_buffers=128MB", "max_wal_size=2GB",
		"logging_collector=off", "log_min_messages=warning",
	}
	if !o.durable {
		out = append(out, "fsync=off", "full_page_writes=off")
	}
	return out
}

func (s *Server) waitReady(ctx context.Context) error {
	for {
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.down:
			return errors.New("pgtest: PostgreSQL did not start; its supervisor ended")
		case <-ctx.Done():
			return fmt.Errorf("pgtest: PostgreSQL did not start in time: %w; its log ends: %s", err, s.logTail())
		case <-time.After(20 * time.Millisecond):
		}
		if _, err := os.Stat(filepath.Join(s.dir, "failed")); err == nil {
			return fmt.Errorf("pgtest: PostgreSQL did not start: %s", s.logTail())
		}
	}
}

func (s *Server) logTail() string {
	b, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	const most = 2000
	return string(b[max(0, len(b)-most):])
}

// URL returns the URL of one database of the server.
func (s *Server) URL(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User("postgres"), Path: "/" + database,
		RawQuery: url.Values{"host": {s.dir}, "sslmode": {"disable"}}.Encode(),
	}
	return u.String()
}

// SocketDir returns the directory of the server's socket, for tools with -h.
func (s *Server) SocketDir() string { return s.dir }

// Tool returns the path of a program that is installed beside the server, such as pgbench.
func (s *Server) Tool(name string) string { return filepath.Join(s.bin, name) }

// Dir returns the folder of the server's files.
func (s *Server) Dir() string { return s.dir }

// Close stops the server and waits until its directory is gone. It may be called more than once.
func (s *Server) Close() {
	s.closeOnce.Do(func() { _ = s.stdin.Close() })
	<-s.down
}

func (s *Server) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("pgtest: %s: %w", sql, err)
	}
	return nil
}
