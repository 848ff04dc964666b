package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/orgtest"
	"github.com/parley-dev/parley/internal/store"
	"github.com/parley-dev/parley/internal/webhook"
)

// site is a server with webhooks over a store on disk, which can be stopped and started.
type site struct {
	*testing.T
	*webhook.Service
	dir   string
	retry delivery.Retry
	limit time.Duration // of a request; 0: the default, which is long enough for a busy machine
	store *store.Store
	stop  func()
	admin identity.Access
	quiet webhook.Webhook // gets no events; its changes make events for the others
	n     int
}

// soon repeats failed deliveries quickly.
var soon = delivery.Retry{First: 5 * time.Millisecond, Most: 20 * time.Millisecond}

func newSite(t *testing.T, retry delivery.Retry, edit ...func(*site)) *site {
	t.Helper()
	s := &site{T: t, dir: orgtest.EmptyDir(t), retry: retry}
	for _, e := range edit {
		e(s)
	}
	s.start()
	t.Cleanup(func() { s.stop() })
	operator := identity.NewOperator(s.store.IdentityStores(), orgtest.Now, orgtest.NewID)
	for _, org := range []string{"acme", "other"} {
		if _, err := operator.CreateOrg(t.Context(), org, ""); err != nil {
			t.Fatal(err)
		}
	}
	s.admin = accessOf(t, "acme")
	s.quiet, _ = s.create(webhook.Creation{URL: "https://quiet.example/", State: webhook.Paused})
	return s
}

func accessOf(t *testing.T, org string) identity.Access {
	t.Helper()
	caller := &identity.Caller{
		Principal: identity.Principal{Org: org, Kind: identity.User, ID: "root"}, Scopes: identity.AllScopes,
	}
	a, err := identity.Authorize(caller, org, identity.ManageWebhooks)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// start opens the store and runs the service.
func (s *site) start() {
	s.Helper()
	var err error
	if s.store, err = store.Open(s.Context(), store.Options{Dir: s.dir}); err != nil {
		s.Fatal(err)
	}
	text, err := delivery.NewKey()
	if err != nil {
		s.Fatal(err)
	}
	key, err := delivery.ParseKey(text)
	if err != nil {
		s.Fatal(err)
	}
	client, err := delivery.NewClient(delivery.ClientOptions{
		Allow: []string{"127.0.0.1"}, AllowFlag: "--outbound-allow", Key: key, Timeout: s.limit,
	})
	if err != nil {
		s.Fatal(err)
	}
	s.Service = webhook.NewService(webhook.Options{
		Store: s.store.Webhooks(), Log: s.store.Events(), Sender: client, CheckURL: client.CheckURL, Retry: s.retry,
		Now: orgtest.Now, NewID: orgtest.NewID, Base: "https://parley.example",
		OnError: func(err error) { s.Error(err) },
	})
	s.store.OnEvents(s.Changed)
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	service := s.Service
	work.Go(func() { service.Run(ctx) })
	st := s.store
	s.stop = func() {
		cancel()
		work.Wait()
		client.Close()
		if err := st.Close(); err != nil {
			s.Error(err)
		}
	}
}

func (s *site) create(c webhook.Creation) (webhook.Webhook, string) {
	s.Helper()
	w, secret, err := s.Create(s.Context(), s.admin, c)
	if err != nil {
		s.Fatal(err)
	}
	return w, secret
}

func (s *site) get(id string) webhook.Webhook {
	s.Helper()
	w, err := s.Get(s.Context(), s.admin, id)
	if err != nil {
		s.Fatal(err)
	}
	return w
}

func (s *site) happen(n int) {
	s.Helper()
	for range n {
		s.n++
		text := fmt.Sprint("change ", s.n)
		if _, err := s.Update(s.Context(), s.admin, s.quiet.ID, webhook.Edit{Description: &text}); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *site) until(what string, ok func() bool) {
	s.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("timeout, want that %s", what)
		}
	}
}

func (s *site) deliveries(id string) []webhook.Delivery {
	s.Helper()
	list, err := s.Deliveries(s.Context(), s.admin, id, 0)
	if err != nil {
		s.Fatal(err)
	}
	return list
}

// receiver is a real server that records what it got.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	got []got
}

type got struct {
	id     string
	header http.Header
	body   []byte
}

// listen starts a receiver. answer may be nil: 204.
func listen(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.got = append(r.got, got{req.Header.Get("webhook-id"), req.Header, body})
		n := len(r.got)
		r.mu.Unlock()
		if answer == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		answer(n, w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) all() []got {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

func (r *receiver) ids() (out []string) {
	for _, g := range r.all() {
		out = append(out, g.id)
	}
	return out
}

// changes returns the ids of the changes of the quiet webhook in the log.
func (s *site) changes() (out []string) {
	s.Helper()
	page, err := s.store.Events().Page(s.Context(), "acme", event.Query{
		Filter: event.Filter{
			Viewer: event.Viewer{Admin: true}, Subject: s.quiet.Subject(), Types: event.WebhookChanged.Bit(),
		}, Limit: 100,
	})
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range page.Events {
		out = append(out, e.ID)
	}
	return out
}

var onlyChanges = []event.Type{event.WebhookChanged}

// A failed event is repeated under its id, signed, and no other event overtakes it.
func TestEventsArriveSignedAndInOrder(t *testing.T) {
	t.Parallel()
	s := newSite(t, soon)
	r := listen(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n >= 2 && n <= 4 {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, "try\r\nlater \xff"+strings.Repeat("x", 300))
		}
	})
	hook, secret := s.create(webhook.Creation{URL: r.URL + "/in?x=1", Types: onlyChanges})
	s.happen(5)
	s.until("all have arrived", func() bool { return len(r.all()) == 8 && s.get(hook.ID).Cursor == s.get(hook.ID).Head })
	want := s.changes()
	if ids := r.ids(); !slices.Equal(ids[:4], []string{want[0], want[1], want[1], want[1]}) ||
		!slices.Equal(ids[4:], want[1:]) {
		t.Errorf("ids = %v, want those of the events, the second one four times: %v", ids, want)
	}
	verifier, err := standard.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range r.all() {
		if err := verifier.Verify(g.body, g.header); err != nil {
			t.Errorf("the official library refuses a delivery: %v", err)
		}
		if g.header.Get("Content-Type") != "application/json" || !strings.HasPrefix(g.header.Get("User-Agent"), "Parley/") ||
			!strings.Contains(g.header.Get("webhook-signature"), "v1a,") || g.header.Get("Authorization") != "" {
			t.Errorf("header = %v", g.header)
		}
		var body struct{ Type string }
		if err := json.Unmarshal(g.body, &body); err != nil || body.Type != "webhook.changed" {
			t.Errorf("body = %s, %v", g.body, err)
		}
	}
	list := s.deliveries(hook.ID)
	if len(list) != 8 || list[0].Outcome != delivery.Delivered || list[0].Status != 200 {
		t.Fatalf("deliveries = %+v, want 8, the last one delivered", list)
	}
	if d := list[4]; d.Attempt != 3 || d.Status != 500 || d.Outcome != delivery.Failed || d.EventID != want[1] ||
		!strings.HasPrefix(d.Response, "try  later xxx") || len(d.Response) > 200 || d.Latency <= 0 ||
		d.Error != "the receiver responded with 500" {
		t.Errorf("delivery = %+v, want the third failure of the second event", d)
	}
}

// The receiver is gone: the webhook fails at once, and says so in the log. Later it continues where
// it stopped.
func TestAReceiverThatIsGone(t *testing.T) {
	t.Parallel()
	s := newSite(t, soon)
	gone := true
	var mu sync.Mutex
	r := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if gone {
			w.WriteHeader(http.StatusGone)
		}
	})
	watch := listen(t, nil)
	hook, _ := s.create(webhook.Creation{URL: r.URL, Types: onlyChanges})
	s.create(webhook.Creation{URL: watch.URL, Types: []event.Type{event.WebhookFailed}})
	s.happen(3)
	s.until("it has failed", func() bool { return s.get(hook.ID).State == webhook.Failed })
	if w := s.get(hook.ID); !strings.Contains(w.LastError, "410") || len(r.all()) != 1 {
		t.Errorf("webhook = %+v after %d attempts, want 410 after one", w, len(r.all()))
	}
	s.until("the failure is reported", func() bool { return len(watch.all()) == 1 })
	mu.Lock()
	gone = false
	mu.Unlock()
	active := webhook.Active
	if _, err := s.Update(t.Context(), s.admin, hook.ID, webhook.Edit{State: &active}); err != nil {
		t.Fatal(err)
	}
	s.until("it got the rest", func() bool { return len(r.all()) >= 5 })
	if got, want := r.ids()[1:4], s.changes(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Receivers that misbehave delay neither the other webhooks of their org nor other orgs.
func TestBadReceiversDelayNobody(t *testing.T) {
	t.Parallel()
	s := newSite(t, delivery.Retry{First: time.Hour, Most: 2 * time.Hour}, func(s *site) { s.limit = time.Second })
	elsewhere := listen(t, nil)
	hold := make(chan struct{})
	var once sync.Once
	release := func() { once.Do(func() { close(hold) }) }
	t.Cleanup(release)
	raw := func(text string) func(int, http.ResponseWriter, *http.Request) {
		return func(_ int, w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			_, _ = io.WriteString(c, text)
			<-hold
		}
	}
	bad := map[string]struct {
		answer func(int, http.ResponseWriter, *http.Request)
		status int
		error  string // in the error of the delivery
	}{
		"stalls": {func(int, http.ResponseWriter, *http.Request) { <-hold }, 0, "did not respond within"},
		"redirects": {
			func(_ int, w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
			},
			307, "redirects are not followed",
		},
		"garbage length": {raw("HTTP/1.1 500 X\r\nContent-Length: -5\r\n\r\n"), 0, "could not be reached"},
		"long length": {
			raw("HTTP/1.1 503 X\r\nRetry-After: 90\r\nContent-Length: 99999999999\r\n\r\nshort"),
			503, "responded with 503",
		},
		"endless":     {raw("HTTP/1.1 500 X\r\n\r\n" + strings.Repeat("x", 1000)), 500, "responded with 500"},
		"no HTTP":     {raw("SSH-2.0\r\n"), 0, "could not be reached"},
		"header only": {raw("HTTP/1.1 500 X\r\nX: "), 0, "did not respond within"},
	}
	hooks := map[string]webhook.Webhook{}
	for name, c := range bad {
		r := listen(t, c.answer)
		hooks[name], _ = s.create(webhook.Creation{URL: r.URL, Types: onlyChanges, Description: name})
	}
	good := listen(t, nil)
	s.create(webhook.Creation{URL: good.URL, Types: onlyChanges})
	s.happen(20)
	s.until("the good receiver has all", func() bool { return len(good.all()) == 20 })
	for name, c := range bad {
		var w webhook.Webhook
		s.until(name+" has failed once", func() bool { w = s.get(hooks[name].ID); return w.Attempts == 1 })
		list := s.deliveries(w.ID)
		if len(list) != 1 || list[0].Status != c.status || !strings.Contains(list[0].Error, c.error) {
			t.Errorf("%s: deliveries = %+v, want one with status %d and %q", name, list, c.status, c.error)
		}
		if w.NextAttemptAt.Before(w.LastAttemptAt.Add(40*time.Minute)) || w.State != webhook.Active {
			t.Errorf("%s: webhook = %+v, want a later attempt", name, w)
		}
	}
	if n := len(elsewhere.all()); n != 0 {
		t.Errorf("a redirect was followed %d times", n)
	}
	release()
}

// Webhooks that never catch up take turns with others on the same host, also with those of other
// orgs.
func TestBusyWebhooksTakeTurns(t *testing.T) {
	t.Parallel()
	s := newSite(t, soon)
	var over atomic.Bool
	admin := s.admin
	r := listen(t, func(n int, _ http.ResponseWriter, req *http.Request) {
		text := fmt.Sprint("one more after ", n)
		if req.URL.Path == "/busy" && !over.Load() {
			_, err := s.Update(context.WithoutCancel(t.Context()), admin, s.quiet.ID, webhook.Edit{Description: &text})
			if err != nil && !over.Load() {
				t.Error(err)
			}
		}
	})
	t.Cleanup(func() { over.Store(true) }) // before the receiver and the store are closed

	var busy [4]string // as many as may be in flight to one host; each one makes events for all
	for i := range busy {
		w, _ := s.create(webhook.Creation{URL: r.URL + "/busy", Types: onlyChanges})
		busy[i] = w.ID
	}
	s.happen(1)
	for _, id := range busy {
		s.until("the busy ones are far behind", func() bool { w := s.get(id); return w.Head-w.Cursor > 100 })
	}
	for _, org := range []string{"acme", "other"} {
		s.admin = accessOf(t, org)
		rare, _ := s.create(webhook.Creation{URL: r.URL + "/" + org, Types: onlyChanges})
		text := "new"
		if _, err := s.Update(t.Context(), s.admin, rare.ID, webhook.Edit{Description: &text}); err != nil {
			t.Fatal(err)
		}
		s.until("the one of "+org+" has its event", func() bool { return len(s.deliveries(rare.ID)) > 0 })
	}
}

// A receiver may ask for more time than the back-off.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	s := newSite(t, delivery.Retry{First: time.Second, Most: time.Hour})
	r := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1800")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	hook, _ := s.create(webhook.Creation{URL: r.URL, Types: onlyChanges})
	s.happen(1)
	var w webhook.Webhook
	s.until("it has failed", func() bool { w = s.get(hook.ID); return w.Attempts == 1 })
	if wait := w.NextAttemptAt.Sub(w.LastAttemptAt); wait != 30*time.Minute {
		t.Errorf("waits %s, want 30 minutes", wait)
	}
	// A new URL is tried at once.
	next := listen(t, nil)
	if _, err := s.Update(t.Context(), s.admin, hook.ID, webhook.Edit{URL: &next.URL}); err != nil {
		t.Fatal(err)
	}
	s.until("the new receiver has it", func() bool { return len(next.all()) == 2 })
	if next.ids()[0] != s.changes()[0] {
		t.Error("the new receiver did not get the event that had failed first")
	}
}

// A server that stops in the middle, or is down while events happen, loses nothing.
func TestARestartLosesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, soon)
	var mu sync.Mutex
	down := true
	r := listen(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if n > 2 && down {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	hook, _ := s.create(webhook.Creation{URL: r.URL, Types: onlyChanges})
	s.happen(6)
	s.until("the receiver is down", func() bool { return len(r.all()) > 3 })
	s.stop()
	mu.Lock()
	down = false
	mu.Unlock()
	before := len(r.all())
	// While no node delivers, something happens: a command on the server, or a node that ends then.
	st, err := store.Open(t.Context(), store.Options{Dir: s.dir})
	if err != nil {
		t.Fatal(err)
	}
	text := "by a command"
	command := webhook.NewService(webhook.Options{
		Store: st.Webhooks(), Log: st.Events(), CheckURL: func(string) error { return nil },
		Now: orgtest.Now, NewID: orgtest.NewID,
	})
	if _, err := command.Update(t.Context(), s.admin, s.quiet.ID, webhook.Edit{Description: &text}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.until("the rest has arrived", func() bool { w := s.get(hook.ID); return w.Cursor == w.Head && w.Cursor > 0 })
	want := s.changes()
	if got := r.ids()[before:]; len(want) != 7 || !slices.Equal(got, want[2:]) {
		t.Errorf("after the restart: %v, want %v", got, want[2:])
	}
}

func TestPing(t *testing.T) {
	t.Parallel()
	s := newSite(t, soon)
	r := listen(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n > 1 {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = io.WriteString(w, "hello")
	})
	hook, secret := s.create(webhook.Creation{URL: r.URL, State: webhook.Paused, Format: webhook.CloudEvents})
	if len(r.all()) != 0 {
		t.Error("a ping was sent without being asked for")
	}
	d, err := s.Ping(t.Context(), s.admin, hook.ID)
	if err != nil || d.Status != 200 || d.Outcome != delivery.Delivered || d.Response != "hello" ||
		d.Type != webhook.Ping {
		t.Errorf("ping = %+v, %v", d, err)
	}
	g := r.all()[0]
	verifier, err := standard.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.Verify(g.body, g.header); err != nil || !strings.Contains(string(g.body), "webhook.ping") ||
		!strings.HasPrefix(g.header.Get("Content-Type"), "application/cloudevents+json") {
		t.Errorf("ping %s %v: %v", g.body, g.header, err)
	}
	d, err = s.Ping(t.Context(), s.admin, hook.ID)
	if err != nil || d.Status != 418 || d.Outcome != delivery.Failed || d.Error == "" {
		t.Errorf("ping = %+v, %v; want a failure", d, err)
	}
	if list := s.deliveries(hook.ID); len(list) != 2 || list[0].ID != d.ID || s.get(hook.ID).Attempts != 0 {
		t.Errorf("deliveries = %+v, want both, without a failure of the webhook", list)
	}
}

// URLs are checked when they are set. Package outbound checks the addresses of names when it
// connects.
func TestPrivateAddressesAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, soon)
	for _, url := range []string{
		"http://a.example/", "https://10.0.0.1/", "https://localhost/", "http://[::1]/", "https://169.254.169.254/",
	} {
		_, _, err := s.Create(t.Context(), s.admin, webhook.Creation{URL: url})
		if err == nil || !strings.Contains(err.Error(), "--outbound-allow") {
			t.Errorf("%s: error = %v, want a refusal", url, err)
		}
		if _, err := s.Update(t.Context(), s.admin, s.quiet.ID, webhook.Edit{URL: &url}); err == nil {
			t.Errorf("%s: the URL of a webhook was changed to it", url)
		}
	}
}
