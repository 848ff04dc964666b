package store

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/webhook"
)

// deliveryID returns the id of the n-th attempt of a webhook.
func deliveryID(id string, n int64) string { return fmt.Sprintf("%s-%d", id, n) }

// logDelivery queues an entry of the log, and deletes the one that is too old. The caller writes
// r.tried.
func (t *tx) logDelivery(r *webhookRow, d *webhook.Delivery) {
	r.tried++
	d.ID = deliveryID(r.ID, r.tried)
	t.exec(`INSERT INTO webhook_deliveries (org_id, webhook_id, n, event_id, type, seq, at, attempt, status, latency,
			response, error, outcome, redelivery)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		r.Org, r.ID, r.tried, d.EventID, string(d.Type), d.Seq, micros(d.At), d.Attempt, d.Status,
		d.Latency.Microseconds(), d.Response, d.Error, string(d.Outcome), flag(d.Redelivery))
	t.exec(`DELETE FROM webhook_deliveries WHERE org_id = $1 AND webhook_id = $2 AND n <= $3`,
		r.Org, r.ID, r.tried-webhook.MaxDeliveries)
}

// Record implements webhook.Store.
func (s Webhooks) Record(
	ctx context.Context, org, id string, d webhook.Delivery, e identity.AuditEntry,
) (webhook.Delivery, error) {
	err := s.eng.write(ctx, func(t *tx) error {
		r, err := oneWebhook(ctx, t, s.now(), org, id, t.d.forUpdate)
		if err != nil {
			return err
		}
		t.logDelivery(r, &d)
		t.exec(`UPDATE webhooks SET tried = $3 WHERE org_id = $1 AND id = $2`, org, id, r.tried)
		t.audit(e)
		return nil
	})
	return d, err
}

// Deliveries implements webhook.Store.
func (s Webhooks) Deliveries(ctx context.Context, org, id string, most int) ([]webhook.Delivery, error) {
	if _, err := s.Get(ctx, org, id); err != nil {
		return nil, err
	}
	list := []webhook.Delivery{}
	err := each(ctx, s.eng, func(r rows) error {
		var d webhook.Delivery
		var n, at, latency, redelivery int64
		var typ, outcome string
		err := r.Scan(&n, &d.EventID, &typ, &d.Seq, &at, &d.Attempt, &d.Status, &latency, &d.Response, &d.Error, &outcome,
			&redelivery)
		d.ID, d.Type, d.At, d.Outcome = deliveryID(id, n), event.Type(typ), fromMicros(at), delivery.Outcome(outcome)
		d.Latency, d.Redelivery = time.Duration(latency)*time.Microsecond, redelivery != 0
		list = append(list, d)
		return err
	}, `SELECT n, event_id, type, seq, at, attempt, status, latency, response, error, outcome, redelivery
		FROM webhook_deliveries WHERE org_id = $1 AND webhook_id = $2 ORDER BY n DESC`+limit(most), org, id)
	return list, err
}

// Event implements webhook.Store. The log has no index of ids, so the search for an event that is
// not among the deliveries is a slow read.
func (s Webhooks) Event(ctx context.Context, org, id, eventID string) (event.Event, error) {
	last, n := int64(0), int64(1)
	found, err := one(ctx, s.eng, []any{&last}, `SELECT seq FROM webhook_deliveries
		WHERE org_id = $1 AND webhook_id = $2 AND event_id = $3 AND seq > 0`, org, id, eventID)
	if err == nil && !found {
		if err = s.eng.number(ctx, org); err != nil {
			return event.Event{}, err
		}
		err = s.slow(ctx, org, func(ctx context.Context, r reader) (err error) {
			found, err = one(ctx, r, []any{&last, &n}, `SELECT last_seq, n FROM events WHERE org_id = $1 AND `+
				s.d.contains(s.d.packText, "\t"+eventID+"\t")+` ORDER BY last_seq DESC LIMIT 1`, org)
			return err
		})
	}
	if err != nil {
		return event.Event{}, err
	}
	if !found {
		return event.Event{}, errs.ErrNotFound
	}
	e, found, err := s.first(ctx, org, last, n, func(e *event.Event) bool { return e.ID == eventID })
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	return e, err
}

// first returns the first of the n events up to last that is wanted.
func (s Webhooks) first(
	ctx context.Context, org string, last, n int64, wanted func(*event.Event) bool,
) (event.Event, bool, error) {
	q := event.Query{Filter: event.Filter{Viewer: event.Viewer{Admin: true}}, After: last - n, Limit: int(n)}
	page, err := Events(s).Page(ctx, org, q)
	for i := range page.Events {
		if e := &page.Events[i]; e.Seq <= last && wanted(e) {
			return *e, true, err
		}
	}
	return event.Event{}, false, err
}

// maxSkew is how much later the clock of one node may be than that of another. The times of the
// packs of an org grow only up to it.
const maxSkew = time.Minute

// FirstSince implements webhook.Store.
func (s Webhooks) FirstSince(ctx context.Context, org string, since time.Time) (int64, error) {
	return Events(s).FirstSince(ctx, org, since)
}

// FirstSince implements event.Store. The log has no index of times, so it halves the log.
func (s Events) FirstSince(ctx context.Context, org string, since time.Time) (int64, error) {
	// Events have times in microseconds, so the next one is as good, and the same in SQL and in Go.
	since = since.Add(time.Microsecond - 1).Truncate(time.Microsecond)
	h, err := s.head(ctx, org)
	if err != nil {
		return 0, err
	}
	low, high := h.kept, h.seq+1
	for low < high {
		middle := low + (high-low)/2
		var last, n, at int64
		found, err := one(ctx, s.eng, []any{&last, &n, &at}, `SELECT last_seq, n, at FROM events
			WHERE org_id = $1 AND last_seq >= $2 ORDER BY last_seq LIMIT 1`, org, middle)
		switch {
		case err != nil:
			return 0, err
		case !found || at >= micros(since.Add(-maxSkew)):
			high = middle
			if found {
				high = min(middle, last-n+1)
			}
		default:
			low = last + 1
		}
	}
	for {
		var last, n int64
		found, err := one(ctx, s.eng, []any{&last, &n}, `SELECT last_seq, n FROM events
			WHERE org_id = $1 AND last_seq >= $2 AND at >= $3 ORDER BY last_seq LIMIT 1`, org, low, micros(since))
		if err != nil || !found {
			return 0, err
		}
		e, found, err := Webhooks(s).first(ctx, org, last, n, func(e *event.Event) bool { return !e.At.Before(since) })
		if err != nil || found {
			return e.Seq, err
		}
		low = last + 1 // the pack was deleted meanwhile
	}
}
