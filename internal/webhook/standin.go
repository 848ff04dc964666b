// Package webhook is a stand-in, which keeps webhooks in memory and sends nothing. It exists only
// until the real package is merged.
package webhook

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
)

// State is the state of a webhook.
type State string

// The states.
const (
	Active State = "active"
	Paused State = "paused"
	Failed State = "failed"
)

// Format is the format of a request body.
type Format string

// The formats.
const (
	Standard    Format = "standard"
	CloudEvents Format = "cloudevents"
	Slack       Format = "slack"
)

// Lists of the above.
var (
	States  = []State{Active, Paused, Failed}
	Formats = []Format{Standard, CloudEvents, Slack}
)

// Ping is the type of a ping.
const Ping event.Type = "webhook.ping"

// The actions in the audit log.
const (
	AuditCreate    identity.AuditAction = "webhook.create"
	AuditUpdate    identity.AuditAction = "webhook.update"
	AuditDelete    identity.AuditAction = "webhook.delete"
	AuditRotate    identity.AuditAction = "webhook.rotate"
	AuditPing      identity.AuditAction = "webhook.ping"
	AuditRedeliver identity.AuditAction = "webhook.redeliver"
)

// Bounds of the fields.
const (
	MaxURL         = 2000
	MaxDescription = 500
	MaxDeliveries  = 100
)

// ValidID reports whether s can be the id of a webhook.
func ValidID(s string) bool {
	rest, ok := strings.CutPrefix(s, "hook-")
	return ok && rest != "" && len(s) <= 64 &&
		!strings.ContainsFunc(rest, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// Webhook is a webhook.
type Webhook struct {
	Org, ID                                    string
	URL                                        string
	Types                                      []event.Type
	Categories, Priorities                     []string
	Description                                string
	State                                      State
	Format                                     Format
	PublicKey                                  string
	OldSecretUntil                             time.Time
	CreatedAt, UpdatedAt                       time.Time
	CreatedBy                                  string
	Version                                    int64
	Cursor, Head                               int64
	Attempts                                   int
	LastError                                  string
	LastAttemptAt, NextAttemptAt, FailingSince time.Time
}

// Receiver returns the scheme and the host of the URL.
func (w *Webhook) Receiver() string {
	u, err := url.Parse(w.URL)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + strings.ToLower(u.Host)
}

// Creation is a new webhook.
type Creation struct {
	URL                    string
	Types                  []event.Type
	Categories, Priorities []string
	Description            string
	State                  State
	Format                 Format
	Once                   *idempotency.Key
}

// Edit changes a webhook.
type Edit struct {
	URL                    *string
	Types                  *[]event.Type
	Categories, Priorities *[]string
	Description            *string
	State                  *State
	Format                 *Format
	IfVersion              *int64
}

// Delivery is one attempt.
type Delivery struct {
	ID, EventID string
	Type        event.Type
	Seq         int64
	At          time.Time
	Attempt     int
	Status      int
	Latency     time.Duration
	Response    string
	Error       string
	Outcome     delivery.Outcome
	Redelivery  bool
}

// Service keeps webhooks in memory.
type Service struct {
	now   func() time.Time
	newID func(string) string

	mu    sync.Mutex
	hooks map[string]Webhook // by org and id
	made  map[string][2]string
	sent  map[string][]Delivery
}

// NewStandIn returns a stand-in.
func NewStandIn(now func() time.Time, newID func(string) string) *Service {
	return &Service{
		now: now, newID: newID, hooks: map[string]Webhook{}, made: map[string][2]string{}, sent: map[string][]Delivery{},
	}
}

func check(h *Webhook) error {
	var wrong []errs.Field
	if !strings.HasPrefix(h.URL, "https://") {
		wrong = append(wrong, errs.NewField("url", "must start with https:// and name a host"))
	}
	for i, t := range h.Types {
		if !t.Known() {
			wrong = append(wrong, errs.Field{Path: errs.At("types", i), Message: fmt.Sprintf("is %q, which is not a type", t)})
		}
	}
	if len(h.Description) > MaxDescription {
		wrong = append(wrong, errs.NewField("description", "is too long"))
	}
	if h.State != Active && h.State != Paused {
		wrong = append(wrong, errs.NewField("state", "must be active or paused"))
	}
	if !slices.Contains([]Format{Standard, CloudEvents, Slack}, h.Format) {
		wrong = append(wrong, errs.NewField("format", "must be standard, cloudevents or slack"))
	}
	if len(wrong) > 0 {
		return errs.InvalidFields(wrong...)
	}
	return nil
}

func (s *Service) find(a identity.Access, id string) (Webhook, error) {
	h, ok := s.hooks[a.Org()+"/"+id]
	if !ok {
		return h, errs.ErrNotFound
	}
	return h, nil
}

func (s *Service) put(h *Webhook) {
	h.UpdatedAt, h.Version = s.now(), h.Version+1
	s.hooks[h.Org+"/"+h.ID] = *h
}

// Create creates a webhook.
func (s *Service) Create(ctx context.Context, a identity.Access, c Creation) (Webhook, string, error) {
	if err := a.For(identity.ManageWebhooks); err != nil {
		return Webhook{}, "", err
	}
	h := Webhook{
		Org: a.Org(), ID: s.newID("hook-"), URL: c.URL, Types: c.Types, Categories: c.Categories, Priorities: c.Priorities,
		Description: c.Description, State: c.State, Format: c.Format, PublicKey: "whpk_AAAA", CreatedAt: s.now(),
		CreatedBy: a.Principal().Ref(), Cursor: 3, Head: 5,
	}
	if h.State == "" {
		h.State = Active
	}
	if h.Format == "" {
		h.Format = Standard
	}
	if err := check(&h); err != nil {
		return Webhook{}, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id, secret, err := s.once(ctx, h.ID)
	if err != nil || id != h.ID {
		return s.hooks[a.Org()+"/"+id], secret, err
	}
	s.put(&h)
	return h, secret, nil
}

// once returns the id and the secret of a new outcome, or of the first with the same key.
func (s *Service) once(ctx context.Context, id string) (string, string, error) {
	secret := "whsec_" + s.newID("secret")
	o := idempotency.From(ctx)
	if o == nil {
		return id, secret, nil
	}
	key := fmt.Sprint(o.Org, o.By, o.Key.Operation, o.Key.Value)
	print := fmt.Sprintf("%x", o.Key.Fingerprint)
	if first, ok := s.made[key+print]; ok {
		o.Replay([]byte(first[1]))
		secret, err := o.Secret(secret)
		return first[0], secret, err
	}
	if _, ok := s.made[key]; ok {
		return "", "", idempotency.ErrReused
	}
	if err := o.Seal(secret); err != nil {
		return "", "", err
	}
	s.made[key], s.made[key+print] = [2]string{}, [2]string{id, string(o.Kept())}
	return id, secret, nil
}

// List lists webhooks, newest first.
func (s *Service) List(_ context.Context, a identity.Access) ([]Webhook, error) {
	if err := a.For(identity.ManageWebhooks); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Webhook
	for _, h := range s.hooks {
		if h.Org == a.Org() {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(x, y Webhook) int { return strings.Compare(y.ID, x.ID) })
	return out, nil
}

// Get returns a webhook.
func (s *Service) Get(_ context.Context, a identity.Access, id string) (Webhook, error) {
	if err := a.For(identity.ManageWebhooks); err != nil {
		return Webhook{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(a, id)
}

// Update changes a webhook.
func (s *Service) Update(ctx context.Context, a identity.Access, id string, e Edit) (Webhook, error) {
	if err := a.For(identity.ManageWebhooks); err != nil {
		return Webhook{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.find(a, id)
	if err != nil {
		return h, err
	}
	if e.IfVersion != nil && *e.IfVersion != h.Version {
		return h, errs.New(errs.Stale, "request.stale", "the webhook has changed; read it again and retry")
	}
	set(&h.URL, e.URL)
	set(&h.Types, e.Types)
	set(&h.Categories, e.Categories)
	set(&h.Priorities, e.Priorities)
	set(&h.Description, e.Description)
	set(&h.State, e.State)
	set(&h.Format, e.Format)
	if err := check(&h); err != nil {
		return h, err
	}
	if first, _, err := s.once(ctx, id); err != nil || idempotency.From(ctx).Replayed() {
		return s.hooks[a.Org()+"/"+first], err
	}
	s.put(&h)
	return h, nil
}

func set[T any](to *T, v *T) {
	if v != nil {
		*to = *v
	}
}

// Delete deletes a webhook.
func (s *Service) Delete(_ context.Context, a identity.Access, id string) error {
	if err := a.For(identity.ManageWebhooks); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.find(a, id)
	delete(s.hooks, a.Org()+"/"+id)
	return err
}

// Rotate replaces the secret.
func (s *Service) Rotate(
	ctx context.Context, a identity.Access, id string, overlap time.Duration,
) (Webhook, string, error) {
	if err := a.For(identity.ManageWebhooks); err != nil {
		return Webhook{}, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.find(a, id)
	if err != nil {
		return h, "", err
	}
	_, secret, err := s.once(ctx, id)
	if err != nil || idempotency.From(ctx).Replayed() {
		return h, secret, err
	}
	if h.OldSecretUntil = (time.Time{}); overlap > 0 {
		h.OldSecretUntil = s.now().Add(overlap)
	}
	s.put(&h)
	return h, secret, nil
}

// Ping sends a ping.
func (s *Service) Ping(_ context.Context, a identity.Access, id string) (Delivery, error) {
	if err := a.For(identity.ManageWebhooks); err != nil {
		return Delivery{}, err
	}
	return s.send(a, id, Delivery{EventID: event.NewID(), Type: Ping})
}

func (s *Service) send(a identity.Access, id string, d Delivery) (Delivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.find(a, id)
	if err != nil {
		return Delivery{}, err
	}
	d.ID, d.At, d.Attempt, d.Status, d.Latency = s.newID("dlv-"), s.now(), 1, 204, 12*time.Millisecond
	d.Outcome = delivery.Delivered
	if strings.Contains(h.URL, "fails") {
		d.Status, d.Outcome, d.Error, d.Response = 500, delivery.Failed, "the receiver responded with 500", "oops"
	}
	s.sent[h.ID] = slices.Insert(s.sent[h.ID], 0, d)
	return d, nil
}

// Deliveries lists the last attempts.
func (s *Service) Deliveries(_ context.Context, a identity.Access, id string, limit int) ([]Delivery, error) {
	if err := a.For(identity.ManageWebhooks); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.find(a, id); err != nil {
		return nil, err
	}
	list := s.sent[id]
	return list[:min(limit, len(list))], nil
}

// Redeliver sends an event again.
func (s *Service) Redeliver(_ context.Context, a identity.Access, id, eventID string) (Delivery, error) {
	if err := a.For(identity.ManageWebhooks); err != nil {
		return Delivery{}, err
	}
	if eventID == "evt-gone" {
		return Delivery{}, errs.New(errs.NotFound, "webhook.no_event", "event %s is not in the log any more", eventID)
	}
	return s.send(a, id, Delivery{EventID: eventID, Type: event.ProposalOpened, Seq: 4, Redelivery: true})
}

// RedeliverSince moves the cursor back.
func (s *Service) RedeliverSince(_ context.Context, a identity.Access, id string, since time.Time) (Webhook, error) {
	if err := a.For(identity.ManageWebhooks); err != nil {
		return Webhook{}, err
	}
	if since.After(s.now()) {
		return Webhook{}, errs.InvalidFields(errs.NewField("since", "must not be in the future"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.find(a, id)
	if err != nil {
		return h, err
	}
	h.Cursor = 0
	s.put(&h)
	return h, nil
}
