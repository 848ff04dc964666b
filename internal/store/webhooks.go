package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/secret"
	"github.com/parley-dev/parley/internal/webhook"
)

// Webhooks stores webhooks, the progress of their delivery (webhooks_due.go) and their last
// deliveries (webhooks_log.go).
type Webhooks struct{ *db }

// Webhooks returns the implementation of webhook.Store.
func (s *Store) Webhooks() Webhooks { return Webhooks{s.db} }

// headOf is the end of the log of the webhook w. As a subquery it locks no row of event_heads.
const headOf = `(SELECT h.seq FROM event_heads h WHERE h.org_id = w.org_id)`

const webhookColumns = `w.org_id, w.id, w.url, w.types, w.categories, w.priorities, w.description, w.state, w.format,
	w.public_key, w.old_secret_until, w.created_at, w.updated_at, w.created_by, w.version, w.cursor, w.due_at,
	w.claimed_until, w.attempts, w.last_error, w.last_attempt_at, w.failing_since, w.tried, ` + headOf

// webhookRow reads webhookColumns.
type webhookRow struct {
	webhook.Webhook
	types, categories, priorities, state, format string

	oldUntil, created, updated, due, claimed, last, failing, tried int64
}

func (r *webhookRow) dest() []any {
	w := &r.Webhook
	return []any{
		&w.Org, &w.ID, &w.URL, &r.types, &r.categories, &r.priorities, &w.Description, &r.state, &r.format,
		&w.PublicKey, &r.oldUntil, &r.created, &r.updated, &w.CreatedBy, &w.Version, &w.Cursor, &r.due,
		&r.claimed, &w.Attempts, &w.LastError, &r.last, &r.failing, &r.tried, &w.Head,
	}
}

// fill sets the fields that are stored in another form.
func (r *webhookRow) fill(now time.Time) {
	w := &r.Webhook
	for _, t := range strings.Fields(r.types) {
		w.Types = append(w.Types, event.Type(t))
	}
	if len(r.categories) > 0 {
		w.Categories = strings.Fields(r.categories)
	}
	if len(r.priorities) > 0 {
		w.Priorities = strings.Fields(r.priorities)
	}
	w.State, w.Format = webhook.State(r.state), webhook.Format(r.format)
	w.CreatedAt, w.UpdatedAt = fromMicros(r.created), fromMicros(r.updated)
	w.LastAttemptAt, w.FailingSince = fromMicros(r.last), fromMicros(r.failing)
	if w.Attempts > 0 && r.claimed == 0 {
		w.NextAttemptAt = fromMicros(r.due)
	}
	if r.oldUntil > micros(now) {
		w.OldSecretUntil = fromMicros(r.oldUntil)
	}
}

func oneWebhook(ctx context.Context, q reader, now time.Time, org, id, lock string) (*webhookRow, error) {
	var r webhookRow
	found, err := one(ctx, q, r.dest(), `SELECT `+webhookColumns+` FROM webhooks w WHERE w.org_id = $1 AND w.id = $2`+lock,
		org, id)
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	r.fill(now)
	return &r, err
}

func joined[T ~string](list []T) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return strings.Join(out, " ")
}

// emitWebhook adds an event about a webhook to the log.
func (t *tx) emitWebhook(typ event.Type, at time.Time, actor string, w *webhook.Webhook) {
	t.emit(event.New(w.Org, typ, at, w.Subject(), actor, event.Admins, t.hooks.records.Webhook(w)))
}

// Create implements webhook.Store. It locks the org's row, so that two concurrent calls do not both
// find room for the last webhook. It numbers the events before, so that the webhook gets none of
// them.
func (s Webhooks) Create(
	ctx context.Context, w webhook.Webhook, secrets webhook.Secrets, most int, e identity.AuditEntry,
) (webhook.Webhook, error) {
	current, private, err := s.seal(w.Org, w.ID, secrets)
	if err != nil {
		return w, err
	}
	if err := s.eng.number(ctx, w.Org); err != nil {
		return w, err
	}
	err = s.writeOnce(ctx, &w, func(t *tx) error {
		known, err := t.exists(ctx, `SELECT 1 FROM orgs WHERE id = $1`+t.d.forUpdate, w.Org)
		if err == nil && !known {
			err = errs.ErrNotFound
		}
		if err != nil {
			return err
		}
		if most > 0 {
			n, err := countUpTo(ctx, t, most, `webhooks WHERE org_id = $1`, w.Org)
			if err == nil && n >= most {
				err = webhook.ErrTooMany(n)
			}
			if err != nil {
				return err
			}
		}
		if _, err := one(ctx, t, []any{&w.Head}, `SELECT seq FROM event_heads WHERE org_id = $1`, w.Org); err != nil {
			return err
		}
		w.Cursor = w.Head
		t.exec(`INSERT INTO webhooks (org_id, id, url, receiver, types, categories, priorities, description, state, format,
				secret, private_key, public_key, created_at, updated_at, created_by, version, cursor)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`,
			w.Org, w.ID, w.URL, w.Receiver(), joined(w.Types), joined(w.Categories), joined(w.Priorities), w.Description,
			string(w.State), string(w.Format), current, private, w.PublicKey, micros(w.CreatedAt), micros(w.UpdatedAt), w.CreatedBy,
			w.Version, w.Cursor)
		t.emitWebhook(event.WebhookCreated, w.CreatedAt, e.Actor, &w)
		t.audit(e)
		return nil
	})
	return w, err
}

// seal returns what to store for the keys of a new webhook.
func (s Webhooks) seal(org, id string, secrets webhook.Secrets) (current, private string, err error) {
	purpose := secret.Purpose("webhooks", org, id)
	current, err = s.hooks.seal(purpose, webhook.FormatSecret(secrets.Current))
	if err == nil {
		private, err = s.hooks.seal(purpose, webhook.FormatPrivateKey(secrets.Private))
	}
	return current, private, err
}

// List implements webhook.Store.
func (s Webhooks) List(ctx context.Context, org string) ([]webhook.Webhook, error) {
	if _, err := Events(s).head(ctx, org); err != nil { // so that Head is up to date
		return nil, err
	}
	list := []webhook.Webhook{}
	now := s.now()
	err := each(ctx, s.eng, func(r rows) error {
		var row webhookRow
		err := r.Scan(row.dest()...)
		row.fill(now)
		list = append(list, row.Webhook)
		return err
	}, `SELECT `+webhookColumns+` FROM webhooks w WHERE w.org_id = $1 ORDER BY w.id DESC`, org)
	return list, err
}

// Get implements webhook.Store.
func (s Webhooks) Get(ctx context.Context, org, id string) (webhook.Webhook, error) {
	if _, err := Events(s).head(ctx, org); err != nil { // so that Head is up to date
		return webhook.Webhook{}, err
	}
	r, err := oneWebhook(ctx, s.eng, s.now(), org, id, "")
	return r.Webhook, err
}

// Secrets implements webhook.Store.
func (s Webhooks) Secrets(ctx context.Context, org, id string) (webhook.Webhook, webhook.Secrets, error) {
	var r webhookRow
	var current, old, private string
	found, err := one(ctx, s.eng, append(r.dest(), &current, &old, &private), `SELECT `+webhookColumns+
		`, w.secret, w.old_secret, w.private_key FROM webhooks w WHERE w.org_id = $1 AND w.id = $2`, org, id)
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	if err != nil {
		return webhook.Webhook{}, webhook.Secrets{}, err
	}
	r.fill(s.now())
	out := webhook.Secrets{OldUntil: r.OldSecretUntil}
	if err = s.hooks.unsealAll(secret.Purpose("webhooks", org, id), &current, &old, &private); err == nil {
		out.Current, err = webhook.ParseSecret(current)
	}
	if err == nil && !out.OldUntil.IsZero() {
		out.Old, err = webhook.ParseSecret(old)
	}
	if err == nil {
		out.Private, err = webhook.ParsePrivateKey(private)
	}
	if err != nil {
		return webhook.Webhook{}, webhook.Secrets{}, fmt.Errorf("webhook %s of org %s: %w", id, org, err)
	}
	return r.Webhook, out, nil
}

// Change implements webhook.Store.
func (s Webhooks) Change(
	ctx context.Context, org, id string, decide func(webhook.Webhook) (webhook.Change, error),
) (webhook.Webhook, error) {
	var out webhook.Webhook
	err := s.writeOnce(ctx, &out, func(t *tx) error {
		r, err := oneWebhook(ctx, t, s.now(), org, id, t.d.forUpdate)
		if err != nil {
			return err
		}
		c, err := decide(r.Webhook)
		if err != nil {
			return err
		}
		out = c.Webhook
		if c.Changed {
			out.Version = r.Version + 1
		}
		due, claimed := r.due, r.claimed
		if c.Restart {
			due, claimed, out.NextAttemptAt = 0, 0, time.Time{}
		}
		if c.Changed || c.Restart {
			t.exec(`UPDATE webhooks SET url = $3, receiver = $4, types = $5, categories = $6, priorities = $7,
					description = $8, state = $9, format = $10, updated_at = $11, version = $12, cursor = $13, attempts = $14,
					last_error = $15, failing_since = $16, due_at = $17, claimed_until = $18,
					claimed_by = `+keepClaimer("$18")+`
				WHERE org_id = $1 AND id = $2`,
				org, id, out.URL, out.Receiver(), joined(out.Types), joined(out.Categories), joined(out.Priorities),
				out.Description, string(out.State), string(out.Format), micros(out.UpdatedAt), out.Version, out.Cursor,
				out.Attempts, out.LastError, micros(out.FailingSince), due, claimed)
		}
		if c.Secret != nil {
			old := `''`
			if !out.OldSecretUntil.IsZero() {
				old = `secret`
			}
			fresh, err := s.hooks.seal(secret.Purpose("webhooks", org, id), webhook.FormatSecret(c.Secret))
			if err != nil {
				return err
			}
			t.exec(`UPDATE webhooks SET old_secret = `+old+`, old_secret_until = $3, secret = $4
				WHERE org_id = $1 AND id = $2`, org, id, micros(out.OldSecretUntil), fresh)
		}
		if c.Changed && len(c.Audit) > 0 {
			t.emitWebhook(event.WebhookChanged, out.UpdatedAt, c.Audit[0].Actor, &out)
		}
		t.audit(c.Audit...)
		return nil
	})
	return out, err
}

// Delete implements webhook.Store.
func (s Webhooks) Delete(
	ctx context.Context, org, id string, entry func(webhook.Webhook) identity.AuditEntry,
) error {
	return s.eng.write(ctx, func(t *tx) error {
		r, err := oneWebhook(ctx, t, s.now(), org, id, t.d.forUpdate)
		if err != nil {
			return err
		}
		t.exec(`DELETE FROM webhook_deliveries WHERE org_id = $1 AND webhook_id = $2`, org, id)
		t.exec(`DELETE FROM webhooks WHERE org_id = $1 AND id = $2`, org, id)
		e := entry(r.Webhook)
		t.emitWebhook(event.WebhookDeleted, e.At, e.Actor, &r.Webhook)
		t.audit(e)
		return nil
	})
}

// progress returns the progress of the delivery.
func (r *webhookRow) progress() delivery.Progress {
	p := delivery.Progress{
		State: delivery.Active, Cursor: r.Cursor, Head: r.Head, DueAt: fromMicros(r.due), ClaimedUntil: fromMicros(r.claimed),
		Attempts: r.Attempts, LastError: r.LastError, LastAttemptAt: r.LastAttemptAt, FailingSince: r.FailingSince,
	}
	if r.State != webhook.Active {
		p.State = delivery.Dead
	}
	return p
}

// set takes over the progress of the delivery.
func (r *webhookRow) set(p *delivery.Progress) {
	r.Cursor, r.Attempts, r.LastError = p.Cursor, p.Attempts, p.LastError
	r.LastAttemptAt, r.FailingSince, r.NextAttemptAt = p.LastAttemptAt, p.FailingSince, time.Time{}
	r.due, r.claimed = micros(p.DueAt), micros(p.ClaimedUntil)
	if r.Attempts > 0 && r.claimed == 0 {
		r.NextAttemptAt = p.DueAt
	}
	if p.State == delivery.Dead && r.State == webhook.Active {
		r.State = webhook.Failed
	}
}

func (t *tx) writeWebhookProgress(r *webhookRow) {
	t.exec(`UPDATE webhooks SET cursor = $3, state = $4, due_at = $5, claimed_until = $6, attempts = $7, last_error = $8,
			last_attempt_at = $9, failing_since = $10, tried = $11, claimed_by = `+keepClaimer("$6")+`
		WHERE org_id = $1 AND id = $2`,
		r.Org, r.ID, r.Cursor, string(r.State), r.due, r.claimed, r.Attempts, r.LastError,
		micros(r.LastAttemptAt), micros(r.FailingSince), r.tried)
}
