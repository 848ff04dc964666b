package store

import (
	"context"

	"github.com/parley-dev/parley/internal/identity"
)

// audit queues entries in the transaction of the change that they record.
func (t *tx) audit(entries ...identity.AuditEntry) {
	for _, e := range entries {
		t.exec(`INSERT INTO audit (org_id, at, id, actor, key_id, action, target, detail, outcome, code, request_id,
				address)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
			e.Org, micros(e.At), e.ID, e.Actor, e.KeyID, string(e.Action), e.Target, e.Detail, string(e.Outcome), e.Code,
			e.RequestID, e.Address)
	}
}

// Audit stores the audit log.
type Audit struct{ *db }

// Audit returns the implementation of identity.AuditStore and account.Audit.
func (s *Store) Audit() Audit { return Audit{s.db} }

// Append implements identity.AuditStore.
func (s Audit) Append(ctx context.Context, e identity.AuditEntry) error {
	return s.eng.write(ctx, func(t *tx) error {
		t.audit(e)
		return nil
	})
}

// List implements identity.AuditStore.
func (s Audit) List(ctx context.Context, org string, f identity.AuditFilter) ([]identity.AuditEntry, error) {
	w, by := where{sql: `org_id = $1`, args: []any{org}}, ""
	if f.Actor != "" {
		w.and(`actor = ?`, f.Actor)
	}
	if f.Action != "" {
		w.and(`action = ?`, string(f.Action))
	}
	if f.Target != "" {
		w.and(`target = ? AND length(target) <= 500`, f.Target) // the index omits longer targets
		by = s.d.by("audit_target")                             // else SQLite scans the log from the cursor on
	}
	if !f.From.IsZero() {
		w.and(`at >= ?`, micros(f.From))
	}
	if !f.To.IsZero() {
		w.and(`at < ?`, micros(f.To))
	}
	if f.BeforeID != "" {
		w.and(`(at, id) < (?, ?)`, micros(f.Before), f.BeforeID)
	}
	list := []identity.AuditEntry{}
	err := each(ctx, s.eng, func(r rows) error {
		var e identity.AuditEntry
		var at int64
		var action, outcome string
		err := r.Scan(&e.Org, &at, &e.ID, &e.Actor, &e.KeyID, &action, &e.Target, &e.Detail, &outcome, &e.Code,
			&e.RequestID, &e.Address)
		e.At, e.Action, e.Outcome = fromMicros(at), identity.AuditAction(action), identity.AuditOutcome(outcome)
		list = append(list, e)
		return err
	}, `SELECT org_id, at, id, actor, key_id, action, target, detail, outcome, code, request_id, address
		FROM audit`+by+` WHERE `+w.sql+` ORDER BY at DESC, id DESC`+limit(f.Limit), w.args...)
	return list, err
}
