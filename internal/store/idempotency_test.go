package store

import (
	"context"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
)

type onceRecord struct{ ID string }

func openOnce(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// begin puts an idempotency key into the context; secret is the secret of the outcome.
func begin(t *testing.T, secret string) (context.Context, *idempotency.Once) {
	t.Helper()
	k, err := idempotency.New("POST /records", "k", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, once, err := idempotency.Begin(t.Context(), k, "acme", "user:ann", "credential")
	if err == nil {
		err = once.Seal(secret)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ctx, once
}

// undoing runs every write twice. The first run sees the outcome of another write and is undone
// together with it, like a batch in which a statement fails.
type undoing struct {
	engine
	other, undo func(*tx) error
}

func (e *undoing) write(ctx context.Context, fn func(*tx) error) error {
	undone := errors.New("undone")
	for _, step := range []func(*tx) error{
		e.other,
		func(t *tx) error { return errors.Join(fn(t), undone) },
		e.undo,
	} {
		if err := e.engine.write(ctx, step); err != nil && !errors.Is(err, undone) {
			return err
		}
	}
	return e.engine.write(ctx, fn)
}

// A write that got the outcome of another one, which was undone then, is executed itself, with
// its own record and secret.
func TestAReplayThatIsUndoneLeavesNoTrace(t *testing.T) {
	t.Parallel()
	s := openOnce(t)
	_, other := begin(t, "secret of a")
	eng := s.eng
	s.eng = &undoing{
		eng,
		func(t *tx) error {
			kept := keptOutcome{Outcome: onceRecord{"a"}, Sealed: other.Kept()}
			return t.rememberOf(other.Key, other.Org, other.By, s.now(), kept)
		},
		func(t *tx) error { t.exec(`DELETE FROM idempotency`); return nil },
	}
	ctx, once := begin(t, "secret of b")
	record, stored := onceRecord{"b"}, ""
	if err := s.writeOnce(ctx, &record, func(*tx) error { stored = record.ID; return nil }); err != nil {
		t.Fatal(err)
	}
	s.eng = eng
	secret, err := once.Secret("secret of b")
	if stored != "b" || record.ID != "b" || once.Replayed() || secret != "secret of b" || err != nil {
		t.Errorf("stored %q, returned %q with %q, replayed %v, %v, want b with its secret",
			stored, record.ID, secret, once.Replayed(), err)
	}
	ctx, once = begin(t, "secret of c")
	record = onceRecord{"c"}
	err = s.writeOnce(ctx, &record, func(*tx) error { t.Error("fn ran twice, want once"); return nil })
	if secret, sealed := once.Secret(""); err != nil || sealed != nil || record.ID != "b" || secret != "secret of b" {
		t.Errorf("%v %v: the repeat got %q and %q, want those of b", err, sealed, record.ID, secret)
	}
}

// A write that is refused because the same command was executed meanwhile returns the outcome of
// that command. Its own queued statements are dropped.
func TestALostRaceWritesNothing(t *testing.T) {
	t.Parallel()
	s := openOnce(t)
	ctx, once := begin(t, "secret")
	record := onceRecord{"mine"}
	err := s.writeOnce(ctx, &record, func(x *tx) error {
		x.audit(identity.AuditEntry{ID: "entry", Org: "acme", At: s.now()})
		x.count(counter{org: "acme"}, 1)
		n := 0
		_, err := one(ctx, x, []any{&n}, `INSERT INTO idempotency
			(org_id, principal, operation, key, fingerprint, outcome, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING 1`, once.Org, once.By, once.Key.Operation, once.Key.Value,
			hex.EncodeToString(once.Key.Fingerprint[:]), `{"Outcome":{"ID":"first"}}`, micros(s.now().Add(idempotency.TTL)))
		return errors.Join(err, errors.New("taken"))
	})
	if err != nil || record.ID != "first" || !once.Replayed() {
		t.Errorf("record = %q, replayed = %v, %v, want first, true", record.ID, once.Replayed(), err)
	}
	entries, err := s.Audit().List(t.Context(), "acme", identity.AuditFilter{Limit: 10})
	if err != nil || len(entries) != 0 {
		t.Errorf("audit entries = %d, %v, want 0", len(entries), err)
	}
}

// One request is one command: a second write with its key would get the outcome of the first one,
// which has another type.
func TestAKeyIsForOneWrite(t *testing.T) {
	t.Parallel()
	s := openOnce(t)
	ctx, _ := begin(t, "secret")
	calls := 0
	write := func() error {
		return s.writeOnce(ctx, &onceRecord{}, func(*tx) error { calls++; return nil })
	}
	if err := write(); err != nil {
		t.Fatal(err)
	}
	if err := write(); err == nil || calls != 1 {
		t.Errorf("the second write returned %v after %d calls, want an error", err, calls)
	}
}
