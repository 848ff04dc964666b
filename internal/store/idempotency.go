package store

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
)

// keptOutcome is the stored outcome of a command; see writeOnce.
type keptOutcome struct {
	Outcome any
	Sealed  []byte `json:",omitempty"` // see idempotency.Once
}

// writeOnce runs a write whose outcome fn stores in out. If the context has an idempotency
// key, the outcome is kept and a second write with the same key gets it again.
//
// An engine may run the write several times and undo all runs but the last. So a run that
// finds a kept outcome changes neither out nor the command, because fn of a later run may
// need both. They are changed after the commit.
func (s *db) writeOnce(ctx context.Context, out any, fn func(*tx) error) error {
	once := idempotency.From(ctx)
	if once == nil {
		return s.eng.write(ctx, fn)
	}
	if err := once.Unused(); err != nil {
		return err
	}
	var earlier keptOutcome
	replays := false
	if err := s.eng.write(ctx, func(t *tx) error {
		replays = false
		now := s.now()
		replay := func() (bool, error) {
			earlier = keptOutcome{Outcome: reflect.New(reflect.TypeOf(out).Elem()).Interface()}
			done, err := t.replayOf(ctx, once.Key, once.Org, once.By, now, &earlier)
			replays = done
			return done, err
		}
		if done, err := replay(); done || err != nil {
			return err
		}
		if err := fn(t); err != nil {
			// A concurrent request with the same key may have committed while fn waited for a row.
			if done, again := replay(); done {
				*t = *newTx(t.reader, t.d, t.hooks) // drops what fn had queued
				return again
			}
			return err
		}
		return t.rememberOf(once.Key, once.Org, once.By, now, keptOutcome{Outcome: out, Sealed: once.Kept()})
	}); err != nil {
		return err
	}
	once.Done()
	if replays {
		reflect.ValueOf(out).Elem().Set(reflect.ValueOf(earlier.Outcome).Elem())
		once.Replay(earlier.Sealed)
	}
	return nil
}

// replay looks up the outcome of an earlier command with the same key and decodes it into
// out. It reports whether there is one.
func (t *tx) replay(
	ctx context.Context, once *idempotency.Key, by identity.Principal, now time.Time, out any,
) (bool, error) {
	return t.replayOf(ctx, once, by.Org, by.Ref(), now, out)
}

func (t *tx) replayOf(
	ctx context.Context, once *idempotency.Key, org, by string, now time.Time, out any,
) (bool, error) {
	return replayed(ctx, t, once, org, by, now, out)
}

// replayed is replayOf on any reader, inside or outside of a write.
func replayed(
	ctx context.Context, r reader, once *idempotency.Key, org, by string, now time.Time, out any,
) (bool, error) {
	if once == nil {
		return false, nil
	}
	var kept keptRow
	found, err := one(ctx, r, []any{&kept.fingerprint, &kept.outcome},
		`SELECT fingerprint, outcome FROM idempotency
		WHERE org_id = $1 AND principal = $2 AND operation = $3 AND key = $4 AND expires_at > $5`,
		org, by, once.Operation, once.Value, micros(now))
	if err != nil || !found {
		return false, err
	}
	return kept.decode(once, out)
}

// keptRow is a row of kept outcomes.
type keptRow struct{ fingerprint, outcome string }

// decode decodes the outcome for another command with the same key.
func (r *keptRow) decode(once *idempotency.Key, out any) (bool, error) {
	if r.fingerprint != hex.EncodeToString(once.Fingerprint[:]) {
		return false, idempotency.ErrReused
	}
	if err := json.Unmarshal([]byte(r.outcome), out); err != nil {
		return false, fmt.Errorf("decode a kept outcome: %w", err)
	}
	return true, nil
}

// remember queues the outcome of a command for replay.
func (t *tx) remember(once *idempotency.Key, by identity.Principal, now time.Time, outcome any) error {
	return t.rememberOf(once, by.Org, by.Ref(), now, outcome)
}

func (t *tx) rememberOf(once *idempotency.Key, org, by string, now time.Time, outcome any) error {
	if once == nil {
		return nil
	}
	text, err := json.Marshal(outcome)
	if err != nil {
		return fmt.Errorf("encode an outcome: %w", err)
	}
	// An expired row that was not swept yet would block the insert.
	t.exec(`DELETE FROM idempotency
		WHERE org_id = $1 AND principal = $2 AND operation = $3 AND key = $4 AND expires_at <= $5`,
		org, by, once.Operation, once.Value, micros(now))
	t.exec(`INSERT INTO idempotency (org_id, principal, operation, key, fingerprint, outcome, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		org, by, once.Operation, once.Value, hex.EncodeToString(once.Fingerprint[:]), string(text),
		micros(now.Add(cmp.Or(once.Keep, t.hooks.outcomes))))
	return nil
}
