package rest

import (
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/text"
	"github.com/parley-dev/parley/internal/webhook"
)

// Webhook is a webhook with its progress, without its secret.
type Webhook struct {
	ID          string   `json:"id" doc:"Assigned by the service." example:"hook-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	URL         string   `json:"url" doc:"Where events are sent." example:"https://crm.example/hooks/parley"`
	Types       []string `json:"types" nullable:"false" doc:"Types of events that are sent; empty: all." example:"[\"proposal.approved\"]"`
	Categories  []string `json:"categories" nullable:"false" example:"[\"security\"]"`
	Priorities  []string `json:"priorities" nullable:"false" example:"[\"high\"]"`
	Description string   `json:"description" doc:"Purpose of the webhook; may be empty." example:"Tickets in the CRM"`
	State       string   `json:"state" doc:"paused: by an admin; failed: given up, after three days of failures or a response 410." example:"active"`
	Format      string   `json:"format" doc:"Format of the request bodies." example:"standard"`
	PublicKey   string   `json:"public_key" doc:"Ed25519 key that verifies v1a signatures." example:"whpk_L1hIa2sHnO5Wf3Q5bN0cMvH0tXq9ZkJr8YpTgUe7dVw="`

	SecretOverlapUntil *string `json:"secret_overlap_until" format:"date-time" doc:"Until when the previous secret signs, too; null if it does not."`

	CreatedAt     string  `json:"created_at" format:"date-time" doc:"When it was created."`
	CreatedBy     string  `json:"created_by" doc:"Who created it." example:"user:ada"`
	UpdatedAt     string  `json:"updated_at" format:"date-time" doc:"When its settings were last changed."`
	LastSeq       int64   `json:"last_seq" doc:"Number of the last event that was sent or passed over." example:"4711"`
	Pending       int64   `json:"pending" doc:"Number of later events, of all types." example:"3"`
	Attempts      int     `json:"attempts" doc:"Failed attempts to send the next event." example:"2"`
	LastError     *string `json:"last_error" doc:"Why the last attempt failed; null if it succeeded." example:"the receiver responded with 500"`
	LastAttemptAt *string `json:"last_attempt_at" format:"date-time" doc:"When the last attempt was made; null before."`
	NextAttemptAt *string `json:"next_attempt_at" format:"date-time" doc:"When a failed attempt is repeated; null if none is."`
	FailingSince  *string `json:"failing_since" format:"date-time" doc:"Since when all attempts have failed; null if the last one succeeded."`
}

// TransformSchema adds the enumerations of the domain.
func (Webhook) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	webhookSchema(s)
	property(s, "state", oneOf(webhook.States))
	return s
}

// WebhookWithSecret is a webhook with its secret.
type WebhookWithSecret struct {
	Secret string `json:"secret" doc:"Secret that verifies v1 signatures, shown once." example:"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw8mZ4rVtE0aQ="`
	Webhook
}

// TransformSchema adds the enumerations of the domain.
func (WebhookWithSecret) TransformSchema(r huma.Registry, s *huma.Schema) *huma.Schema {
	return Webhook{}.TransformSchema(r, s)
}

// WebhookList lists the webhooks of an org.
type WebhookList struct {
	Webhooks []Webhook `json:"webhooks" nullable:"false" doc:"All webhooks, newest first."`
}

// WebhookCreation is the body that creates a webhook.
type WebhookCreation struct {
	URL         string   `json:"url" example:"https://crm.example/hooks/parley"`
	Types       []string `json:"types,omitempty" nullable:"false" example:"[\"proposal.approved\",\"proposal.rejected\"]"`
	Categories  []string `json:"categories,omitempty" nullable:"false" example:"[\"security\"]"`
	Priorities  []string `json:"priorities,omitempty" nullable:"false" example:"[\"high\"]"`
	Description *string  `json:"description,omitempty" doc:"Purpose of the webhook." example:"Tickets in the CRM"`
	State       *string  `json:"state,omitempty" doc:"Default active; paused: it sends nothing until it is active." example:"active"`
	Format      *string  `json:"format,omitempty" example:"standard"`
}

// TransformSchema adds the limits of the domain, and descriptions.
func (WebhookCreation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	webhookSchema(s)
	webhookInputs(s)
	return s
}

// WebhookPatch is the body of a change to a webhook.
type WebhookPatch struct {
	URL         *string   `json:"url,omitempty" example:"https://crm.example/hooks/parley"`
	Types       *[]string `json:"types,omitempty" nullable:"false" example:"[\"proposal.approved\"]"`
	Categories  *[]string `json:"categories,omitempty" nullable:"false" example:"[\"security\"]"`
	Priorities  *[]string `json:"priorities,omitempty" nullable:"false" example:"[\"high\"]"`
	Description *string   `json:"description,omitempty" doc:"Purpose of the webhook; may be empty." example:"Tickets in the CRM"`
	State       *string   `json:"state,omitempty" doc:"paused: it sends nothing; active: it continues where it stopped." example:"paused"`
	Format      *string   `json:"format,omitempty" example:"standard"`
}

// TransformSchema adds the limits of the domain, and descriptions.
func (WebhookPatch) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	webhookSchema(s)
	webhookInputs(s)
	one := 1
	s.MinProperties = &one
	return s
}

// edit converts the change.
func (b *WebhookPatch) edit() webhook.Edit {
	e := webhook.Edit{
		URL: b.URL, Categories: b.Categories, Priorities: b.Priorities, Description: b.Description,
		State: (*webhook.State)(b.State), Format: (*webhook.Format)(b.Format),
	}
	if b.Types != nil {
		types := typesOf(*b.Types)
		e.Types = &types
	}
	return e
}

// webhookSchema adds what all forms of a webhook have in common.
func webhookSchema(s *huma.Schema) {
	property(s, "types", items(0, len(event.Kinds)), eachItem(oneOf(allEventTypes())))
	property(s, "categories", items(0, len(proposal.Categories)), eachItem(oneOf(proposal.Categories)),
		describedAs("Send events about proposals only of these categories; empty: of all. Other events are sent anyway."))
	property(s, "priorities", items(0, len(proposal.Priorities)), eachItem(oneOf(proposal.Priorities)),
		describedAs("Send events about proposals only of these priorities; empty: of all. Other events are sent anyway."))
	property(s, "format", oneOf(webhook.Formats))
}

// webhookInputs adds what bodies of requests have in common.
func webhookInputs(s *huma.Schema) {
	property(s, "url", length(1, webhook.MaxURL), matching(webhookURLPattern),
		describedAs("Where to send events: an https URL. Private networks are refused unless the operator "+
			"allows them."))
	property(s, "description", length(0, webhook.MaxDescription), matching(formPattern(text.Line, false)))
	property(s, "types", describedAs("Types of events to send; empty: all."))
	property(s, "state", oneOf([]webhook.State{webhook.Active, webhook.Paused}))
	property(s, "format", describedAs("Format of the request bodies: standard (Standard Webhooks), cloudevents "+
		"(CloudEvents 1.0, structured JSON), or slack (a line of text for incoming webhooks of Slack, Mattermost and "+
		"Discord). Default: standard."))
}

// webhookURLPattern matches an absolute URL without a fragment.
const webhookURLPattern = `^https?://[!-"$-~]+$`

// allEventTypes lists all types of events.
func allEventTypes() []event.Type {
	out := make([]event.Type, len(event.Kinds))
	for i, k := range event.Kinds {
		out[i] = k.Type
	}
	return out
}

// WebhookRotation is the body that rotates the secret of a webhook.
type WebhookRotation struct {
	OverlapSeconds *int `json:"overlap_seconds,omitempty" doc:"How long the old secret signs, too; default 0." example:"3600"`
}

// TransformSchema adds the limits of the domain.
func (WebhookRotation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "overlap_seconds", between(0, int(identity.MaxOverlap/time.Second)))
	return s
}

// WebhookRedelivery is the body that sends events again: one event, or all since a time.
type WebhookRedelivery struct {
	EventID *string `json:"event_id,omitempty" doc:"Event to send now." example:"evt-4fgh2kq7ab3d5m2xwz7r6yslt4"`
	Since   *string `json:"since,omitempty" format:"date-time" doc:"Continue with the first event at this time or later." example:"2026-03-02T10:00:00Z"`
}

// TransformSchema says that exactly one field is given.
func (WebhookRedelivery) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "event_id", matching(eventIDPattern))
	ifThen(s, []string{"event_id"}, noneOf("since"), withFields("since"))
	return s
}

const eventIDPattern = "^evt-[0-9a-z]{1,60}$"

// read checks the fields and returns the time.
func (b *WebhookRedelivery) read() (since time.Time, wrong []errs.Field) {
	if b.EventID != nil && !validEventID(*b.EventID) {
		wrong = append(wrong, errs.NewField("event_id", "must be the id of an event, evt-…"))
	}
	if b.Since != nil {
		var ok bool
		if since, ok = parseTime(*b.Since); !ok {
			wrong = append(wrong, errs.NewField("since", timeRule))
		}
	}
	return since, wrong
}

func validEventID(s string) bool {
	rest, ok := strings.CutPrefix(s, "evt-")
	return ok && rest != "" && len(s) <= 64 &&
		!strings.ContainsFunc(rest, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// redelivered is the outcome of a redelivery: of one event the delivery, otherwise the webhook.
type redelivered struct {
	delivery *WebhookDelivery
	webhook  *Webhook
}

// Schema documents both outcomes.
func (redelivered) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: "With event_id the delivery, with since the webhook.",
		OneOf: []*huma.Schema{
			r.Schema(reflect.TypeFor[WebhookDelivery](), true, ""), r.Schema(reflect.TypeFor[Webhook](), true, ""),
		},
	}
}

// MarshalJSON encodes the outcome.
func (r redelivered) MarshalJSON() ([]byte, error) {
	if r.delivery != nil {
		return json.Marshal(r.delivery)
	}
	return json.Marshal(r.webhook)
}

// WebhookDelivery is one attempt to send an event.
type WebhookDelivery struct {
	ID         string  `json:"id" doc:"Assigned by the service."`
	EventID    string  `json:"event_id" doc:"Id of the event; the header webhook-id." example:"evt-4fgh2kq7ab3d5m2xwz7r6yslt4"`
	Type       string  `json:"type" doc:"Type of the event; webhook.ping for a ping." example:"proposal.approved"`
	Seq        *int64  `json:"seq" doc:"Number of the event; null for a ping." example:"4711"`
	At         string  `json:"at" format:"date-time" doc:"When the attempt began."`
	Attempt    int     `json:"attempt" doc:"Which attempt to send this event, from 1." example:"1"`
	Status     *int    `json:"status" doc:"HTTP status of the response; null without a response." example:"204"`
	LatencyMS  int64   `json:"latency_ms" doc:"How long the attempt took, in milliseconds." example:"87"`
	Response   string  `json:"response" doc:"First bytes of the response; empty without any." example:"ok"`
	Error      *string `json:"error" doc:"Why it failed; null if it was delivered." example:"the receiver responded with 500"`
	Outcome    string  `json:"outcome" doc:"dead: failed, and is not retried." example:"delivered"`
	Redelivery bool    `json:"redelivery" doc:"Whether an admin asked for it." example:"false"`
}

// TransformSchema adds the enumerations of the domain.
func (WebhookDelivery) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "type", oneOf(append(allEventTypes(), webhook.Ping)))
	property(s, "outcome", oneOf(delivery.Outcomes))
	return s
}

// WebhookDeliveryList lists the last deliveries of a webhook.
type WebhookDeliveryList struct {
	Deliveries []WebhookDelivery `json:"deliveries" nullable:"false" doc:"Deliveries, newest first."`
}

func webhookOf(h *webhook.Webhook) Webhook {
	return Webhook{
		ID: h.ID, URL: h.URL, Types: names(h.Types), Categories: names(h.Categories), Priorities: names(h.Priorities),
		Description: h.Description, State: string(h.State), Format: string(h.Format), PublicKey: h.PublicKey,
		SecretOverlapUntil: stampOrNull(h.OldSecretUntil),
		CreatedAt:          stamp(h.CreatedAt), CreatedBy: h.CreatedBy, UpdatedAt: stamp(h.UpdatedAt),
		LastSeq: h.Cursor, Pending: max(h.Head-h.Cursor, 0), Attempts: h.Attempts, LastError: orNull(h.LastError),
		LastAttemptAt: stampOrNull(h.LastAttemptAt), NextAttemptAt: stampOrNull(h.NextAttemptAt),
		FailingSince: stampOrNull(h.FailingSince),
	}
}

func deliveryOf(d *webhook.Delivery) WebhookDelivery {
	out := WebhookDelivery{
		ID: d.ID, EventID: d.EventID, Type: string(d.Type), At: stamp(d.At), Attempt: d.Attempt,
		LatencyMS: d.Latency.Milliseconds(), Response: d.Response, Error: orNull(d.Error), Outcome: string(d.Outcome),
		Redelivery: d.Redelivery,
	}
	if d.Seq > 0 {
		out.Seq = &d.Seq
	}
	if d.Status > 0 {
		out.Status = &d.Status
	}
	return out
}
