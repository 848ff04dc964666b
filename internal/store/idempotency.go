package store

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
)

// replay looks for the outcome of an earlier command with the same key. If there
// is one it is decoded into out.
func (t *tx) replay(ctx context.Context, once *idempotency.Key, by identity.Principal, now time.Time, out any) (bool, error) {
	if once == nil {
		return false, nil
	}
	var fingerprint, outcome string
	found, err := one(ctx, t, []any{&fingerprint, &outcome},
		`SELECT fingerprint, outcome FROM idempotency
		WHERE org_id = $1 AND principal = $2 AND operation = $3 AND key = $4 AND expires_at > $5`,
		by.Org, by.Ref(), once.Operation, once.Value, micros(now))
	switch {
	case err != nil || !found:
		return false, err
	case fingerprint != hex.EncodeToString(once.Fingerprint[:]):
		return false, idempotency.ErrReused
	}
	if err := json.Unmarshal([]byte(outcome), out); err != nil {
		return false, fmt.Errorf("decode a kept outcome: %w", err)
	}
	return true, nil
}

// remember queues the outcome of a command, to be found by replay.
func (t *tx) remember(once *idempotency.Key, by identity.Principal, now time.Time, outcome any) error {
	if once == nil {
		return nil
	}
	text, err := json.Marshal(outcome)
	if err != nil {
		return fmt.Errorf("encode an outcome: %w", err)
	}
	// An expired row that was not swept yet is in the way of nobody.
	t.exec(`DELETE FROM idempotency
		WHERE org_id = $1 AND principal = $2 AND operation = $3 AND key = $4 AND expires_at <= $5`,
		by.Org, by.Ref(), once.Operation, once.Value, micros(now))
	t.exec(`INSERT INTO idempotency (org_id, principal, operation, key, fingerprint, outcome, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		by.Org, by.Ref(), once.Operation, once.Value, hex.EncodeToString(once.Fingerprint[:]), string(text),
		micros(now.Add(idempotency.TTL)))
	return nil
}
