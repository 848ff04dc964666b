package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/sdk/client"
)

// eventLog is a log in memory, with events of any scope.
type eventLog struct {
	svc *event.Service

	mu     sync.Mutex
	events map[string][]event.Event // by org
	kept   int64
	first  atomic.Int64 // After of the first page that was read; -1: none
}

func newEventLog() *eventLog {
	l := &eventLog{kept: 1, events: map[string][]event.Event{}}
	l.first.Store(-1)
	l.svc = event.NewService(event.Options{
		Store: l, Now: utcNow, Stopping: make(chan struct{}), OnError: func(err error) { panic(err) },
	})
	return l
}

// add appends an event to the log of acme.
func (l *eventLog) add(t event.Type, subject string, s event.Scope) { l.addTo("acme", t, subject, s) }

func (l *eventLog) addTo(org string, t event.Type, subject string, s event.Scope) {
	l.mu.Lock()
	e := event.New(org, t, utcNow(), subject, "user:ada", s, json.RawMessage(`{"title":"Retry"}`))
	e.Seq = int64(len(l.events[org]) + 1)
	l.events[org] = append(l.events[org], e)
	l.mu.Unlock()
	l.svc.Changed(org)
}

func (l *eventLog) Page(_ context.Context, org string, q event.Query) (event.Page, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first.CompareAndSwap(-1, q.After)
	head := int64(len(l.events[org]))
	p := event.Page{Last: max(q.After, l.kept-1), Head: head, Kept: l.kept}
	if p.Missed = q.After > 0 && q.After < l.kept-1 || q.After > head; p.Missed {
		p.Last = l.kept - 1
	}
	for p.Last < head && len(p.Events) < q.Limit {
		e := l.events[org][p.Last]
		if p.Last++; q.Match(&e) {
			p.Events = append(p.Events, e)
		}
	}
	return p, nil
}

func (l *eventLog) PageBack(context.Context, string, event.BackQuery) (event.BackPage, error) {
	return event.BackPage{}, errors.ErrUnsupported // no tool reads backwards
}

func (l *eventLog) Head(_ context.Context, org string) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.events[org])), nil
}

func (l *eventLog) FirstSince(_ context.Context, org string, since time.Time) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events[org] {
		if e.Seq >= l.kept && !e.At.Before(since) {
			return e.Seq, nil
		}
	}
	return 0, nil
}

func (l *eventLog) Expire(context.Context, time.Time) (int, error)     { return 0, nil }
func (l *eventLog) IndexSubjects(context.Context, string) (int, error) { return 0, nil }

// eventWorld is a world whose log is in memory.
func eventWorld(t *testing.T, edit ...func(*httpx.Options, *Options)) (*world, *eventLog) {
	l := newEventLog()
	return newWorld(t, append(edit, func(_ *httpx.Options, o *Options) { o.Events = l.svc })...), l
}

func TestListEvents(t *testing.T) {
	t.Parallel()
	w, l := eventWorld(t)
	ada, root := w.session(w.member("acme", "user:ada")), w.session(w.key("acme", "user:root", identity.AllScopes...))
	l.add(event.ProposalSubmitted, "proposal:prop-1", event.Members)
	l.add(event.KeyCreated, "key:key-1", event.Admins)
	l.add(event.ProposalDrafted, "proposal:prop-2", event.Draft("user:eve"))
	l.add(event.ProposalVoted, "proposal:prop-1", event.Members)
	l.add(event.TaskCreated, "task:1", event.Only("user:ada"))
	for _, c := range []struct {
		name string
		as   *sdk.ClientSession
		args object
		seqs []int64
		last int64
		more bool
	}{
		{"all", ada, object{}, []int64{1, 4, 5}, 5, false},
		{"all, of an admin", root, object{}, []int64{1, 2, 3, 4, 5}, 5, false},
		{"after", ada, object{"after": 1}, []int64{4, 5}, 5, false},
		{"limit", ada, object{"limit": 1}, []int64{1}, 1, true},
		{"types", ada, object{"types": []string{"proposal.voted", "key.created"}}, []int64{4}, 5, false},
		{"subject", root, object{"subject": "proposal:prop-1"}, []int64{1, 4}, 5, false},
		{"from now on", ada, object{"since": "now"}, nil, 5, false},
		{"since a time", ada, object{"since": "2020-03-02T10:00:00Z"}, []int64{1, 4, 5}, 5, false},
		{"since the future", ada, object{"since": "2999-03-02T10:00:00Z"}, nil, 5, false},
		{"after, not since", ada, object{"since": "now", "after": 4}, []int64{5}, 5, false},
		{"nothing new", ada, object{"after": 5}, nil, 5, false},
	} {
		out := call[eventsOut](w, c.as, "list_events", c.args)
		var seqs []int64
		for _, e := range out.Events {
			seqs = append(seqs, e.Seq)
		}
		if !slices.Equal(seqs, c.seqs) || out.LastSeq != c.last || out.More != c.more || out.Reset || out.Events == nil {
			t.Errorf("%s: got %+v, want events %v, last_seq %d, more %v", c.name, out, c.seqs, c.last, c.more)
		}
	}
	e := call[eventsOut](w, ada, "list_events", object{"limit": 1}).Events[0]
	if e.Type != "proposal.submitted" || e.Subject != "proposal:prop-1" || e.Actor != "user:ada" || e.Version != 1 ||
		!strings.HasPrefix(e.ID, "evt-") || fmt.Sprint(e.Data) != "map[title:Retry]" {
		t.Errorf("event = %+v, want all members", e)
	}
	if out := call[eventsOut](w, ada, "list_events", object{"after": 99}); !out.Reset || len(out.Events) != 3 {
		t.Errorf("beyond the log: got %+v, want reset and all events", out)
	}
	if out := call[eventsOut](w, w.session(w.member("globex", "user:eve")), "list_events", nil); len(out.Events) != 0 {
		t.Errorf("events of another org = %+v, want none", out)
	}
	for name, at := range map[string]string{
		"after": "-1", "since": `"soon"`, "limit": "101", "types": `["x.y"]`, "subject": `""`,
	} {
		var v any
		if err := json.Unmarshal([]byte(at), &v); err != nil {
			t.Fatal(err)
		}
		f := w.fail(ada, "list_events", object{name: v})
		if f.Code != "request.invalid" || !slices.Equal(f.at, []string{"/" + name}) {
			t.Errorf("%s = %s: got %+v, want request.invalid at /%s", name, at, f, name)
		}
	}
	if f := w.fail(ada, "list_events", object{"since": ""}); !slices.Equal(f.at, []string{"/since"}) {
		t.Errorf("an empty since: got %+v, want an error at /since", f)
	}
	caller := w.session(w.key("acme", "user:caller", identity.A2AWrite))
	if f := w.fail(caller, "list_events", nil); f.Code != "auth.scope_missing" || f.Scope != "svc:tasks:read" {
		t.Errorf("without the scope: got %+v, want auth.scope_missing", f)
	}
}

// read reads the resource.
func (w *world) read(s *sdk.ClientSession) (out eventsOut) {
	w.Helper()
	res, err := s.ReadResource(w.Context(), &sdk.ReadResourceParams{URI: eventsURI})
	if err != nil {
		w.Fatal(err)
	}
	if res.CacheScope != "private" {
		w.Errorf("cacheScope = %q, want private: what a caller sees depends on its rights", res.CacheScope)
	}
	if err := json.Unmarshal([]byte(res.Contents[0].Text), &out); err != nil {
		w.Fatal(err)
	}
	return out
}

func TestEventsAreAResource(t *testing.T) {
	t.Parallel()
	w, l := eventWorld(t)
	ada := w.session(w.member("acme", "user:ada"))
	list, err := ada.ListResources(t.Context(), nil)
	if err != nil || len(list.Resources) != 1 || list.Resources[0].URI != eventsURI {
		t.Fatalf("resources = %+v, %v; want %s", list, err, eventsURI)
	}
	if out := w.read(ada); len(out.Events) != 0 || out.LastSeq != 0 {
		t.Errorf("of an empty log: got %+v", out)
	}
	// The newest events that the caller sees are among many that it does not see.
	for i := range 700 {
		scope := event.Admins
		if i%10 == 0 {
			scope = event.Members
		}
		l.add(event.ProposalVoted, fmt.Sprintf("proposal:prop-%d", i), scope)
	}
	out := w.read(ada)
	if len(out.Events) != newestEvents || out.LastSeq != 700 || out.More || out.Reset {
		t.Fatalf("got %d events, last_seq %d, more %v, reset %v; want %d, 700, false, false",
			len(out.Events), out.LastSeq, out.More, out.Reset, newestEvents)
	}
	for i, e := range out.Events {
		if want := int64(691 - 10*(newestEvents-1-i)); e.Seq != want {
			t.Fatalf("event %d has the number %d, want %d", i, e.Seq, want)
		}
	}
	_, err = w.session(w.key("acme", "user:caller", identity.A2AWrite)).
		ReadResource(t.Context(), &sdk.ReadResourceParams{URI: eventsURI})
	var refused *jsonrpc.Error
	if !errors.As(err, &refused) || !strings.Contains(string(refused.Data), "svc:tasks:read") {
		t.Errorf("without the scope: err = %v, want one that names the scope", err)
	}
}

// The search for events ends with the window of the resource, and does not begin with the oldest.
func TestTheResourceSearchesAWindow(t *testing.T) {
	t.Parallel()
	w, l := eventWorld(t)
	ada := w.session(w.member("acme", "user:ada"))
	const seen = 3000 - newestWindow // the last number before the window
	for i := range 3000 {
		scope := event.Admins
		if i+1 == seen || i == seen {
			scope = event.Members
		}
		l.add(event.ProposalVoted, "proposal:prop-1", scope)
	}
	out := w.read(ada)
	if len(out.Events) != 1 || out.Events[0].Seq != seen+1 || out.LastSeq != 3000 {
		t.Errorf("got %+v, want event %d", out, seen+1)
	}
	if first := l.first.Load(); first < 3000-newestEvents {
		t.Errorf("read the log after %d first, want its end", first)
	}
}

// subscriber is a client that counts notifications.
type subscriber struct {
	*sdk.ClientSession
	acked   chan struct{}
	updates chan string
}

func (w *world) subscriber(transport sdk.Transport, o *sdk.ClientSessionOptions) *subscriber {
	w.Helper()
	s := &subscriber{acked: make(chan struct{}, 1), updates: make(chan string, 100)}
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) {
			s.updates <- r.Params.URI
		},
	})
	c.AddReceivingMiddleware(onAck(func() { s.acked <- struct{}{} }))
	var err error
	if s.ClientSession, err = c.Connect(w.Context(), transport, o); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = s.Close() })
	return s
}

func (w *world) overHTTP(key string) *sdk.StreamableClientTransport {
	return &sdk.StreamableClientTransport{
		Endpoint: w.url + Path, MaxRetries: -1,
		HTTPClient: &http.Client{Transport: remoteClient(w, w.url, key).Transport()},
	}
}

// patience is how long the tests wait for what must happen.
const patience = 30 * time.Second

func (s *subscriber) updated(t *testing.T) {
	t.Helper()
	select {
	case uri := <-s.updates:
		if uri != eventsURI {
			t.Fatalf("updated %s, want %s", uri, eventsURI)
		}
	case <-time.After(patience):
		t.Fatal("no notification")
	}
}

// quiet fails if there is another notification soon.
func (s *subscriber) quiet(t *testing.T) {
	t.Helper()
	select {
	case <-s.updates:
		t.Error("got a notification, want none")
	case <-time.After(300 * time.Millisecond):
	}
}

func (s *subscriber) subscribe(t *testing.T) {
	t.Helper()
	if err := s.Subscribe(t.Context(), &sdk.SubscribeParams{URI: eventsURI}); err != nil {
		t.Fatal(err)
	}
}

// awaitAck waits until the subscription works: Subscribe does not wait.
func (s *subscriber) awaitAck(t *testing.T) {
	t.Helper()
	select {
	case <-s.acked:
	case <-time.After(patience):
		t.Fatal("the subscription was not acknowledged")
	}
}

func TestSubscribersAreNotified(t *testing.T) {
	t.Parallel()
	w, l := eventWorld(t)
	ada := w.subscriber(w.overHTTP(w.member("acme", "user:ada")), nil)
	root := w.subscriber(w.overHTTP(w.key("acme", "user:root", identity.AllScopes...)), nil)
	eve := w.subscriber(w.overHTTP(w.member("globex", "user:eve")), nil)
	if c := ada.InitializeResult().Capabilities; c.Resources == nil || !c.Resources.Subscribe {
		t.Errorf("capabilities = %+v, want resources with subscribe", c)
	}
	l.add(event.AgentPresence, "agent:fixer", event.Members) // before: not notified
	for _, s := range []*subscriber{ada, root, eve} {
		s.subscribe(t)
		s.awaitAck(t)
	}
	l.add(event.KeyCreated, "key:key-1", event.Admins)
	root.updated(t)
	l.add(event.ProposalVoted, "proposal:prop-1", event.Members)
	ada.updated(t)
	root.updated(t)
	// Each gets one notification of the next event, and nobody got one of what it does not see.
	l.add(event.ProposalVoted, "proposal:prop-1", event.Members)
	l.addTo("globex", event.ProposalVoted, "proposal:prop-2", event.Members)
	for _, s := range []*subscriber{ada, root, eve} {
		s.updated(t)
	}
	for _, s := range []*subscriber{ada, root, eve} {
		s.quiet(t)
	}
	if err := ada.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: eventsURI}); err != nil {
		t.Fatal(err)
	}
}

// listen is the request that opens a stream of notifications.
const listen = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":` +
	`{"resourceSubscriptions":["parley://events"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`

// open opens a stream of notifications.
func (w *world) open(ctx context.Context, secret string) *http.Response {
	w.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+Path, strings.NewReader(listen))
	if err != nil {
		w.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set("MCP-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", listenMethod)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	return res
}

// A stream does not show when events happen that its caller does not see.
func TestHiddenEventsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	w, l := eventWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	res := w.open(ctx, w.member("acme", "user:ada"))
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), ackMethod) {
	}
	for range 3 {
		l.add(event.KeyCreated, "key:key-1", event.Admins)
		time.Sleep(50 * time.Millisecond)
	}
	l.add(event.ProposalVoted, "proposal:prop-1", event.Members)
	for lines.Scan() && !strings.Contains(lines.Text(), "notifications/resources/updated") {
		if strings.HasPrefix(lines.Text(), ":") {
			t.Errorf("a comment came before the first event that the caller sees")
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestSubscriptionsAreBounded(t *testing.T) {
	t.Parallel()
	w, _ := eventWorld(t, func(h *httpx.Options, _ *Options) {
		h.Parked = httpx.ParkLimits{PerPrincipal: 1}
		h.Recheck = 20 * time.Millisecond
	})
	secret, id := w.orgs.Key("acme", "user:ada", identity.TasksRead)
	ada := w.subscriber(w.overHTTP(secret), nil)
	ada.subscribe(t)
	ada.awaitAck(t)
	headers := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"}
	res, body := w.post(secret, listen, headers...)
	if res.StatusCode != 429 || !strings.Contains(body, "stream.too_many") {
		t.Errorf("a second stream: got %d %s, want 429 stream.too_many", res.StatusCode, body)
	}
	other := w.key("acme", "user:caller", identity.A2AWrite)
	if res, body := w.post(other, listen, headers...); res.StatusCode != 403 || !strings.Contains(body, "svc:tasks:read") {
		t.Errorf("without the scope: got %d %s, want 403", res.StatusCode, body)
	}
	// A revoked key loses its stream: its place is free for another key of the principal.
	next, _ := w.orgs.Key("acme", "user:ada", identity.TasksRead)
	if err := w.operator.RevokeKey(t.Context(), "acme", id); err != nil {
		t.Fatal(err)
	}
	if err := w.auth.Refresh(t.Context()); err != nil { // as the server does every second
		t.Fatal(err)
	}
	until := time.Now().Add(patience)
	for {
		ctx, cancel := context.WithCancel(t.Context())
		res := w.open(ctx, next)
		status := res.StatusCode
		cancel()
		_ = res.Body.Close()
		if status == 200 {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("status = %d, want 200 after the key of the first stream was revoked", status)
		}
	}
}

// Without a session there is nothing to send notifications of older revisions on.
func TestOlderRevisionsCannotSubscribe(t *testing.T) {
	t.Parallel()
	w, _ := eventWorld(t)
	transport := w.overHTTP(w.member("acme", "user:ada"))
	transport.DisableStandaloneSSE = true
	old := w.subscriber(transport, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if c := old.InitializeResult().Capabilities; c.Resources == nil || c.Resources.Subscribe {
		t.Errorf("capabilities = %+v, want resources without subscribe", c)
	}
	if err := old.Subscribe(t.Context(), &sdk.SubscribeParams{URI: eventsURI}); err == nil {
		t.Error("Subscribe = nil, want an error")
	}
}

// parley mcp notifies its client in all revisions, since stdio has a session.
func TestForwardNotifiesSubscribers(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			w, l := eventWorld(t)
			l.add(event.ProposalSubmitted, "proposal:prop-1", event.Members)
			w.url = w.withFeed(l, 0)
			s, done := w.forwarded(revision)
			if c := s.InitializeResult().Capabilities; c.Resources == nil || !c.Resources.Subscribe {
				t.Errorf("capabilities = %+v, want resources with subscribe", c)
			}
			s.subscribe(t)
			if revision >= stepUp {
				s.awaitAck(t)
			}
			l.add(event.ProposalVoted, "proposal:prop-1", event.Members)
			s.updated(t)
			if out := w.read(s.ClientSession); out.LastSeq != 2 || len(out.Events) != 2 {
				t.Errorf("the resource = %+v, want both events", out)
			}
			l.add(event.ProposalVoted, "proposal:prop-1", event.Members)
			s.updated(t)
			s.quiet(t)
			if err := s.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "parley://else"}); err == nil && revision < stepUp {
				t.Error("Subscribe to another resource = nil, want an error")
			}
			_ = s.Close() // ends the input of Forward
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("Forward = %v, want nil", err)
				}
			case <-time.After(patience):
				t.Fatal("Forward does not end")
			}
		})
	}
}

// A subscription outlives a time in which the server refuses the stream. The client learns of the
// refusal once.
func TestForwardFollowsAgainAfterARefusal(t *testing.T) {
	t.Parallel()
	w, l := eventWorld(t)
	w.url = w.withFeed(l, 2)
	s, _ := w.forwarded("2025-11-25")
	s.subscribe(t)
	s.updated(t)
	l.add(event.ProposalSubmitted, "proposal:prop-1", event.Members)
	s.updated(t)
	l.add(event.ProposalVoted, "proposal:prop-1", event.Members)
	s.updated(t)
	s.quiet(t)
}

// forwarded returns a client of Forward, and its result.
func (w *world) forwarded(revision string) (*subscriber, <-chan error) {
	w.Helper()
	toServer, in := io.Pipe()
	out, fromServer := io.Pipe()
	done := make(chan error, 1)
	c, err := client.New(client.Config{URL: w.url, Key: w.member("acme", "user:ada"), Org: "acme"})
	if err != nil {
		w.Fatal(err)
	}
	go func() {
		err := Forward(w.Context(), Remote{Client: c}, toServer, fromServer)
		_ = fromServer.CloseWithError(io.EOF)
		done <- err
	}()
	o := &sdk.ClientSessionOptions{ProtocolVersion: revision}
	return w.subscriber(&sdk.IOTransport{Reader: out, Writer: in}, o), done
}

// withFeed returns a server that also serves the stream of the log, after so many refusals.
func (w *world) withFeed(l *eventLog, refusals int32) string {
	var asked atomic.Int32
	far, err := url.Parse(w.url)
	if err != nil {
		w.Fatal(err)
	}
	others := httputil.NewSingleHostReverseProxy(far)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/events") {
			others.ServeHTTP(rw, r)
			return
		}
		after := int64(0)
		_, _ = fmt.Sscan(r.URL.Query().Get("after"), &after)
		a := w.orgs.Admin("acme", identity.ReadEvents)
		if accept := r.Header.Get("Accept"); !strings.HasPrefix(accept, "text/event-stream") {
			w.Errorf("Accept: %s, want a stream", accept)
		}
		if asked.Add(1) <= refusals {
			rw.WriteHeader(http.StatusForbidden)
			return
		}
		rw.Header().Set("Content-Type", "text/event-stream")
		for item := range l.svc.Follow(r.Context(), a, event.Request{After: after}, time.Minute) {
			if item.Event != nil {
				fmt.Fprintf(rw, "id: %d\ndata: {\"seq\":%d}\n\n", item.Last, item.Last)
			}
			_ = http.NewResponseController(rw).Flush()
		}
	}))
	w.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL
}

func TestAnotherResourceIsNotFound(t *testing.T) {
	t.Parallel()
	w, _ := eventWorld(t)
	ada := w.session(w.member("acme", "user:ada"))
	if _, err := ada.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "parley://else"}); err == nil {
		t.Error("ReadResource = nil, want an error")
	}
}
