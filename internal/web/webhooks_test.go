package web_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/orgtest"
	"github.com/parley-dev/parley/internal/webhook"
)

// receiver stands for the receivers of webhooks.
type receiver struct {
	mu     sync.Mutex
	got    []string // ids of events
	answer string
	fails  error
}

func (r *receiver) Send(_ context.Context, q *delivery.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, q.ID)
	if q.Response.Status = http.StatusAccepted; r.fails != nil {
		q.Response.Status = http.StatusTeapot
	}
	q.Response.Text = r.answer
	return r.fails
}

func (r *receiver) answers(text string, fails error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer, r.fails = text, fails
}

// newWebhooks returns the service without its background work.
func newWebhooks(w *orgtest.World, to delivery.Sender) *webhook.Service {
	return webhook.NewService(webhook.Options{
		Store: w.Store.Webhooks(), Log: w.Store.Events(), Sender: to, Now: orgtest.Now, NewID: orgtest.NewID,
		CheckURL: func(raw string) error {
			if strings.Contains(raw, "internal") {
				return errors.New("is in a private network")
			}
			return nil
		},
		OnError: func(err error) { w.Error(err) }, Most: 5,
	})
}

var (
	hookID     = regexp.MustCompile(`hook-[0-9a-z]{20,}`)
	hookSecret = regexp.MustCompile(`whsec_[A-Za-z0-9+/=&#;]+`) // as in HTML, where + is escaped
)

// hook creates a webhook with further fields, and returns its path and secret.
func (v *visitor) hook(pairs ...string) (path, secret string) {
	v.tb.Helper()
	res := v.post("/webhooks", append([]string{
		"url", "https://crm.example/secret-path", "format", "standard", "password", rightPassword,
	}, pairs...)...).want(http.StatusCreated, "Copy the secret now")
	if res.header.Get("Cache-Control") != "no-store" {
		v.tb.Error("the page with the secret may be stored")
	}
	return "/webhooks/" + hookID.FindString(res.body), hookSecret.FindString(res.body)
}

func TestAWebhookOnPages(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ada.get("/webhooks").want(http.StatusOK, "No webhooks yet")
	page, secret := o.ada.hook("types", "agent.changed", "types", "proposal.approved", "categories", "security",
		"description", "Tickets")
	if secret == "" {
		t.Fatal("the page of a new webhook shows no secret")
	}
	o.ada.again("/webhooks", "url", "https://crm.example/secret-path", "format", "standard", "password", rightPassword,
		"types", "agent.changed", "types", "proposal.approved", "categories", "security", "description", "Tickets").
		want(http.StatusCreated, "not shown again").lacks(secret)
	o.ada.get("/webhooks").want(http.StatusOK, "Tickets", "https://crm.example", "agent.changed", "active").
		lacks("secret-path", "given up")
	o.ada.get(page).want(http.StatusOK, "Nothing was sent yet", "agent.changed", "security").lacks(secret)
	o.eve.send(http.MethodGet, "/orgs/globex"+page, nil).want(http.StatusNotFound)

	o.ada.post(page+"/ping").leads(o.ada, "accepted the event with status 202", "webhook.ping")
	o.ada.post(page+"/state", "state", "paused").leads(o.ada, "is paused", "Resume")
	o.ada.post(page+"/state", "state", "active").leads(o.ada, "is active", "Pause")
	o.ada.post(page+"/state", "state", "failed").want(http.StatusBadRequest)

	res := o.ada.post(page+"/rotate", "overlap", "86400", "confirm", rightPassword).
		want(http.StatusCreated, "Copy the secret now", "Old secret")
	if next := hookSecret.FindString(res.body); next == "" || next == secret {
		t.Errorf("the new secret is %q, want another than before", next)
	}
	o.ada.post(page+"/rotate", "overlap", "86400").want(http.StatusUnprocessableEntity, "Is required")
	o.ada.post(page+"/rotate", "overlap", "7", "confirm", "wrong").want(http.StatusUnprocessableEntity, "Is wrong")

	o.ada.post(page+"/delete").leads(o.ada, "was deleted", "No webhooks yet")
	o.ada.again(page+"/delete").leads(o.ada, "no longer exists")
	o.ada.get(page).want(http.StatusNotFound)
	o.ada.get("/audit").want(http.StatusOK, "created the webhook", "replaced the secret of the webhook",
		"sent a test event to the webhook", "deleted the webhook", `href="/orgs/acme`+page+`"`)
}

// Where events are sent is decided with the password, as by the REST API without a session.
func TestANewReceiverNeedsThePassword(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ada.post("/webhooks", "url", "https://crm.example/", "format", "slack").
		want(http.StatusUnprocessableEntity, "Is required", `value="https://crm.example/"`).lacks("whsec_")
	o.ada.post("/webhooks", "url", "https://crm.example/", "format", "slack", "password", "wrong").
		want(http.StatusUnprocessableEntity, "Is wrong").lacks(`value="wrong"`)
	page, _ := o.ada.hook()
	form := func(pairs ...string) []string {
		return append([]string{"version", "1", "url", "https://crm.example/secret-path", "format", "cloudevents"}, pairs...)
	}
	o.ada.post(page, form("url", "", "description", "x")...).leads(o.ada, "was changed", "cloudevents")
	moved := []string{"version", "2", "url", "https://elsewhere.example/", "format", "cloudevents"}
	o.ada.post(page, moved...).want(http.StatusUnprocessableEntity, "Is required", "https://elsewhere.example/")
	o.ada.post(page, append(moved, "password", rightPassword)...).leads(o.ada, "was changed", "https://elsewhere.example/")
	o.ada.post(page, append(moved, "description", "y")...).
		want(http.StatusPreconditionFailed, "Another user has changed it")
	o.ada.post(page, "url", "https://elsewhere.example/").want(http.StatusBadRequest)
	for _, c := range [][3]string{
		{"url", "ftp://x", "Must be an absolute URL"},
		{"url", "https://internal.example/", "Is in a private network"},
		{"types", "proposal.eaten", "not a type of event"},
		{"categories", "<b>", "must be one of"},
		{"format", "xml", "Must be standard"},
		{"description", strings.Repeat("x", 501), "at most 500"},
	} {
		fields := url.Values{"url": {"https://crm.example/"}, "format": {"standard"}, "password": {rightPassword}}
		fields.Set(c[0], c[1])
		var pairs []string
		for name, values := range fields {
			pairs = append(pairs, name, values[0])
		}
		o.ada.post("/webhooks", pairs...).want(http.StatusUnprocessableEntity, c[2])
	}
}

func TestDeliveriesOfAWebhookAreShownAndRepeated(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	page, _ := o.ada.hook()
	before := time.Now().Add(-time.Minute).UTC().Format("2006-01-02T15:04")
	e := event.New("acme", event.AgentChanged, orgtest.Now(), "agent:scout", "user:ada", event.Members,
		[]byte(`{"name":"S"}`))
	if err := o.Store.Events().Append(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	const hostile = "<script>alert(1)</script>\x1b[31m\u202egnp.exe"
	o.receiver.answers(hostile, nil)
	o.ada.post(page+"/redeliver", "event_id", e.ID).leads(o.ada, "accepted the event", "agent.changed", "sent again",
		"&lt;script&gt;", `\u{1b}[31m\u{202e}gnp.exe`, "#"+e.ID, `value="`+e.ID+`"`).
		lacks("<script>alert", "\x1b", "\u202e")
	o.receiver.answers(strings.Repeat("x", 5000), errors.New("the receiver responded with 418 \u202e<u>"))
	o.ada.post(page+"/ping").leads(o.ada, "did not accept the event", "418", strings.Repeat("x", 300)+"…").
		lacks(strings.Repeat("x", 301), "\u202e", "<u>")
	o.ada.post(page+"/redeliver", "event_id", "evt-missing").want(http.StatusConflict, "nothing was sent")
	o.ada.post(page+"/redeliver", "event_id", "<x>").want(http.StatusUnprocessableEntity, "must be the id of an event")

	o.ada.post(page+"/redeliver", "since", "yesterday").want(http.StatusUnprocessableEntity, `id="err-since"`)
	o.ada.post(page+"/redeliver", "since", "2999-01-01T00:00").
		want(http.StatusUnprocessableEntity, "Must be a time in the past")
	o.ada.post(page+"/redeliver", "since", "").want(http.StatusUnprocessableEntity, `id="err-since"`)
	o.ada.post(page+"/redeliver", "since", before).leads(o.ada, "are sent again now")
	o.ada.post(page+"/redeliver", "since", before).leads(o.ada, "nothing is sent again") // they wait already
}

func TestAWebhookThatWasGivenUpIsResumed(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	page, _ := o.ada.hook("description", "Dead one")
	_, err := o.Store.Webhooks().Progress(t.Context(), "acme", strings.TrimPrefix(page, "/webhooks/"),
		func(p delivery.Progress, _ time.Time) (delivery.Progress, error) {
			p.State = delivery.Dead
			return p, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	o.ada.get("/webhooks?state=failed").want(http.StatusOK, "Dead one", "given up")
	o.ada.get("/webhooks?state=x").want(http.StatusUnprocessableEntity)
	o.ada.get("/overview").want(http.StatusOK, "1 webhook was given up", "/webhooks?state=failed")
	o.ada.get(page).want(http.StatusOK, "nothing more is sent", "Resume", `id="hook-control" data-live="webhook"`)
	o.ada.post(page+"/state", "state", "active").leads(o.ada, "is active")
	o.ada.get("/webhooks?state=failed").want(http.StatusOK, "No webhook was given up")
}

// The limit of the operator holds on pages.
func TestTooManyWebhooksAreRefused(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for range 5 {
		o.ada.hook()
	}
	o.ada.post("/webhooks", "url", "https://crm.example/", "format", "standard", "password", rightPassword).
		want(http.StatusConflict, "which is the limit")
}
