package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/webhook"
)

// hookReceiver records the requests to webhooks.
type hookReceiver struct {
	mu     sync.Mutex
	got    []delivery.Request
	busy   map[string]bool
	double bool
	answer func(r *delivery.Request) error
}

func (h *hookReceiver) Send(_ context.Context, r *delivery.Request) error {
	h.mu.Lock()
	h.got = append(h.got, *r)
	if h.busy == nil {
		h.busy = map[string]bool{}
	}
	h.double = h.double || h.busy[r.Key.ID]
	h.busy[r.Key.ID] = true
	answer := h.answer
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.busy[r.Key.ID] = false
		h.mu.Unlock()
	}()
	r.Response = delivery.Response{Status: 200, Text: "ok"}
	if answer != nil {
		return answer(r)
	}
	return nil
}

func (h *hookReceiver) answers(fn func(r *delivery.Request) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = fn
}

// first returns the id of the first request.
func (h *hookReceiver) first() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got[0].ID
}

// seqs returns the numbers of the events that a webhook got.
func (h *hookReceiver) seqs(id string) []int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []int64
	for i := range h.got {
		if h.got[i].Key.ID == id {
			out = append(out, h.got[i].Seq)
		}
	}
	return out
}

// hooks is a service for webhooks and the admin that uses it.
type hooks struct {
	*webhook.Service
	w     *world
	admin identity.Access
}

func (w *world) hooks(r delivery.Sender, retry delivery.Retry) *hooks {
	s := webhook.NewService(webhook.Options{
		Store: w.store.Webhooks(), Log: w.store.Events(), Sender: r, CheckURL: func(string) error { return nil },
		Retry: retry, Now: w.now, NewID: w.newID, Base: "https://parley.example", Most: 5, OnError: w.failed,
	})
	return &hooks{s, w, w.as(w.access("acme", "user:root"), identity.ManageWebhooks)}
}

// of returns the service as the admin of another org uses it.
func (h *hooks) of(org string) *hooks {
	return &hooks{h.Service, h.w, h.w.as(h.w.access(org, "user:root"), identity.ManageWebhooks)}
}

func (h *hooks) create(url string, types ...event.Type) webhook.Webhook {
	h.w.Helper()
	out, _, err := h.Create(h.w.Context(), h.admin, webhook.Creation{URL: url, Types: types})
	h.w.must(err)
	return out
}

func (h *hooks) get(id string) webhook.Webhook {
	h.w.Helper()
	out, err := h.Get(h.w.Context(), h.admin, id)
	h.w.must(err)
	return out
}

// happen makes n events by changes of a webhook that gets none.
func (h *hooks) happen(quiet webhook.Webhook, n int) {
	h.w.Helper()
	for i := range n {
		text := fmt.Sprint(h.w.newID(""), i)
		_, err := h.Update(h.w.Context(), h.admin, quiet.ID, webhook.Edit{Description: &text})
		h.w.must(err)
	}
}

func (h *hooks) quiet() webhook.Webhook {
	h.w.Helper()
	out, _, err := h.Create(h.w.Context(), h.admin, webhook.Creation{
		URL: "https://quiet.example/", State: webhook.Paused,
	})
	h.w.must(err)
	return out
}

// run runs the service until the test ends. The clock of claims goes on.
func (h *hooks) run() { h.w.background(h.Run) }

// settled makes sure that all events have numbers, which PostgreSQL gives after the commit.
func (h *hooks) settled() {
	h.w.Helper()
	_, err := h.List(h.w.Context(), h.admin)
	h.w.must(err)
}

// passed waits until a webhook has passed all events.
func (h *hooks) passed(id string) webhook.Webhook {
	h.w.Helper()
	var out webhook.Webhook
	h.w.until(id+" has passed all events", func() bool {
		h.w.advance(20 * time.Millisecond)
		h.Changed(h.admin.Org())
		out = h.get(id)
		return out.Cursor == out.Head && out.NextAttemptAt.IsZero() && out.Attempts == 0
	})
	return out
}

func (w *world) wantHook(r *hookReceiver, id string, want ...int64) {
	w.Helper()
	if got := r.seqs(id); !slices.Equal(got, want) {
		w.Errorf("events of %s = %v, want %v", id, got, want)
	}
}

// logged returns the types of the events about a webhook.
func (h *hooks) logged(id string) (types []event.Type) {
	h.w.Helper()
	page, err := h.w.store.Events().Page(h.w.Context(), h.admin.Org(), event.Query{
		Filter: event.Filter{Viewer: event.Viewer{Admin: true}, Subject: "webhook:" + id}, Limit: 100,
	})
	h.w.must(err)
	for _, e := range page.Events {
		if e.Scope != event.Admins {
			h.w.Errorf("event %+v, want one for admins", e)
		}
		types = append(types, e.Type)
	}
	return types
}

// testWebhooks: webhooks are created, read, changed and deleted, each with an event and an audit
// entry; another org sees nothing.
func testWebhooks(w *world) {
	ctx := w.Context()
	w.orgs("acme", "other")
	h := w.hooks(&hookReceiver{}, delivery.Retry{})
	made, secret, err := h.Create(ctx, h.admin, webhook.Creation{
		URL: "https://a.example/x", Types: []event.Type{event.KeyCreated, event.KeyCreated, event.WebhookChanged},
		Categories: []string{"security"}, Priorities: []string{"high", "low"}, Description: " To a ", Format: webhook.Slack,
	})
	w.must(err)
	if raw, err := webhook.ParseSecret(secret); err != nil || len(raw) != 32 {
		w.Errorf("secret = %d bytes, %v; want 32", len(raw), err)
	}
	got := h.get(made.ID)
	types := []event.Type{event.KeyCreated, event.WebhookChanged}
	if got.URL != "https://a.example/x" || !slices.Equal(got.Types, types) ||
		!slices.Equal(got.Categories, []string{"security"}) || !slices.Equal(got.Priorities, []string{"high", "low"}) ||
		got.Description != "To a" || got.Format != webhook.Slack || got.State != webhook.Active || got.Version != 1 ||
		got.CreatedBy != "user:root" || got.PublicKey != made.PublicKey || !got.CreatedAt.Equal(made.CreatedAt) {
		w.Errorf("read %+v, want what was created: %+v", got, made)
	}
	if got.Cursor != 0 || got.Head != 1 {
		w.Errorf("cursor %d, head %d; want 0 and 1, its own creation", got.Cursor, got.Head)
	}
	second := h.create("https://b.example/")
	if list, err := h.List(ctx, h.admin); err != nil || len(list) != 2 || list[0].ID != second.ID {
		w.Errorf("list = %+v, %v; want the newest first", list, err)
	}
	text, version := "new", int64(1)
	changed, err := h.Update(ctx, h.admin, made.ID, webhook.Edit{Description: &text, IfVersion: &version})
	w.must(err)
	if changed.Version != 2 || changed.Description != "new" || !changed.UpdatedAt.After(made.UpdatedAt) {
		w.Errorf("changed = %+v, want version 2", changed)
	}
	_, err = h.Update(ctx, h.admin, made.ID, webhook.Edit{Description: &text, IfVersion: &version})
	w.want(err, errs.Stale)
	if same, err := h.Update(ctx, h.admin, made.ID, webhook.Edit{Description: &text}); err != nil || same.Version != 2 {
		w.Errorf("no change = %+v, %v; want version 2", same, err)
	}
	for _, bad := range []webhook.State{webhook.Failed, "x"} {
		_, err = h.Update(ctx, h.admin, made.ID, webhook.Edit{State: &bad})
		w.want(err, errs.Invalid)
		_, _, err = h.Create(ctx, h.admin, webhook.Creation{URL: "https://a.example/", State: bad})
		w.want(err, errs.Invalid)
	}

	other := h.of("other")
	_, err = other.Get(ctx, other.admin, made.ID)
	w.want(err, errs.NotFound)
	_, err = other.Update(ctx, other.admin, made.ID, webhook.Edit{Description: &text})
	w.want(err, errs.NotFound)
	_, _, err = other.Rotate(ctx, other.admin, made.ID, 0)
	w.want(err, errs.NotFound)
	_, err = other.Ping(ctx, other.admin, made.ID)
	w.want(err, errs.NotFound)
	_, err = other.Deliveries(ctx, other.admin, made.ID, 0)
	w.want(err, errs.NotFound)
	_, err = other.Redeliver(ctx, other.admin, made.ID, "evt-x")
	w.want(err, errs.NotFound)
	_, err = other.RedeliverSince(ctx, other.admin, made.ID, made.CreatedAt)
	w.want(err, errs.NotFound)
	w.want(other.Delete(ctx, other.admin, made.ID), errs.NotFound)
	if list, err := other.List(ctx, other.admin); err != nil || len(list) != 0 {
		w.Errorf("list of the other org = %+v, %v; want none", list, err)
	}

	_, err = h.Ping(ctx, h.admin, made.ID)
	w.must(err)
	w.must(h.Delete(ctx, h.admin, made.ID))
	_, err = h.Get(ctx, h.admin, made.ID)
	w.want(err, errs.NotFound)
	w.want(h.Delete(ctx, h.admin, made.ID), errs.NotFound)
	_, err = h.Deliveries(ctx, h.admin, made.ID, 0)
	w.want(err, errs.NotFound)
	if got, want := h.logged(made.ID), []event.Type{
		event.WebhookCreated, event.WebhookChanged, event.WebhookDeleted,
	}; !slices.Equal(got, want) {
		w.Errorf("events = %v, want %v", got, want)
	}
	list, err := w.store.Audit().List(ctx, "acme", identity.AuditFilter{Target: made.ID, Limit: 10})
	w.must(err)
	var actions []identity.AuditAction
	for _, e := range list {
		actions = append(actions, e.Action)
	}
	if want := []identity.AuditAction{
		webhook.AuditDelete, webhook.AuditPing, webhook.AuditUpdate, webhook.AuditCreate,
	}; !slices.Equal(actions, want) {
		w.Errorf("audit = %v, want %v", actions, want)
	}
}

// testWebhookQuota: an org has a limited number of webhooks, also if they are created at once.
func testWebhookQuota(w *world) {
	w.orgs("acme", "other")
	h := w.hooks(&hookReceiver{}, delivery.Retry{})
	failures := make([]error, 8)
	race(w, len(failures), func(i int) error {
		_, _, failures[i] = h.Create(w.Context(), h.admin, webhook.Creation{URL: "https://a.example/"})
		return nil
	})
	refused := 0
	for _, err := range failures {
		if err != nil {
			refused++
			if w.want(err, errs.Conflict); errs.As(err).Code != "webhook.too_many" {
				w.Errorf("code = %s, want webhook.too_many", errs.As(err).Code)
			}
		}
	}
	if refused != 3 {
		w.Errorf("refused %d of 8, want 3: the limit is 5", refused)
	}
	h.of("other").create("https://a.example/")
}

// testWebhookOnce: a repeated creation or rotation has the first outcome, with its secret.
func testWebhookOnce(w *world) {
	w.orgs("acme")
	h := w.hooks(&hookReceiver{}, delivery.Retry{})
	once := func(operation string) context.Context {
		k, err := idempotency.New(operation, "k1", []byte("{}"))
		w.must(err)
		ctx, _, err := idempotency.Begin(w.Context(), k, "acme", "user:root", "credential")
		w.must(err)
		return ctx
	}
	creation := webhook.Creation{URL: "https://a.example/"}
	a, first, err := h.Create(once("create"), h.admin, creation)
	w.must(err)
	b, second, err := h.Create(once("create"), h.admin, creation)
	if err != nil || a.ID != b.ID || first != second {
		w.Errorf("created %s and %s, %v; want one with one secret", a.ID, b.ID, err)
	}
	a, first, err = h.Rotate(once("rotate"), h.admin, a.ID, time.Hour)
	w.must(err)
	b, second, err = h.Rotate(once("rotate"), h.admin, a.ID, time.Hour)
	if err != nil || a.Version != 2 || b.Version != 2 || first != second {
		w.Errorf("rotated to versions %d and %d, %v; want one rotation", a.Version, b.Version, err)
	}
}

// testWebhookRotation: during the overlap there are two secrets, then one.
func testWebhookRotation(w *world) {
	ctx := w.Context()
	w.orgs("acme")
	h := w.hooks(&hookReceiver{}, delivery.Retry{})
	made, first, err := h.Create(ctx, h.admin, webhook.Creation{URL: "https://a.example/"})
	w.must(err)
	check := func(what, current, old string) {
		w.Helper()
		_, s, err := w.store.Webhooks().Secrets(ctx, "acme", made.ID)
		w.must(err)
		gotOld := ""
		if s.Old != nil {
			gotOld = webhook.FormatSecret(s.Old)
		}
		if webhook.FormatSecret(s.Current) != current || gotOld != old || s.Private == nil {
			w.Errorf("%s: the secrets are not the expected ones", what)
		}
	}
	check("created", first, "")
	rotated, second, err := h.Rotate(ctx, h.admin, made.ID, time.Hour)
	w.must(err)
	if rotated.OldSecretUntil.IsZero() || rotated.PublicKey != made.PublicKey || rotated.Version != 2 || first == second {
		w.Errorf("rotated = %+v, want a second secret and the same key", rotated)
	}
	check("in the overlap", second, first)
	_, third, err := h.Rotate(ctx, h.admin, made.ID, time.Hour)
	w.must(err)
	check("rotated twice", third, second)
	w.advance(time.Hour + time.Second)
	check("after the overlap", third, "")
	if got := h.get(made.ID); !got.OldSecretUntil.IsZero() {
		w.Errorf("read %+v, want no old secret", got)
	}
	_, fourth, err := h.Rotate(ctx, h.admin, made.ID, 0)
	w.must(err)
	check("without an overlap", fourth, "")
	_, _, err = h.Rotate(ctx, h.admin, made.ID, 8*24*time.Hour)
	w.want(err, errs.Invalid)
}
