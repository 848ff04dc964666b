package webhook

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
)

// Store keeps webhooks. Each change writes its audit entries and its event in one transaction.
type Store interface {
	// Create adds a webhook whose cursor is the end of the log. most limits the webhooks of the
	// org; 0 means no limit.
	Create(ctx context.Context, w Webhook, s Secrets, most int, e identity.AuditEntry) (Webhook, error)
	// List returns the webhooks of an org, newest first.
	List(ctx context.Context, org string) ([]Webhook, error)
	Get(ctx context.Context, org, id string) (Webhook, error)
	// Secrets returns a webhook with its signing keys.
	Secrets(ctx context.Context, org, id string) (Webhook, Secrets, error)
	// Change locks a webhook, calls decide and writes what it returns.
	Change(ctx context.Context, org, id string, decide func(Webhook) (Change, error)) (Webhook, error)
	// Delete deletes a webhook and its deliveries.
	Delete(ctx context.Context, org, id string, entry func(Webhook) identity.AuditEntry) error

	// Record adds an attempt that an admin asked for to the deliveries, and returns it with its id.
	Record(ctx context.Context, org, id string, d Delivery, e identity.AuditEntry) (Delivery, error)
	// Deliveries returns the last attempts, newest first.
	Deliveries(ctx context.Context, org, id string, limit int) ([]Delivery, error)

	// Event finds an event of the log by its id. The deliveries of the webhook are searched first.
	Event(ctx context.Context, org, id, eventID string) (event.Event, error)
	// FirstSince returns the number of the first event at or after a time; 0 if there is none.
	FirstSince(ctx context.Context, org string, since time.Time) (int64, error)

	// Claim is that of delivery.Store. It also takes webhooks of the orgs in news that are behind
	// the end of the log. left are those of these orgs that have more such webhooks.
	Claim(ctx context.Context, r delivery.Room, news []string) (claimed []delivery.Subscription, left []string, err error)
	// Release is that of delivery.Store.
	Release(ctx context.Context) error
	// Progress is Update of delivery.Store. It adds p.Tried to the deliveries. A webhook that is
	// now Dead has failed, which is an event.
	Progress(ctx context.Context, org, id string,
		decide func(p delivery.Progress, clock time.Time) (delivery.Progress, error)) (delivery.Progress, error)
	// Behind returns what is to be delivered.
	Behind(ctx context.Context) (Behind, error)
}

// Change is a change of a webhook by an admin.
type Change struct {
	Webhook Webhook
	// Changed reports that Webhook is to be written, with a new version and an event.
	Changed bool
	// Restart ends the claim of a node and the wait for the next attempt.
	Restart bool
	Secret  []byte // the new secret, if the secret is rotated; the old one ends at OldSecretUntil
	Audit   []identity.AuditEntry
}

// Behind counts webhooks of all orgs.
type Behind struct {
	Orgs   []string // with webhooks that are behind the end of the log and not claimed
	Due    int64    // webhooks with something to deliver now
	Failed int64
}
