package webhook

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/trace"
)

// Options configure a Service.
type Options struct {
	Store    Store
	Log      event.Store
	Sender   delivery.Sender
	CheckURL func(string) error // refuses a URL that requests must not be sent to
	Retry    delivery.Retry     // For defaults to GiveUpAfter
	Tracer   *trace.Tracer      // nil: no spans

	Now   func() time.Time
	NewID func(prefix string) string
	Base  string // public URL of the server, for links
	Most  int    // webhooks of an org; 0: no limit

	OnAttempt func(delivery.Outcome) // may be nil
	OnError   func(error)            // of background work
}

// Service manages webhooks and delivers events to them.
type Service struct {
	store    Store
	log      event.Store
	sender   delivery.Sender
	checkURL func(string) error
	now      func() time.Time
	newID    func(prefix string) string
	base     string
	most     int

	onAttempt func(delivery.Outcome)
	onError   func(error)

	due    due
	engine *delivery.Service
	asked  asked
	counts counts

	stopped context.Context // canceled by Stop; not the context of a request
	stop    context.CancelFunc
}

// NewService returns the service. It delivers nothing until Run is called.
func NewService(o Options) *Service {
	if o.OnAttempt == nil {
		o.OnAttempt = func(delivery.Outcome) {}
	}
	if o.Retry.For == 0 {
		o.Retry.For = GiveUpAfter
	}
	s := &Service{
		store: o.Store, log: o.Log, sender: o.Sender, checkURL: o.CheckURL, now: o.Now, newID: o.NewID, base: o.Base,
		most: o.Most, onAttempt: o.OnAttempt, onError: o.OnError,
		due: due{store: o.Store, news: news{orgs: map[string]struct{}{}}}, asked: asked{orgs: map[string]int{}},
	}
	s.stopped, s.stop = context.WithCancel(context.Background())
	s.engine = delivery.New(delivery.Options{
		Store: &s.due, Sources: map[delivery.Kind]delivery.Source{Kind: source{s}}, Sender: o.Sender, Retry: o.Retry,
		Tracer: o.Tracer, OnAttempt: o.OnAttempt, OnError: o.OnError,
	})
	return s
}

// entry returns the audit entry of a command.
func (s *Service) entry(
	ctx context.Context, a identity.Access, action identity.AuditAction, id, detail string,
) identity.AuditEntry {
	e := identity.NewEntry(ctx, s.now(), a.Org(), action, id, detail)
	e.Actor, e.KeyID = a.Principal().Ref(), a.Caller().KeyID
	return e
}

// Create adds a webhook. It gets the events that happen after its creation. Create returns the
// secret, which cannot be read again.
func (s *Service) Create(ctx context.Context, a identity.Access, c Creation) (Webhook, string, error) {
	if err := a.For(identity.ManageWebhooks); err != nil {
		return Webhook{}, "", err
	}
	now := s.now()
	w := Webhook{
		Org: a.Org(), ID: s.newID(Prefix), URL: c.URL, Types: unique(c.Types), Categories: unique(c.Categories),
		Priorities: unique(c.Priorities), Description: strings.TrimSpace(c.Description), State: c.State, Format: c.Format,
		CreatedAt: now, UpdatedAt: now, CreatedBy: a.Principal().Ref(), Version: 1,
	}
	if w.State == "" {
		w.State = Active
	}
	if w.Format == "" {
		w.Format = Standard
	}
	if err := w.check(s.checkURL); err != nil {
		return Webhook{}, "", err
	}
	if w.State == Failed {
		return Webhook{}, "", errState()
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Webhook{}, "", fmt.Errorf("make a signing key: %w", err)
	}
	w.PublicKey = FormatPublicKey(public)
	secrets := Secrets{Current: NewSecret(), Private: private}
	secret := FormatSecret(secrets.Current)
	once := idempotency.From(ctx)
	if err := once.Seal(secret); err != nil {
		return Webhook{}, "", err
	}
	w, err = s.store.Create(ctx, w, secrets, s.most, s.entry(ctx, a, AuditCreate, w.ID, w.says()))
	if err == nil {
		secret, err = once.Secret(secret)
	}
	if err != nil {
		return Webhook{}, "", err
	}
	return w, secret, nil
}

// ErrTooMany is the error for one more webhook than an org may have.
func ErrTooMany(n int) error {
	return errs.New(errs.Conflict, "webhook.too_many",
		"the org has %d webhooks, which is the limit (--max-webhooks); delete some that are not used", n)
}

func errState() error {
	return errs.InvalidFields(errs.NewField("state", fmt.Sprintf("must be %s or %s", Active, Paused)))
}

// says describes the webhook in the audit log. The URL may contain a secret, so it is not said.
func (w *Webhook) says() string {
	types := make([]string, len(w.Types))
	for i, t := range w.Types {
		types[i] = string(t)
	}
	if len(types) == 0 {
		types = []string{"all types"}
	}
	return fmt.Sprintf("%s to %s: %s", w.Format, w.Receiver(), strings.Join(types, " "))
}

// List returns the webhooks of the org, newest first.
func (s *Service) List(ctx context.Context, a identity.Access) ([]Webhook, error) {
	if err := a.For(identity.ManageWebhooks); err != nil {
		return nil, err
	}
	return s.store.List(ctx, a.Org())
}

// Get returns a webhook.
func (s *Service) Get(ctx context.Context, a identity.Access, id string) (Webhook, error) {
	if err := a.For(identity.ManageWebhooks); err != nil {
		return Webhook{}, err
	}
	if !ValidID(id) {
		return Webhook{}, errs.ErrNotFound
	}
	return s.store.Get(ctx, a.Org(), id)
}

// Update changes a webhook. One that is set active again continues after its cursor.
func (s *Service) Update(ctx context.Context, a identity.Access, id string, e Edit) (Webhook, error) {
	if err := a.For(identity.ManageWebhooks); err != nil {
		return Webhook{}, err
	}
	if !ValidID(id) {
		return Webhook{}, errs.ErrNotFound
	}
	if e.State != nil && *e.State == Failed {
		return Webhook{}, errState()
	}
	now := s.now()
	w, err := s.store.Change(ctx, a.Org(), id, func(w Webhook) (Change, error) {
		c, changes, err := decide(w, e, s.checkURL)
		if c.Changed {
			c.Webhook.UpdatedAt = now
			c.Audit = []identity.AuditEntry{s.entry(ctx, a, AuditUpdate, id, strings.Join(changes, "; "))}
		}
		return c, err
	})
	if err == nil {
		s.Changed(a.Org())
	}
	return w, err
}

// decide applies an edit. It also returns a description of each change.
func decide(w Webhook, e Edit, checkURL func(string) error) (Change, []string, error) {
	if e.IfVersion != nil && *e.IfVersion != w.Version {
		return Change{}, nil, errs.New(errs.Stale, "request.stale",
			"the webhook has changed since you read it; fetch it again and repeat the request")
	}
	next := w
	set(&next.URL, e.URL)
	set(&next.State, e.State)
	set(&next.Format, e.Format)
	if e.Types != nil {
		next.Types = unique(*e.Types)
	}
	if e.Categories != nil {
		next.Categories = unique(*e.Categories)
	}
	if e.Priorities != nil {
		next.Priorities = unique(*e.Priorities)
	}
	if e.Description != nil {
		next.Description = strings.TrimSpace(*e.Description)
	}
	if err := next.check(checkURL); err != nil {
		return Change{}, nil, err
	}
	var changes []string
	note := func(changed bool, format string, args ...any) {
		if changed {
			changes = append(changes, fmt.Sprintf(format, args...))
		}
	}
	note(next.Description != w.Description, "description")
	described := len(changes)
	note(next.URL != w.URL, "URL, on %s", next.Receiver())
	note(next.State != w.State, "%s instead of %s", next.State, w.State)
	note(next.Format != w.Format, "format %s instead of %s", next.Format, w.Format)
	note(!slices.Equal(next.Types, w.Types), "types %q instead of %q", next.Types, w.Types)
	note(!slices.Equal(next.Categories, w.Categories), "categories %q instead of %q", next.Categories, w.Categories)
	note(!slices.Equal(next.Priorities, w.Priorities), "priorities %q instead of %q", next.Priorities, w.Priorities)
	c := Change{Webhook: next, Changed: len(changes) > 0, Restart: len(changes) > described}
	if next.URL != w.URL || next.State != w.State && next.State == Active {
		c.Webhook.Attempts, c.Webhook.LastError, c.Webhook.FailingSince = 0, "", time.Time{}
	}
	return c, changes, nil
}

// set sets a field that an edit names.
func set[T any](field, to *T) {
	if to != nil {
		*field = *to
	}
}

// Delete deletes a webhook and the log of its deliveries.
func (s *Service) Delete(ctx context.Context, a identity.Access, id string) error {
	if err := a.For(identity.ManageWebhooks); err != nil {
		return err
	}
	if !ValidID(id) {
		return errs.ErrNotFound
	}
	return s.store.Delete(ctx, a.Org(), id, func(w Webhook) identity.AuditEntry {
		return s.entry(ctx, a, AuditDelete, id, w.says())
	})
}

// Rotate gives a webhook a new secret and returns it; it cannot be read again. Requests are signed
// with the old secret, too, until the overlap ends. A webhook has two secrets at most: a second
// rotation ends the oldest at once. The Ed25519 key stays.
func (s *Service) Rotate(
	ctx context.Context, a identity.Access, id string, overlap time.Duration,
) (Webhook, string, error) {
	if err := a.For(identity.ManageWebhooks); err != nil {
		return Webhook{}, "", err
	}
	if !ValidID(id) {
		return Webhook{}, "", errs.ErrNotFound
	}
	if err := identity.CheckOverlap(overlap); err != nil {
		return Webhook{}, "", err
	}
	now := s.now()
	fresh := NewSecret()
	secret := FormatSecret(fresh)
	once := idempotency.From(ctx)
	if err := once.Seal(secret); err != nil {
		return Webhook{}, "", err
	}
	w, err := s.store.Change(ctx, a.Org(), id, func(w Webhook) (Change, error) {
		w.UpdatedAt, w.OldSecretUntil = now, time.Time{}
		detail := "the old secret ended at once"
		if overlap > 0 {
			w.OldSecretUntil = now.Add(overlap)
			detail = "the old secret works until " + w.OldSecretUntil.Format(time.RFC3339)
		}
		return Change{
			Webhook: w, Changed: true, Restart: true, Secret: fresh,
			Audit: []identity.AuditEntry{s.entry(ctx, a, AuditRotate, id, detail)},
		}, nil
	})
	if err == nil {
		s.Changed(a.Org())
		secret, err = once.Secret(secret)
	}
	if err != nil {
		return Webhook{}, "", err
	}
	return w, secret, nil
}

// Deliveries returns the last attempts of a webhook, newest first.
func (s *Service) Deliveries(ctx context.Context, a identity.Access, id string, limit int) ([]Delivery, error) {
	if err := a.For(identity.ManageWebhooks); err != nil {
		return nil, err
	}
	if !ValidID(id) {
		return nil, errs.ErrNotFound
	}
	if limit < 0 || limit > MaxDeliveries {
		return nil, errs.InvalidFields(errs.NewField("limit", fmt.Sprintf("must be between 1 and %d", MaxDeliveries)))
	}
	if limit == 0 {
		limit = MaxDeliveries
	}
	return s.store.Deliveries(ctx, a.Org(), id, limit)
}
