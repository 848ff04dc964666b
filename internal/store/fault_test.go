package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/pgtest"
)

// long limits a test that would never end; it measures nothing.
const long = 40 * time.Second

func openAt(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	return c
}

func mustExec(t *testing.T, c *pgx.Conn, sql string) {
	t.Helper()
	if _, err := c.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(long); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timeout after %v, want that %s", long, what)
		}
	}
}

// wantUnavailable fails the test unless err is a temporary fault with this message.
func wantUnavailable(t *testing.T, err error, fault string) {
	t.Helper()
	e := errs.As(err)
	if e.Kind != errs.Unavailable || e.Code != "store.unavailable" || e.RetryAfter <= 0 ||
		!strings.Contains(e.Message, fault) {
		t.Errorf("got %v %q %q (%v), want it unavailable because %s", e.Kind, e.Code, e.Message, err, fault)
	}
}

// readEpoch, writeEpoch and addEpoch use the store in the three possible ways.
func (s *Store) readEpoch(ctx context.Context) error {
	_, err := s.Identity().Epoch(ctx)
	return err
}

func (s *Store) writeEpoch(ctx context.Context) error {
	return s.eng.write(ctx, func(t *tx) error {
		t.newEpoch("acme")
		return nil
	})
}

func (s *Store) addEpoch(ctx context.Context) error {
	return s.eng.add(ctx, func(t *tx) error {
		t.newEpoch("acme")
		return nil
	})
}

func TestLostConnectionsAndServerFaultsAreUnavailable(t *testing.T) {
	t.Parallel()
	for code, fault := range map[string]string{
		"25006": faultReadOnly, "53100": faultFull, "53300": faultBusy, "55P03": faultLocked, "57014": faultSlow,
		"XX001": faultDamaged, "57P01": faultUnreachable, "57P03": faultUnreachable, "55000": faultUnreachable,
		"08006": faultUnreachable, "40P01": faultUnreachable,
	} {
		wantUnavailable(t, translate(fmt.Errorf("x: %w", &pgconn.PgError{Code: code})), fault)
	}
	for _, err := range []error{
		io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, &pgconn.ConnectError{},
	} {
		wantUnavailable(t, translate(fmt.Errorf("x: %w", err)), faultUnreachable)
	}
	wantUnavailable(t, translate(context.DeadlineExceeded), faultSlow)
	for _, err := range []error{context.Canceled, errors.New("a bug"), &pgconn.PgError{Code: "42601"}} {
		if got := translate(err); got != err {
			t.Errorf("translate(%v) = %v, want it unchanged", err, got)
		}
	}
}

// A connection that ends while rows are read is a fault of the database, not of the program.
func TestAReadThatLosesItsConnectionIsUnavailable(t *testing.T) {
	t.Parallel()
	db := pgtest.URL(t)
	proxy := pgtest.NewProxy(t, db)
	s := openAt(t, Options{URL: proxy.URL(t, db)})
	err := each(t.Context(), s.eng, func(rows) error {
		proxy.Cut()
		return nil
	}, `SELECT n FROM generate_series(1, 1000000) n`)
	wantUnavailable(t, err, faultUnreachable)
	until(t, "a read succeeds on a new connection", func() bool { return s.readEpoch(t.Context()) == nil })
}

// A database that does not respond must not block callers: neither those that wait for it when
// it stops, nor those that come later.
func TestADatabaseThatDoesNotRespondHoldsNobody(t *testing.T) {
	t.Parallel()
	db := pgtest.URL(t)
	proxy := pgtest.NewProxy(t, db)
	s := openAt(t, Options{URL: proxy.URL(t, db), StatementTimeout: time.Hour, AcquireTimeout: time.Hour})
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	proxy.Silence()
	start := time.Now()
	var wg sync.WaitGroup
	for range 30 { // more than there are connections
		for _, do := range []func(context.Context) error{s.readEpoch, s.writeEpoch, s.addEpoch} {
			wg.Go(func() { wantUnavailable(t, do(t.Context()), "") })
		}
	}
	wg.Go(func() {
		ctx, cancel := context.WithTimeout(t.Context(), long)
		defer cancel()
		wantUnavailable(t, s.Ping(ctx), "")
	})
	wg.Wait()
	t.Logf("all were refused within %v", time.Since(start).Round(time.Millisecond))
	if took := time.Since(start); took > long {
		t.Errorf("refusals took %v, want at most %v", took, long)
	}
	wantUnavailable(t, s.readEpoch(t.Context()), faultSilent)
	proxy.Resume()
	start = time.Now()
	until(t, "all work again", func() bool {
		return s.readEpoch(t.Context()) == nil && s.writeEpoch(t.Context()) == nil &&
			s.addEpoch(t.Context()) == nil && s.Ping(t.Context()) == nil
	})
	t.Logf("the database worked again after %v", time.Since(start).Round(time.Millisecond))
}

// Health checks and slow reads work with the smallest pool, even if all of it is in use.
func TestHealthChecksNeedNoConnectionOfThePool(t *testing.T) {
	t.Parallel()
	s := openAt(t, Options{URL: pgtest.URL(t), ReadConns: 2, AcquireTimeout: 2 * time.Second})
	release := make(chan struct{})
	var wg sync.WaitGroup
	defer func() { close(release); wg.Wait() }()
	held := make(chan struct{}, 2)
	for range 2 {
		wg.Go(func() {
			_ = each(t.Context(), s.eng, func(rows) error {
				held <- struct{}{}
				<-release
				return nil
			}, `SELECT 1`)
		})
	}
	<-held
	<-held
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping = %v, want no error", err)
	}
	if err := s.slow(t.Context(), "acme", func(ctx context.Context, r reader) error {
		var n int
		_, err := one(ctx, r, []any{&n}, `SELECT 1`)
		return err
	}); err != nil {
		t.Errorf("slow read = %v, want no error", err)
	}
	var refused sync.WaitGroup
	refused.Go(func() { wantUnavailable(t, s.readEpoch(t.Context()), faultBusy) })
	refused.Go(func() { wantUnavailable(t, s.writeEpoch(t.Context()), faultBusy) })
	refused.Wait()
}

// Writers that need a locked row must leave connections to other writers, and give up in the
// end.
func TestALockedRowHoldsNobodyElse(t *testing.T) {
	t.Parallel()
	db := pgtest.URL(t)
	s := openAt(t, Options{URL: db, ReadConns: 5, LockTimeout: 2 * time.Second, AcquireTimeout: long})
	other := connect(t, db)
	mustExec(t, other, `BEGIN`)
	mustExec(t, other, `UPDATE identity_epoch SET epoch = epoch`)
	var wg sync.WaitGroup
	var mu sync.Mutex
	waiting := 0
	for range 20 {
		for _, do := range []func(context.Context) error{s.writeEpoch, s.addEpoch} {
			mu.Lock()
			waiting++
			mu.Unlock()
			wg.Go(func() {
				wantUnavailable(t, do(t.Context()), faultLocked)
				mu.Lock()
				waiting--
				mu.Unlock()
			})
		}
	}
	until(t, "a write waits for the lock with patience", func() bool { return len(s.eng.(*pg).patience) > 0 })
	for i := range 20 {
		add := s.eng.write
		if i%2 == 0 {
			add = s.eng.add
		}
		if err := add(t.Context(), func(x *tx) error {
			x.exec(`INSERT INTO secrets (name, value, created_at) VALUES ($1, '', 0)`, fmt.Sprint("unrelated", i))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	t.Logf("20 other writes succeeded while %d waited", waiting)
	if waiting == 0 {
		t.Error("waiting writes = 0, want some, or nothing was tested")
	}
	mu.Unlock()
	wg.Wait()
	mustExec(t, other, `ROLLBACK`)
	if err := s.writeEpoch(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAStatementHasADeadline(t *testing.T) {
	t.Parallel()
	s := openAt(t, Options{URL: pgtest.URL(t), StatementTimeout: 200 * time.Millisecond})
	sleep := func(r reader) error {
		var done string
		_, err := one(t.Context(), r, []any{&done}, `SELECT pg_sleep(3600)::text`)
		return err
	}
	wantUnavailable(t, sleep(s.eng), faultSlow)
	wantUnavailable(t, s.eng.write(t.Context(), func(x *tx) error { return sleep(x) }), faultSlow)
}

// A read-only database is not ready and accepts no writes. It is found to be writable again
// without a restart.
func TestAReadOnlyDatabaseIsUnavailable(t *testing.T) {
	t.Parallel()
	db := pgtest.URL(t)
	s := openAt(t, Options{URL: db})
	admin := connect(t, db)
	u, _ := url.Parse(db)
	name := strings.TrimPrefix(u.Path, "/")
	mustExec(t, admin, `ALTER DATABASE `+name+` SET default_transaction_read_only = on`)
	// Sessions keep the setting that they started with.
	mustExec(t, admin, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	until(t, "the check fails", func() bool {
		err := s.Ping(t.Context())
		return err != nil && strings.Contains(errs.As(err).Message, faultReadOnly)
	})
	until(t, "a write is refused as read-only", func() bool {
		err := s.writeEpoch(t.Context())
		return err != nil && strings.Contains(errs.As(err).Message, faultReadOnly)
	})
	wantUnavailable(t, s.addEpoch(t.Context()), faultReadOnly)
	mustExec(t, admin, `SET default_transaction_read_only = off`)
	mustExec(t, admin, `ALTER DATABASE `+name+` SET default_transaction_read_only = off`)
	until(t, "writes work again", func() bool { return s.writeEpoch(t.Context()) == nil && s.Ping(t.Context()) == nil })
}

// The check of SQLite writes to the disk, so that it notices if that is impossible.
func TestTheCheckOfSQLiteWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openAt(t, Options{Dir: dir})
	log := func() string {
		b, err := os.ReadFile(filepath.Join(dir, fileName+"-wal"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	before := log()
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if log() == before {
		t.Errorf("WAL of %d bytes is unchanged after a check, want a write", len(before))
	}
	setWriter(t, s, "PRAGMA query_only = 1")
	wantUnavailable(t, s.Ping(t.Context()), faultReadOnly)
	wantUnavailable(t, s.writeEpoch(t.Context()), faultReadOnly)
}

// setWriter runs a statement on the writer's connection.
func setWriter(t *testing.T, s *Store, sql string) {
	t.Helper()
	if err := s.eng.write(t.Context(), func(*tx) error { return s.eng.(*lite).writer.conn.exec(sql) }); err != nil {
		t.Fatal(err)
	}
}

// A host that does not respond delays the first connection, but not all later ones.
func TestALostHostIsPassedOver(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	hosts := &pgHosts{}
	connect := func(slow, good string) (tried []string) {
		a := &attempt{hosts: hosts}
		for _, addr := range []string{slow, good} {
			if a.try(addr, now) != nil {
				continue
			}
			tried = append(tried, addr)
			if addr == slow {
				now = now.Add(connectTimeout)
			}
		}
		a.succeed(now)
		return tried
	}
	for i, want := range []int{2, 1, 1} {
		if got := connect("a", "b"); len(got) != want {
			t.Errorf("attempt %d tried %v, want %d hosts", i, got, want)
		}
	}
	now = now.Add(avoidFor)
	if got := connect("a", "b"); len(got) != 2 {
		t.Errorf("later attempt tried %v, want 2 hosts", got)
	}
}
