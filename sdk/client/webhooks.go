package client

import (
	"context"
	"encoding/json"
	"time"
)

// WebhooksService manages the URLs to which the events of the org are sent, for admins.
type WebhooksService struct{ service }

// WebhookState says whether a webhook sends events.
type WebhookState string

// The states of a webhook.
const (
	WebhookActive WebhookState = "active"
	WebhookPaused WebhookState = "paused" // by an admin
	WebhookFailed WebhookState = "failed" // given up, after three days of failures or a response 410
)

// WebhookFormat is the format of the request bodies of a webhook.
type WebhookFormat string

// The formats of a webhook.
const (
	WebhookStandard    WebhookFormat = "standard"    // Standard Webhooks
	WebhookCloudEvents WebhookFormat = "cloudevents" // CloudEvents 1.0, structured JSON
	WebhookSlack       WebhookFormat = "slack"       // a line of text, for incoming webhooks of chat services
)

// Webhook is a URL to which events are sent, and the progress of that.
type Webhook struct {
	ID                 string        `json:"id"`
	URL                string        `json:"url"`
	Types              []string      `json:"types"`      // of events; empty: all
	Categories         []string      `json:"categories"` // of proposals; empty: all
	Priorities         []string      `json:"priorities"` // of proposals; empty: all
	Description        string        `json:"description"`
	State              WebhookState  `json:"state"`
	Format             WebhookFormat `json:"format"`
	PublicKey          string        `json:"public_key"`           // verifies Ed25519 signatures
	SecretOverlapUntil time.Time     `json:"secret_overlap_until"` // zero: there is no old secret
	CreatedAt          time.Time     `json:"created_at"`
	CreatedBy          string        `json:"created_by"`
	UpdatedAt          time.Time     `json:"updated_at"`
	LastSeq            int64         `json:"last_seq"`        // the last event that was sent or passed over
	Pending            int64         `json:"pending"`         // later events, of all types
	Attempts           int           `json:"attempts"`        // failed ones, to send the next event
	LastError          string        `json:"last_error"`      // empty: the last attempt succeeded
	LastAttemptAt      time.Time     `json:"last_attempt_at"` // zero: never
	NextAttemptAt      time.Time     `json:"next_attempt_at"` // zero: no failed attempt is repeated
	FailingSince       time.Time     `json:"failing_since"`   // zero: the last attempt succeeded
}

// WebhookWithSecret is a webhook with a new secret. The secret is not shown again.
type WebhookWithSecret struct {
	Webhook
	Secret string `json:"secret"`
}

// List returns all webhooks, newest first.
func (s *WebhooksService) List(ctx context.Context, opts ...Option) ([]Webhook, error) {
	return items(listing[Webhook]{c: s.c, call: read("webhooks"), member: "webhooks", paging: onePage}.page(ctx, opts))
}

// WebhookCreation is a new webhook. Empty lists select all events.
type WebhookCreation struct {
	URL         string        `json:"url"`
	Types       []string      `json:"types,omitempty"`
	Categories  []string      `json:"categories,omitempty"`
	Priorities  []string      `json:"priorities,omitempty"`
	Description string        `json:"description,omitempty"`
	State       WebhookState  `json:"state,omitempty"`  // WebhookActive if empty
	Format      WebhookFormat `json:"format,omitempty"` // WebhookStandard if empty
}

// Create creates a webhook. It gets the events that happen from now on.
func (s *WebhooksService) Create(ctx context.Context, w WebhookCreation, opts ...Option) (*WebhookWithSecret, error) {
	return fetch[WebhookWithSecret](ctx, s.c, post(w, "webhooks"), opts)
}

// Get returns one webhook.
func (s *WebhooksService) Get(ctx context.Context, id string, opts ...Option) (*Webhook, error) {
	return fetch[Webhook](ctx, s.c, read("webhooks", id), opts)
}

// WebhookPatch changes a webhook. Nil fields do not change; lists replace the old ones.
type WebhookPatch struct {
	URL         *string        `json:"url,omitempty"`
	Types       *[]string      `json:"types,omitempty"`
	Categories  *[]string      `json:"categories,omitempty"`
	Priorities  *[]string      `json:"priorities,omitempty"`
	Description *string        `json:"description,omitempty"`
	State       *WebhookState  `json:"state,omitempty"` // WebhookActive continues where it stopped
	Format      *WebhookFormat `json:"format,omitempty"`
}

// Update changes, pauses or resumes a webhook.
func (s *WebhooksService) Update(ctx context.Context, id string, p WebhookPatch, opts ...Option) (*Webhook, error) {
	return fetch[Webhook](ctx, s.c, patch(p, "webhooks", id), opts)
}

// Delete deletes a webhook.
func (s *WebhooksService) Delete(ctx context.Context, id string, opts ...Option) (*Webhook, error) {
	return fetch[Webhook](ctx, s.c, remove(false, "webhooks", id), opts)
}

// Rotate replaces the secret of a webhook. Until the overlap ends, both secrets sign.
func (s *WebhooksService) Rotate(
	ctx context.Context, id string, r KeyRotation, opts ...Option,
) (*WebhookWithSecret, error) {
	return fetch[WebhookWithSecret](ctx, s.c, post(r, "webhooks", id, "rotate"), opts)
}

// WebhookDelivery is one attempt to send an event.
type WebhookDelivery struct {
	ID         string    `json:"id"`
	EventID    string    `json:"event_id"`
	Type       string    `json:"type"` // webhook.ping for a ping
	Seq        int64     `json:"seq"`  // 0 for a ping
	At         time.Time `json:"at"`
	Attempt    int       `json:"attempt"`
	Status     int       `json:"status"` // of HTTP; 0: no response
	LatencyMS  int64     `json:"latency_ms"`
	Response   string    `json:"response"` // its first bytes
	Error      string    `json:"error"`    // empty: it was delivered
	Outcome    string    `json:"outcome"`  // delivered, failed or dead
	Redelivery bool      `json:"redelivery"`
}

// WebhookDeliveryParams bounds a list of deliveries.
type WebhookDeliveryParams struct {
	Limit int `url:"limit"` // 1 to 100; 20 if zero
}

// Deliveries returns the last deliveries of a webhook, newest first. The last 100 are kept.
func (s *WebhooksService) Deliveries(
	ctx context.Context, id string, p WebhookDeliveryParams, opts ...Option,
) ([]WebhookDelivery, error) {
	r := read("webhooks", id, "deliveries")
	r.query = values(p)
	return items(listing[WebhookDelivery]{c: s.c, call: r, member: "deliveries", paging: onePage}.page(ctx, opts))
}

// sends returns a call that sends something to the receiver each time, so it has no idempotency key.
func sends(in any, segments ...string) call {
	r := post(in, segments...)
	r.keyed = false
	return r
}

// Ping sends a test event to a webhook and returns the outcome. A failed delivery is no error.
func (s *WebhooksService) Ping(ctx context.Context, id string, opts ...Option) (*WebhookDelivery, error) {
	return fetch[WebhookDelivery](ctx, s.c, sends(nil, "webhooks", id, "ping"), opts)
}

// WebhookRedelivery says what to send again: set one field.
type WebhookRedelivery struct {
	EventID string     `json:"event_id,omitempty"` // this event, now
	Since   *time.Time `json:"since,omitempty"`    // all events since then
}

// WebhookRedelivered is the outcome of a redelivery: one field is set.
type WebhookRedelivered struct {
	Delivery *WebhookDelivery // of one event
	Webhook  *Webhook         // which continues at an earlier event
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *WebhookRedelivered) UnmarshalJSON(data []byte) error {
	var is struct {
		EventID string `json:"event_id"`
	}
	if err := json.Unmarshal(data, &is); err != nil {
		return err
	}
	*r = WebhookRedelivered{}
	if is.EventID != "" {
		r.Delivery = &WebhookDelivery{}
		return json.Unmarshal(data, r.Delivery)
	}
	r.Webhook = &Webhook{}
	return json.Unmarshal(data, r.Webhook)
}

// Redeliver sends events to a webhook again: one event, or all since a time.
func (s *WebhooksService) Redeliver(
	ctx context.Context, id string, r WebhookRedelivery, opts ...Option,
) (*WebhookRedelivered, error) {
	return fetch[WebhookRedelivered](ctx, s.c, sends(r, "webhooks", id, "redeliver"), opts)
}
