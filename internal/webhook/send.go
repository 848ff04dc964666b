package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
)

// maxAsked is how many attempts that admins of one org asked for may be in flight on a node. Each
// one holds a request of the admin until the receiver responds or the time is up.
const maxAsked = 4

// asked counts the attempts in flight, by org.
type asked struct {
	mu   sync.Mutex
	orgs map[string]int
}

// enter reserves a place. It fails if the org has none left.
func (a *asked) enter(org string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.orgs[org] >= maxAsked {
		err := errs.New(errs.RateLimited, "webhook.busy",
			"%d pings and redeliveries of the org are in progress; try again when one has ended", maxAsked)
		err.RetryAfter = time.Second
		return err
	}
	a.orgs[org]++
	return nil
}

func (a *asked) leave(org string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.orgs[org]--; a.orgs[org] == 0 {
		delete(a.orgs, org)
	}
}

// Ping sends an event of the type Ping to a webhook, in any state, and returns the outcome. A
// failure is not repeated.
func (s *Service) Ping(ctx context.Context, a identity.Access, id string) (Delivery, error) {
	if err := a.For(identity.ManageWebhooks); err != nil {
		return Delivery{}, err
	}
	if !ValidID(id) {
		return Delivery{}, errs.ErrNotFound
	}
	if err := s.asked.enter(a.Org()); err != nil {
		return Delivery{}, err
	}
	defer s.asked.leave(a.Org())
	w, secrets, err := s.store.Secrets(ctx, a.Org(), id)
	if err != nil {
		return Delivery{}, err
	}
	data, err := json.Marshal(map[string]string{"id": w.ID, "org": w.Org, "description": w.Description})
	if err != nil {
		return Delivery{}, fmt.Errorf("encode a ping: %w", err)
	}
	e := event.Event{
		Org: w.Org, ID: event.NewID(), Type: Ping, At: s.now(), Subject: w.Subject(), Actor: a.Principal().Ref(),
		Scope: event.Admins, Version: 1, Data: data,
	}
	return s.sendNow(ctx, a, &w, secrets, &e, AuditPing)
}

// Redeliver sends one event of the log again and returns the outcome. The event must be one that
// the webhook selects. A failure is not repeated, and the cursor does not move.
func (s *Service) Redeliver(ctx context.Context, a identity.Access, id, eventID string) (Delivery, error) {
	if err := a.For(identity.ManageWebhooks); err != nil {
		return Delivery{}, err
	}
	if !ValidID(id) {
		return Delivery{}, errs.ErrNotFound
	}
	rest, ok := strings.CutPrefix(eventID, "evt-")
	if !ok || len(eventID) > 64 || strings.ContainsFunc(rest, notIDChar) {
		return Delivery{}, errs.InvalidFields(errs.NewField("event_id", "must be the id of an event, such as evt-3xk5…"))
	}
	if err := s.asked.enter(a.Org()); err != nil {
		return Delivery{}, err
	}
	defer s.asked.leave(a.Org())
	w, secrets, err := s.store.Secrets(ctx, a.Org(), id)
	if err != nil {
		return Delivery{}, err
	}
	e, err := s.store.Event(ctx, a.Org(), id, eventID)
	if errs.KindOf(err) == errs.NotFound || err == nil && !w.selects(&e) {
		return Delivery{}, errs.New(errs.NotFound, "webhook.no_event",
			"event %s is not in the log any more, or the webhook does not get it; see its types and filters", eventID)
	}
	if err != nil {
		return Delivery{}, err
	}
	return s.sendNow(ctx, a, &w, secrets, &e, AuditRedeliver)
}

// sendNow makes one attempt and records it. The caller has a place.
func (s *Service) sendNow(
	ctx context.Context, a identity.Access, w *Webhook, secrets Secrets, e *event.Event, action identity.AuditAction,
) (Delivery, error) {
	out := s.request(w, secrets, e)
	header, body := out.Encode()
	r := &delivery.Request{
		Subscription: delivery.Subscription{
			Key: delivery.Key{Kind: Kind, Org: w.Org, ID: w.ID}, Owner: w.Org, Receiver: w.Receiver(), URL: w.URL,
		},
		Seq: e.Seq, ID: e.ID, Attempt: 1, Header: header, Trace: out.Trace, Body: body, Sign: out.Sign,
	}
	began := time.Now()
	failure := s.sendUntilStop(ctx, r)
	if failure != nil && s.stopped.Err() != nil {
		err := errs.New(errs.Unavailable, "webhook.stopping", "the server is stopping; repeat the request")
		err.RetryAfter = time.Second
		return Delivery{}, err
	}
	d := Delivery{
		EventID: e.ID, Type: e.Type, Seq: e.Seq, At: s.now(), Attempt: 1, Status: r.Response.Status,
		Latency: time.Since(began), Response: r.Response.Text, Outcome: delivery.Delivered,
		Redelivery: action == AuditRedeliver,
	}
	if failure != nil {
		d.Outcome, d.Error = delivery.Failed, delivery.ErrorText(failure)
	}
	s.onAttempt(d.Outcome)
	// The attempt was made, so it is recorded even if the admin has disconnected.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
	defer cancel()
	detail := fmt.Sprintf("%s %s: %s", e.Type, e.ID, d.Outcome)
	return s.store.Record(ctx, w.Org, w.ID, d, s.entry(ctx, a, action, w.ID, detail))
}

const recordWithin = 5 * time.Second

func (s *Service) sendUntilStop(ctx context.Context, r *delivery.Request) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.stopped, cancel)()
	return s.sender.Send(ctx, r)
}

// Stop cancels pings and redeliveries of one event that are still in progress after
// delivery.StopGrace, so that the server does not wait for their receivers.
func (s *Service) Stop() { time.AfterFunc(delivery.StopGrace, s.stop) }

// RedeliverSince moves the cursor of a webhook back, so that it gets all events since a time again.
func (s *Service) RedeliverSince(ctx context.Context, a identity.Access, id string, since time.Time) (Webhook, error) {
	if err := a.For(identity.ManageWebhooks); err != nil {
		return Webhook{}, err
	}
	if !ValidID(id) {
		return Webhook{}, errs.ErrNotFound
	}
	if since.IsZero() || since.After(s.now()) {
		return Webhook{}, errs.InvalidFields(errs.NewField("since", "must be a time in the past"))
	}
	first, err := s.store.FirstSince(ctx, a.Org(), since)
	if err != nil {
		return Webhook{}, err
	}
	w, err := s.store.Change(ctx, a.Org(), id, func(w Webhook) (Change, error) {
		c := Change{Webhook: w, Audit: []identity.AuditEntry{
			s.entry(ctx, a, AuditRedeliver, id, "all since "+since.UTC().Format(time.RFC3339)),
		}}
		if first > 0 && first <= w.Cursor {
			c.Webhook.Cursor = first - 1
			c.Webhook.Attempts, c.Webhook.LastError = 0, "" // they are about another event
			c.Restart = true
		}
		return c, nil
	})
	if err == nil {
		s.Changed(a.Org())
	}
	return w, err
}
