package rest

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/orgtest"
	"github.com/parley-dev/parley/internal/webhook"
)

const (
	webhooks    = "/api/v1/orgs/acme/webhooks"
	webhookBody = `{"url":"https://crm.example/hooks/parley"}`
)

// newWebhooks returns the service without its background work.
func newWebhooks(o *orgtest.World, to delivery.Sender) *webhook.Service {
	return webhook.NewService(webhook.Options{
		Store: o.Store.Webhooks(), Log: o.Store.Events(), Sender: to, Now: utcNow, NewID: newID,
		CheckURL: func(string) error { return nil }, OnError: func(err error) { panic(err) },
	})
}

// acceptsAll stands for receivers that accept everything.
type acceptsAll struct{ before func() }

func (a acceptsAll) Send(_ context.Context, r *delivery.Request) error {
	if a.before != nil {
		a.before()
	}
	r.Response.Status = 204
	return nil
}

// settings compares webhooks without their progress.
var settings = cmpopts.IgnoreFields(Webhook{}, "LastSeq", "Pending")

// newWebhook creates a webhook of the org acme.
func (w *world) newWebhook(secret, extra string) WebhookWithSecret {
	w.tb.Helper()
	var h WebhookWithSecret
	w.do(secret, "POST", webhooks, strings.TrimSuffix(webhookBody, "}")+extra+"}").want(201).into(&h)
	return h
}

func TestAWebhookLives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, eve := w.admin("acme", "user:ada"), w.admin("globex", "user:eve")
	res := w.do(ada, "POST", webhooks, webhookBody).want(201)
	var plain WebhookWithSecret
	res.into(&plain)
	if plain.State != "active" || plain.Format != "standard" || plain.CreatedBy != "user:ada" ||
		!strings.HasPrefix(plain.Secret, "whsec_") || !strings.HasPrefix(plain.PublicKey, "whpk_") ||
		res.Header.Get("Location") != webhooks+"/"+plain.ID || res.Header.Get("ETag") == "" {
		t.Errorf("got %+v %v, want an active standard webhook of user:ada with its secret, keys and Location",
			plain, res.Header)
	}
	for _, list := range []string{`"types":[]`, `"categories":[]`, `"priorities":[]`, `"last_error":null`} {
		if !strings.Contains(res.Body, list) {
			t.Errorf("got %s, want containing %s", res.Body, list)
		}
	}
	full := w.newWebhook(ada, `,"types":["proposal.approved","webhook.failed"],"categories":["security"],`+
		`"priorities":["high"],"description":"Tickets","state":"paused","format":"slack"`)
	if full.State != "paused" || full.Format != "slack" || full.Description != "Tickets" || len(full.Types) != 2 ||
		len(full.Categories) != 1 || len(full.Priorities) != 1 {
		t.Errorf("got %+v, want what was sent", full)
	}

	var got Webhook
	res = w.do(ada, "GET", webhooks+"/"+full.ID, "").want(200)
	res.into(&got)
	if diff := cmp.Diff(full.Webhook, got, settings); diff != "" || strings.Contains(res.Body, "whsec_") {
		t.Errorf("got %v %v, want the webhook without its secret", diff, res.Body)
	}
	res = w.do(ada, "GET", webhooks, "").want(200)
	var list WebhookList
	res.into(&list)
	if len(list.Webhooks) != 2 || list.Webhooks[0].ID != full.ID || list.Webhooks[1].ID != plain.ID ||
		strings.Contains(res.Body, "whsec_") {
		t.Errorf("got %s, want both, newest first, without secrets", res.Body)
	}

	// Another org cannot see, change or use them.
	const theirs = "/api/v1/orgs/globex/webhooks/"
	w.do(eve, "GET", theirs+full.ID, "").want(404)
	w.do(eve, "PATCH", theirs+full.ID, `{"state":"active"}`).want(404)
	w.do(eve, "DELETE", theirs+full.ID, "").want(404)
	w.do(eve, "GET", theirs+full.ID+"/deliveries", "").want(404)
	w.do(eve, "POST", theirs+full.ID+"/ping", "").want(404)
	w.do(eve, "POST", theirs+full.ID+"/rotate", "").want(404)
	w.do(eve, "POST", theirs+full.ID+"/redeliver", `{"since":"2026-03-02T10:00:00Z"}`).want(404)
	if body := w.do(eve, "GET", strings.TrimSuffix(theirs, "/"), "").want(200).
		Body; !strings.Contains(body, `"webhooks":[]`) {
		t.Errorf("got %v, want containing \"webhooks\":[]", body)
	}

	w.do(ada, "DELETE", webhooks+"/"+full.ID, "").want(200).into(&got)
	if got.ID != full.ID {
		t.Errorf("got %+v, want ID %v", got, full.ID)
	}
	w.do(ada, "DELETE", webhooks+"/"+full.ID, "").want(404)
	w.do(ada, "GET", webhooks+"/"+full.ID, "").want(404)
	w.do(ada, "GET", webhooks+"/"+plain.ID, "").want(200)
}

func TestAMalformedWebhookNamesEveryBrokenField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	field := func(name, value string) string {
		return strings.TrimSuffix(webhookBody, "}") + `,"` + name + `":` + value + `}`
	}
	all := []string{"/url", "/types", "/categories", "/priorities", "/description", "/state", "/format"}
	faults := []fault{
		{"an empty body", "", 400, nil},
		{"a duplicate key", `{"url":"a","url":"b"}`, 400, []string{"/url"}},
		{
			"null everywhere", `{"url":null,"types":null,"categories":null,"priorities":null,"description":null,` +
				`"state":null,"format":null}`, 422, all,
		},
		{
			"wrong types", `{"url":1,"types":"x","categories":{},"priorities":1,"description":[],"state":true,"format":0}`,
			422, all,
		},
		{"an unknown field", field("secret", `"mine"`), 422, []string{"/secret"}},
		{"an address without a scheme", `{"url":"crm.example"}`, 422, []string{"/url"}},
		{"an unknown type of event", field("types", `["proposal.approved","proposal.flew"]`), 422, []string{"/types/1"}},
		{"a ping as a type", field("types", `["webhook.ping"]`), 422, []string{"/types/0"}},
		{"an unknown state", field("state", `"gone"`), 422, []string{"/state"}},
		{"an unknown format", field("format", `"xml"`), 422, []string{"/format"}},
		{
			"a long description", field("description", strconv.Quote(strings.Repeat("x", webhook.MaxDescription+1))), 422,
			[]string{"/description"},
		},
	}
	checkFaults(t, w, ada, "POST", webhooks, append([]fault{
		{"no field", `{}`, 422, []string{"/url"}},
		{"an empty state", field("state", `""`), 422, []string{"/state"}},
		{"an empty format", field("format", `""`), 422, []string{"/format"}},
	}, faults...))
	if body := w.do(ada, "GET", webhooks, "").want(200).Body; !strings.Contains(body, `"webhooks":[]`) {
		t.Errorf("something was stored: got %v, want containing \"webhooks\":[]", body)
	}
	made := w.newWebhook(ada, "")
	checkFaults(t, w, ada, "PATCH", webhooks+"/"+made.ID, append([]fault{
		{"no field", `{}`, 422, []string{""}},
		{"a read-only field", `{"last_seq":0}`, 422, []string{"/last_seq"}},
	}, faults...))
	checkFaults(t, w, ada, "POST", webhooks+"/"+made.ID+"/redeliver", []fault{
		{"neither", `{}`, 422, []string{""}},
		{"both", `{"event_id":"evt-1","since":"2026-03-02T10:00:00Z"}`, 422, []string{""}},
		{"null", `{"event_id":null}`, 422, []string{"/event_id"}},
		{"not an event", `{"event_id":"prop-1"}`, 422, []string{"/event_id"}},
		{"not a time", `{"since":"yesterday"}`, 422, []string{"/since"}},
		{"an unknown field", `{"event_id":"evt-1","all":true}`, 422, []string{"/all"}},
	})
	checkFaults(t, w, ada, "POST", webhooks+"/"+made.ID+"/rotate", []fault{
		{"a negative overlap", `{"overlap_seconds":-1}`, 422, []string{"/overlap_seconds"}},
		{"more than a week", `{"overlap_seconds":604801}`, 422, []string{"/overlap_seconds"}},
	})
	for _, query := range []string{"?limit=0", "?limit=101", "?limit=x", "?cursor=x"} {
		w.do(ada, "GET", webhooks+"/"+made.ID+"/deliveries"+query, "").want(422)
	}
	w.do(ada, "GET", webhooks+"?limit=1", "").want(422)
	for _, id := range []string{"hook-", "HOOK-1", "hook-%00", "key-1", strings.Repeat("x", 100)} {
		w.do(ada, "DELETE", webhooks+"/"+id, "").want(404)
	}
	var now Webhook
	w.do(ada, "GET", webhooks+"/"+made.ID, "").want(200).into(&now)
	if diff := cmp.Diff(made.Webhook, now, settings); diff != "" {
		t.Errorf("the webhook was changed (-want +got):\n%s", diff)
	}
}

func TestAWebhookIsChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	made := w.newWebhook(ada, `,"description":"Old"`)
	path := webhooks + "/" + made.ID
	tag := w.do(ada, "GET", path, "").want(200).Header.Get("ETag")
	want, got := made.Webhook, Webhook{}
	for _, c := range []struct {
		body string
		edit func()
	}{
		{`{"url":"https://other.example/hook"}`, func() { want.URL = "https://other.example/hook" }},
		{`{"types":["task.failed"]}`, func() { want.Types = []string{"task.failed"} }},
		{`{"types":[]}`, func() { want.Types = []string{} }},
		{`{"categories":["process"],"priorities":["low"]}`, func() {
			want.Categories, want.Priorities = []string{"process"}, []string{"low"}
		}},
		{`{"description":""}`, func() { want.Description = "" }},
		{`{"state":"paused"}`, func() { want.State = "paused" }},
		{`{"state":"active","format":"cloudevents"}`, func() { want.State, want.Format = "active", "cloudevents" }},
	} {
		c.edit()
		res := w.do(ada, "PATCH", path, c.body, "If-Match", tag).want(200)
		res.into(&got)
		want.UpdatedAt = got.UpdatedAt
		if diff := cmp.Diff(want, got, settings); diff != "" || res.Header.Get("ETag") == tag {
			t.Errorf("%s: got %s %s, want no difference and a new ETag", c.body, diff, res.Header.Get("ETag"))
		}
		w.do(ada, "PATCH", path, `{"description":"stale"}`, "If-Match", tag).want(412)
		tag = res.Header.Get("ETag")
	}
	w.do(ada, "PATCH", path, `{"description":"x"}`, "If-Match", `"x"`).want(412)
	w.do(ada, "PATCH", path, `{"description":"x"}`, "If-Match", `"v99-0", `+tag).want(200)
}

func TestTheSecretOfAWebhookIsRotated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	made := w.newWebhook(ada, "")
	path := webhooks + "/" + made.ID + "/rotate"
	var first, second WebhookWithSecret
	w.do(ada, "POST", path, `{"overlap_seconds":3600}`).want(200).into(&first)
	until, ok := parseTime(deref(first.SecretOverlapUntil))
	if first.Secret == made.Secret || first.PublicKey != made.PublicKey || !ok ||
		until.Before(time.Now().Add(time.Minute)) {
		t.Errorf("got %+v, want another secret, the same public key, and an overlap", first)
	}
	w.do(ada, "POST", path, "").want(200).into(&second)
	if second.Secret == first.Secret || second.SecretOverlapUntil != nil {
		t.Errorf("got %+v, want another secret without an overlap", second)
	}
}

func TestDeliveriesOfAWebhook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	path := webhooks + "/" + w.newWebhook(ada, "").ID
	if body := w.do(ada, "GET", path+"/deliveries", "").want(200).Body; !strings.Contains(body, `"deliveries":[]`) {
		t.Errorf("got %s, want none", body)
	}
	var ping WebhookDelivery
	w.do(ada, "POST", path+"/ping", "").want(200).into(&ping)
	if ping.Type != "webhook.ping" || ping.Seq != nil || ping.ID == "" || !validEventID(ping.EventID) ||
		ping.Attempt != 1 {
		t.Errorf("got %+v, want a ping without a number", ping)
	}
	// A ping is sent each time, so it cannot be made repeatable.
	w.do(ada, "POST", path+"/ping", "", "Idempotency-Key", "k").want(422)
	w.do(ada, "POST", path+"/ping", "").want(200)
	var list WebhookDeliveryList
	w.do(ada, "GET", path+"/deliveries?limit=1", "").want(200).into(&list)
	if len(list.Deliveries) != 1 || list.Deliveries[0].ID == ping.ID {
		t.Errorf("got %+v, want the last ping", list)
	}
	w.do(ada, "GET", path+"/deliveries", "").want(200).into(&list)
	if len(list.Deliveries) != 2 || list.Deliveries[1].ID != ping.ID {
		t.Errorf("got %+v, want both pings, newest first", list)
	}
}

// A ping and a redelivery wait for the receiver without a slot of the server.
func TestAReceiverThatStallsHoldsNoSlot(t *testing.T) {
	t.Parallel()
	var o httpx.Options
	w := newWorld(t, func(h *httpx.Options, _ *Options) { o = *h })
	ada := w.admin("acme", "user:ada")
	w.newWebhook(ada, "") // which is the first event of the log
	path := webhooks + "/" + w.newWebhook(ada, "").ID
	page, err := w.store.Events().Page(t.Context(), "acme", event.Query{
		Filter: event.Filter{Viewer: event.Viewer{Admin: true}}, Limit: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	inside, release := make(chan struct{}), make(chan struct{})
	stalls := acceptsAll{before: func() { inside <- struct{}{}; <-release }}
	o.MaxRequests = 1
	rt := httpx.NewRouter(o)
	Mount(rt, Options{Webhooks: newWebhooks(w.orgs, stalls)})
	w.handler = rt
	var work sync.WaitGroup
	for target, body := range map[string]string{"/ping": "", "/redeliver": `{"event_id":"` + page.Events[0].ID + `"}`} {
		work.Go(func() { w.do(ada, "POST", path+target, body).want(200) })
		select {
		case <-inside:
		case <-time.After(time.Minute):
			t.Fatalf("%s did not reach the receiver within a minute", target)
		}
		w.do(ada, "GET", path, "").want(200)
	}
	close(release)
	work.Wait()
}

func TestARedeliveryIsOfOneEventOrOfAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	w.newWebhook(ada, "") // which is the first event of the log
	made := w.newWebhook(ada, "")
	path := webhooks + "/" + made.ID + "/redeliver"
	page, err := w.store.Events().Page(t.Context(), "acme", event.Query{
		Filter: event.Filter{Viewer: event.Viewer{Admin: true}}, Limit: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	id := event.NewID() // the stand-in accepts any event
	if len(page.Events) > 0 {
		id = page.Events[0].ID
	}
	var d WebhookDelivery
	w.do(ada, "POST", path, `{"event_id":"`+id+`"}`).want(200).into(&d)
	if d.EventID != id || !d.Redelivery || d.Seq == nil {
		t.Errorf("got %+v, want the redelivery of %s", d, id)
	}
	w.do(ada, "POST", path, `{"event_id":"`+id+`"}`, "Idempotency-Key", "k").want(422)
	var h Webhook
	w.do(ada, "POST", path, `{"since":"2026-03-02T10:00:00+01:00"}`).want(200).into(&h)
	if h.ID != made.ID || h.LastSeq != 0 {
		t.Errorf("got %+v, want the webhook %s before its first event", h, made.ID)
	}
}

// The data of webhook.* events goes to other receivers.
func TestEventsDoNotShowTheWholeURLOfAWebhook(t *testing.T) {
	t.Parallel()
	h := webhook.Webhook{
		ID: "hook-1", URL: "https://Chat.example/services/T0/s3cret?token=s3cret", State: webhook.Active, Cursor: 7, Head: 9,
	}
	raw := Records{}.Webhook(&h)
	var got Webhook
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if got.URL != "https://chat.example" || strings.Contains(string(raw), "s3cret") || got.LastSeq != 7 ||
		got.Pending != 2 {
		t.Errorf("got %s, want the host only, and the progress", raw)
	}
}

// The types in the document are those of the log.
func TestTheDocumentListsTheTypesOfEvents(t *testing.T) {
	t.Parallel()
	schemas := document(Options{}).Components.Schemas.Map()
	for _, name := range []string{"Webhook", "WebhookWithSecret", "WebhookCreation", "WebhookPatch"} {
		var got []event.Type
		for _, v := range schemas[name].Properties["types"].Items.Enum {
			got = append(got, event.Type(v.(string)))
		}
		if diff := cmp.Diff(allEventTypes(), got); diff != "" || len(got) == 0 {
			t.Errorf("%s mismatch (-want +got):\n%s", name, diff)
		}
	}
}

// A session alone must not decide where the events of an org are sent.
func TestASessionDoesNotDecideWhereEventsGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.newWebhook(w.admin("acme", "user:ada"), "")
	rt, ok := w.handler.(*httpx.Router)
	if !ok {
		t.Fatal("the handler is no router")
	}
	rt.AcceptSessions(sessionOf{&identity.Caller{
		Principal: identity.Principal{Org: "acme", Kind: identity.User, ID: "ada"}, KeyID: identity.SessionID("1"),
		Scopes: identity.Scopes{identity.Admin},
	}})
	do := func(method, path, body string) *answer { return w.do("", method, webhooks+path, body, "Cookie", "x=y") }
	for _, c := range [][3]string{
		{"POST", "", webhookBody},
		{"PATCH", "/" + made.ID, `{"url":"https://evil.example/","state":"paused"}`},
		{"POST", "/" + made.ID + "/rotate", `{}`},
	} {
		if p := do(c[0], c[1], c[2]).want(403).problem(); p.Code != "auth.confirm" {
			t.Errorf("%s %s: got %+v, want Code auth.confirm", c[0], c[1], p)
		}
	}
	var now Webhook
	do("GET", "/"+made.ID, "").want(200).into(&now)
	if diff := cmp.Diff(made.Webhook, now, settings); diff != "" {
		t.Errorf("the webhook was changed (-want +got):\n%s", diff)
	}
	do("PATCH", "/"+made.ID, `{"state":"paused"}`).want(200)
	do("POST", "/"+made.ID+"/ping", "").want(200)
	do("DELETE", "/"+made.ID, "").want(200)
}
