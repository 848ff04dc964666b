package rest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

// emit appends events to the log of acme.
func (w *world) emit(events ...event.Event) {
	w.tb.Helper()
	if err := w.store.Events().Append(context.Background(), events...); err != nil {
		w.tb.Fatal(err)
	}
}

// emptyLog deletes the events of acme, which the members of a world have caused, and returns the
// number of the last one.
func (w *world) emptyLog() int {
	w.tb.Helper()
	log := w.store.Events()
	for n := 1; n > 0; {
		var err error
		if n, err = log.Expire(context.Background(), time.Now().Add(time.Hour)); err != nil {
			w.tb.Fatal(err)
		}
	}
	page, err := log.Page(context.Background(), "acme", event.Query{Limit: 1})
	if err != nil {
		w.tb.Fatal(err)
	}
	return int(page.Head)
}

// happens returns an event in acme.
func happens(t event.Type, subject string, scope event.Scope) event.Event {
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	e := event.New("acme", t, at, subject, "user:ada", scope, []byte(`{"title":"Ünïcode \u2028 \"x\""}`))
	e.ID = "evt-1"
	return e
}

const eventsOfAcme = "/api/v1/orgs/acme/events"

func TestEventsOnTheWire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.member("acme", "user:ada")
	base := w.emptyLog()
	want := fmt.Sprintf(`{"events":[],"last_seq":%d}`, base)
	if got := w.do(ada, "GET", eventsOfAcme, "").want(200).Body; got != want {
		t.Errorf("an empty log is %s, want %s", got, want)
	}
	w.emit(happens(event.FrictionReported, `friction:a "b"`, event.Members))
	a := w.do(ada, "GET", eventsOfAcme, "").want(200)
	want = fmt.Sprintf(`{"events":[{"seq":%d,"id":"evt-1","type":"friction.reported",`+
		`"time":"2026-03-02T10:00:00.000000Z","subject":"friction:a \"b\"","actor":"user:ada",`+
		`"version":1,"data":{"title":"Ünïcode \u2028 \"x\""}}],`+
		`"last_seq":%d}`, base+1, base+1)
	if diff := cmp.Diff(want, a.Body); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
	if a.Header.Get("Content-Type") != "application/json" || a.Header.Get("Cache-Control") != "no-store" ||
		!slices.Contains(a.Header.Values("Vary"), "Accept") {
		t.Errorf("headers: %v", a.Header)
	}
}

func TestEventsAreFilteredAndPaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, admin := w.member("acme", "user:ada"), w.admin("acme", "user:root")
	base := w.emptyLog()
	w.emit(
		happens(event.ProposalDrafted, "proposal:1", event.Draft("user:ada")),
		happens(event.ProposalDrafted, "proposal:2", event.Draft("user:bob")),
		happens(event.ProposalSubmitted, "proposal:1", event.Members),
		happens(event.TaskCreated, "task:1", event.Only("user:ada")),
		happens(event.TaskCreated, "task:2", event.Only("user:bob")),
		happens(event.KeyCreated, "key:1", event.Admins),
		happens(event.ProposalVoted, "proposal:1", event.Members),
	)
	for _, c := range []struct{ key, query, want string }{
		{ada, "", "1 3 4 7 to 7"},
		{admin, "", "1 2 3 4 5 6 7 to 7"},
		{ada, "?after=%3", "4 7 to 7"},
		{ada, "?after=%7", " to 7"},
		{ada, "?after=%8", "1 3 4 7 to 7 reset"},
		{ada, "?after=0", "1 3 4 7 to 7 reset"}, // the log had other events
		{ada, "?since=now", " to 7"},
		{ada, "?since=2026-03-02T10:00:00Z", "1 3 4 7 to 7"},
		{ada, "?since=2026-03-02T11:00:00%2B01:00", "1 3 4 7 to 7"},
		{ada, "?since=2026-03-02T10:00:00.000000999Z", "1 3 4 7 to 7"},
		{ada, "?since=2026-03-02T10:00:00.000001Z", " to 7"},
		{ada, "?since=now&after=%3", "4 7 to 7"},
		{ada, "?limit=2", "1 3 to 3"},
		{ada, "?limit=2&after=%3", "4 7 to 7"},
		{admin, "?types=proposal.drafted,key.created", "1 2 6 to 7"},
		{ada, "?types=key.created", " to 7"},
		{ada, "?subject=proposal:1", "1 3 7 to 7"},
		{ada, "?subject=proposal:1&types=proposal.voted&after=%1", "7 to 7"},
	} {
		if before, after, ok := strings.Cut(c.query, "=%"); ok { // counted from the empty log on
			n, err := strconv.Atoi(after)
			if err != nil {
				t.Fatal(err)
			}
			c.query = before + "=" + strconv.Itoa(base+n)
		}
		var page EventPageSeen
		w.do(c.key, "GET", eventsOfAcme+c.query, "").want(200).into(&page)
		if got := page.since(base); got != c.want {
			t.Errorf("%s: got %q, want %q", c.query, got, c.want)
		}
	}
	w.do(w.member("globex", "user:eve"), "GET", eventsOfAcme, "").want(404)
}

// EventPageSeen is a page as a client decodes it.
type EventPageSeen struct {
	Events []struct {
		Seq int64 `json:"seq"`
	} `json:"events"`
	LastSeq int64 `json:"last_seq"`
	Reset   bool  `json:"reset"`
}

// since shows the numbers of a page, counted from base on.
func (p *EventPageSeen) since(base int) string {
	var seqs []string
	for _, e := range p.Events {
		seqs = append(seqs, fmt.Sprint(e.Seq-int64(base)))
	}
	out := strings.Join(seqs, " ") + " to " + fmt.Sprint(p.LastSeq-int64(base))
	if p.Reset {
		out += " reset"
	}
	return out
}

func TestEventRequestsAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.member("acme", "user:ada")
	for query, want := range map[string]string{
		"after=x": "query:after", "after=-1": "query:after", "after=9007199254740992": "query:after",
		"limit=0": "query:limit", "limit=101": "query:limit", "limit=x": "query:limit",
		"types=proposal.eaten": "query:types", "types=proposal.voted,": "query:types", "types=": "query:types",
		"subject=x": "query:subject", "subject=proposal:": "query:subject", "subject=cow:1": "query:subject",
		"page=1": "query:page",
	} {
		for _, accept := range []string{"application/json", "text/event-stream"} {
			p := w.do(ada, "GET", eventsOfAcme+"?"+query, "", "Accept", accept).want(422).problem()
			if got := at(p); !slices.Equal(got, []string{want}) {
				t.Errorf("%s (%s): errors at %v, want %s", query, accept, got, want)
			}
			if query == "types=proposal.eaten" && !strings.Contains(p.Detail, `"proposal.eaten"`) {
				t.Errorf("%q does not name the type", p.Detail)
			}
		}
	}
	for _, since := range []string{
		"yesterday", "NOW", "2026-03-02", "2026-13-02T10:00:00Z", "2026-02-30T10:00:00Z", "5m",
	} {
		p := w.do(ada, "GET", eventsOfAcme+"?since="+since, "").want(422).problem()
		if got := at(p); !slices.Equal(got, []string{"query:since"}) {
			t.Errorf("since=%s: errors at %v", since, got)
		} else if !strings.Contains(p.Detail, "now") {
			t.Errorf("since=%s: %q does not say what is allowed", since, p.Detail)
		}
	}
	for _, id := range []string{"x", "-1", "1.5", "99999999999999999999"} {
		p := w.do(ada, "GET", eventsOfAcme, "", "Accept", "text/event-stream", "Last-Event-ID", id).want(422).problem()
		if got := at(p); !slices.Equal(got, []string{"header:Last-Event-ID"}) {
			t.Errorf("Last-Event-ID %s: errors at %v", id, got)
		}
		w.do(ada, "GET", eventsOfAcme, "", "Last-Event-ID", id).want(200) // means nothing for a page
	}
}

func TestWhoWantsAStream(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/*": false, "text/html": false, ";;": false,
		"text/event-stream": true, "Text/Event-Stream; charset=utf-8": true, "text/event-stream;q=0.1": true,
		"text/event-stream, application/json": false, "application/json, text/event-stream": false,
		"application/json;q=0.5, text/event-stream": true, "application/json;q=0, text/event-stream;q=0.1": true,
		// Of two that are equal, the one that is named wins over a wildcard.
		"text/event-stream, */*": true, "text/event-stream, application/*": true, "text/event-stream, text/*": true,
		"text/event-stream;q=0.5, */*": false, "text/event-stream;q=0.5, application/*;q=0.6": false,
		"text/event-stream;q=0.5, application/json;q=0.1, */*": true, "text/event-stream;q=0.5, application/*;q=0, */*": true,
		"text/event-stream;q=NaN": false, "text/event-stream, application/json;q=NaN": true,
		"application/json, text/event-stream;q=0.5": false, "text/event-stream;q=0": false, "text/event-stream;q=x": false,
	} {
		if got := wantsStream([]string{accept}); got != want {
			t.Errorf("%q: %v, want %v", accept, got, want)
		}
	}
}

func TestALongPollWaitsForEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *httpx.Options, _ *Options) { o.Parked = httpx.ParkLimits{PerPrincipal: 1} })
	ada := w.member("acme", "user:ada")
	base := w.emptyLog()
	after := fmt.Sprintf("?after=%d", base+1)
	w.emit(happens(event.ProposalVoted, "proposal:1", event.Members))
	a := w.do(ada, "GET", eventsOfAcme, "", "Prefer", "wait=600").want(200)
	if got := a.Header.Get("Preference-Applied"); got != "wait=60" {
		t.Errorf("Preference-Applied: %q, want wait=60", got)
	}
	a = w.do(ada, "GET", eventsOfAcme+after, "", "Prefer", "wait=soon").want(200)
	if got := a.Header.Get("Preference-Applied"); got != "" {
		t.Errorf("Preference-Applied: %q, want none", got)
	}
	polls := make(chan *answer, 2)
	for range 2 { // one more than may wait
		go func() { polls <- w.do(ada, "GET", eventsOfAcme+after, "", "Prefer", "wait=30") }()
	}
	if p := (<-polls).want(429).problem(); p.Code != "wait.too_many" {
		t.Errorf("got %s, want wait.too_many", p.Code)
	}
	w.emit(happens(event.ProposalVoted, "proposal:1", event.Members))
	var page EventPageSeen
	a = (<-polls).want(200)
	a.into(&page)
	if got := page.since(base); got != "2 to 2" || a.Header.Get("Preference-Applied") != "wait=30" {
		t.Errorf("got %s %v, want 2 to 2", got, a.Header)
	}
}

// gate is an authenticator that can change its mind.
type gate struct {
	httpx.Authenticator
	mu     sync.Mutex
	change func(*identity.Caller) error
}

func (g *gate) Authenticate(ctx context.Context, secret string) (*identity.Caller, error) {
	c, err := g.Authenticator.Authenticate(ctx, secret)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil && g.change != nil {
		changed := *c
		c, err = &changed, g.change(&changed)
	}
	return c, err
}

func (g *gate) set(change func(*identity.Caller) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.change = change
}

func demote(c *identity.Caller) error {
	c.Scopes = identity.Scopes{identity.TasksRead}
	return nil
}

func refuse(*identity.Caller) error { return identity.ErrMissing }

func TestALongPollEndsWithTheRightsOfItsCaller(t *testing.T) {
	t.Parallel()
	g := &gate{}
	w := newWorld(t, func(o *httpx.Options, _ *Options) {
		g.Authenticator, o.Authenticator, o.Recheck = o.Authenticator, g, time.Millisecond
	})
	admin := w.admin("acme", "user:root")
	base := w.emptyLog()
	polls := make(chan *answer, 1)
	poll := func() {
		g.set(nil)
		parked := make(chan struct{})
		g.set(func(*identity.Caller) error { // the second time is a recheck: the request waits
			select {
			case <-parked:
			default:
				g.change = func(*identity.Caller) error {
					g.change = nil
					close(parked)
					return nil
				}
			}
			return nil
		})
		go func() { polls <- w.do(admin, "GET", eventsOfAcme, "", "Prefer", "wait=30") }()
		<-parked
	}
	poll()
	g.set(refuse)
	(<-polls).want(401)
	poll()
	g.set(demote)
	w.emit(happens(event.KeyCreated, "key:1", event.Admins))
	var page EventPageSeen
	(<-polls).want(200).into(&page)
	if got := page.since(base); got != " to 1" {
		t.Errorf("a caller that is no longer an admin got %s", got)
	}
}

// stream is a stream over a real connection.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
	res   *http.Response
}

// open opens a stream. headers are pairs of name and value.
func open(t *testing.T, url, secret string, headers ...string) *stream {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set("Accept", "text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return &stream{t, bufio.NewScanner(res.Body), res}
}

// block returns the lines up to the next blank one, joined with |, or "end".
func (s *stream) block() string {
	s.t.Helper()
	var lines []string
	for s.lines.Scan() {
		if s.lines.Text() == "" {
			return strings.Join(lines, "|")
		}
		lines = append(lines, s.lines.Text())
	}
	return "end"
}

func (s *stream) want(blocks ...string) {
	s.t.Helper()
	for _, want := range blocks {
		if got := s.block(); got != want {
			s.t.Fatalf("got %s\nwant %s", got, want)
		}
	}
}

// serve makes a world with a real listener.
func serve(t *testing.T, edit ...func(*httpx.Options, *Options)) (*world, string) {
	t.Helper()
	w := newWorld(t, edit...)
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	t.Cleanup(w.tasks.Stop) // ends the streams
	return w, server.URL + eventsOfAcme
}

// sent is the block of an event of happens.
func sent(seq int, t event.Type, subject string) string {
	return fmt.Sprintf(`id: %d|event: %s|data: {"seq":%d,"id":"evt-1","type":%q,"time":"2026-03-02T10:00:00.000000Z",`+
		`"subject":%q,"actor":"user:ada","version":1,"data":{"title":"Ünïcode \u2028 \"x\""}}`, seq, t, seq, t, subject)
}

func TestAStreamOfEvents(t *testing.T) {
	t.Parallel()
	w, url := serve(t)
	ada := w.member("acme", "user:ada")
	base := w.emptyLog()
	w.emit(
		happens(event.ProposalSubmitted, "proposal:1", event.Members),
		happens(event.ProposalVoted, "proposal:1", event.Members),
	)
	all := open(t, url, ada)
	if h := all.res.Header; all.res.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream" ||
		h.Get("Cache-Control") != "no-store" {
		t.Errorf("got %d %v", all.res.StatusCode, h)
	}
	first, second := sent(base+1, event.ProposalSubmitted, "proposal:1"), sent(base+2, event.ProposalVoted, "proposal:1")
	all.want(first, second)
	header := open(t, url+"?after=0", ada, "Last-Event-ID", strconv.Itoa(base+1)) // the header wins
	header.want(second)
	votes := open(t, url+fmt.Sprintf("?types=proposal.voted&after=%d", base+1), ada)
	votes.want(second)
	w.emit(happens(event.ProposalEdited, "proposal:1", event.Members), happens(event.KeyCreated, "key:1", event.Admins))
	w.emit(happens(event.ProposalVoted, "proposal:2", event.Members))
	third := sent(base+5, event.ProposalVoted, "proposal:2")
	all.want(sent(base+3, event.ProposalEdited, "proposal:1"), third)
	header.want(sent(base+3, event.ProposalEdited, "proposal:1"), third)
	votes.want(third)
	reset := open(t, url, ada, "Last-Event-ID", strconv.Itoa(base+6))
	reset.want(fmt.Sprintf(`id: %d|event: reset|data: {"last_seq":%d}`, base, base), first, second)
	w.tasks.Stop()
	votes.want(fmt.Sprintf(":|id: %d", base+5), "retry: 1000", "end")
}

// A stream that begins at the end of the log says at once where that is: a client that loses the
// connection before the first event continues there.
func TestAStreamFromNowOn(t *testing.T) {
	t.Parallel()
	w, url := serve(t)
	ada := w.member("acme", "user:ada")
	base := w.emptyLog()
	w.emit(happens(event.ProposalSubmitted, "proposal:1", event.Members))
	now, later := open(t, url+"?since=now", ada), open(t, url+"?since=2026-03-02T10:00:01Z", ada)
	now.want(fmt.Sprintf(":|id: %d", base+1))
	later.want(fmt.Sprintf(":|id: %d", base+1))
	past := open(t, url+"?since=2026-03-02T10:00:00Z", ada)
	past.want(sent(base+1, event.ProposalSubmitted, "proposal:1"))
	w.emit(happens(event.ProposalVoted, "proposal:1", event.Members))
	second := sent(base+2, event.ProposalVoted, "proposal:1")
	for _, s := range []*stream{now, later, past} {
		s.want(second)
	}
	again := open(t, url+"?since=now", ada, "Last-Event-ID", strconv.Itoa(base+1)) // a browser repeats the URL
	again.want(second)
	zero := open(t, url, ada, "Last-Event-ID", "0")
	zero.want(fmt.Sprintf(`id: %d|event: reset|data: {"last_seq":%d}`, base, base))
}

// TestAnIdleStreamMovesOn: a filter that selects nothing still gets the position, so that the
// client need not begin anew.
func TestAnIdleStreamMovesOn(t *testing.T) {
	t.Parallel()
	w, url := serve(t, func(_ *httpx.Options, o *Options) { o.KeepAlive = 10 * time.Millisecond })
	ada := w.member("acme", "user:ada")
	base := w.emptyLog()
	before, after := fmt.Sprintf(":|id: %d", base), fmt.Sprintf(":|id: %d", base+1)
	votes := open(t, url+"?types=proposal.voted", ada)
	votes.want(before)
	w.emit(happens(event.ProposalEdited, "proposal:1", event.Members))
	for got := ""; got != after; {
		if got = votes.block(); got != before && got != after {
			t.Fatalf("got %s, want a position", got)
		}
	}
}

func TestAStreamEndsWithTheRightsOfItsCaller(t *testing.T) {
	t.Parallel()
	g := &gate{}
	w, url := serve(t, func(ho *httpx.Options, o *Options) {
		g.Authenticator, ho.Authenticator, o.Recheck = ho.Authenticator, g, 10*time.Millisecond
	})
	admin := w.admin("acme", "user:root")
	base := w.emptyLog()
	w.emit(happens(event.ProposalVoted, "proposal:1", event.Members))
	revoked := open(t, url, admin)
	revoked.want(sent(base+1, event.ProposalVoted, "proposal:1"))
	g.set(refuse)
	last := revoked.block()
	if !strings.HasPrefix(last, fmt.Sprintf(`id: %d|event: error|data: {`, base+1)) ||
		!strings.Contains(last, `"status":401`) ||
		!strings.Contains(last, `"code":"auth.missing"`) {
		t.Errorf("the stream of a revoked key ended with %s", last)
	}
	revoked.want("end")
	g.set(nil)
	demoted := open(t, url, admin)
	demoted.want(sent(base+1, event.ProposalVoted, "proposal:1"))
	g.set(demote)
	demoted.want(fmt.Sprintf(":|id: %d", base+1), "retry: 1000", "end") // it connects again, and sees less
}

// brokenLog is a log that can be read only a few times.
type brokenLog struct {
	event.Store
	reads atomic.Int32 // that succeed
	asked chan event.Query
}

func (l *brokenLog) service(t *testing.T) *event.Service {
	stopping := make(chan struct{})
	t.Cleanup(func() { close(stopping) })
	return event.NewService(event.Options{
		Store: l, Now: utcNow, Stopping: stopping, OnError: func(err error) { t.Log(err) },
	})
}

func (l *brokenLog) Page(ctx context.Context, org string, q event.Query) (event.Page, error) {
	select {
	case l.asked <- q:
	default:
	}
	if l.reads.Add(-1) < 0 {
		return event.Page{}, errors.New("the disk is gone")
	}
	return l.Store.Page(ctx, org, q)
}

// TestAStreamOutlivesAnErrorOfTheStore: the client continues with another connection.
func TestAStreamOutlivesAnErrorOfTheStore(t *testing.T) {
	t.Parallel()
	l := &brokenLog{}
	l.reads.Store(1)
	w, url := serve(t, func(_ *httpx.Options, o *Options) { o.Events = l.service(t) })
	ada := w.member("acme", "user:ada")
	base := w.emptyLog()
	l.Store = w.store.Events()
	for range event.MaxLimit + 1 { // more than one read
		w.emit(happens(event.ProposalVoted, "proposal:1", event.Members))
	}
	s := open(t, url, ada)
	for i := range event.MaxLimit {
		s.want(sent(base+1+i, event.ProposalVoted, "proposal:1"))
	}
	s.want(fmt.Sprintf(":|id: %d", base+event.MaxLimit), "retry: 1000", "end")
	if s = open(t, url, ada); s.res.StatusCode != 500 {
		t.Errorf("a stream that cannot begin: got %d, want 500", s.res.StatusCode)
	}
}

// TestALongPollReadsNothingTwice: it goes on where its first page ended.
func TestALongPollReadsNothingTwice(t *testing.T) {
	t.Parallel()
	l := &brokenLog{asked: make(chan event.Query, 2)}
	l.reads.Store(100)
	w := newWorld(t, func(_ *httpx.Options, o *Options) { o.Events = l.service(t) })
	ada := w.member("acme", "user:ada")
	base := w.emptyLog()
	l.Store = w.store.Events()
	w.emit(happens(event.ProposalVoted, "proposal:1", event.Members))
	a := w.do(ada, "GET", eventsOfAcme+"?types=proposal.edited", "", "Prefer", "wait=1").want(200)
	if want := fmt.Sprintf(`{"events":[],"last_seq":%d}`, base+1); a.Body != want {
		t.Errorf("got %s, want %s", a.Body, want)
	}
	if first, second := <-l.asked, <-l.asked; first.After != 0 || second.After != int64(base+1) {
		t.Errorf("read after %d and %d, want 0 and %d", first.After, second.After, base+1)
	}
}

func TestTooManyStreams(t *testing.T) {
	t.Parallel()
	w, url := serve(t, func(o *httpx.Options, _ *Options) {
		o.MaxRequests, o.Parked = 4, httpx.ParkLimits{PerPrincipal: 20}
	})
	ada := w.member("acme", "user:ada")
	for range 20 { // an open stream takes no slot of the requests that are worked on
		if s := open(t, url, ada); s.res.StatusCode != 200 {
			t.Fatalf("status %d: %s", s.res.StatusCode, s.block())
		}
	}
	if s := open(t, url, ada); s.res.StatusCode != 429 || s.res.Header.Get("Retry-After") == "" {
		t.Errorf("status %d, want 429: %s", s.res.StatusCode, s.block())
	}
	if s := open(t, url, w.member("acme", "user:bob")); s.res.StatusCode != 200 {
		t.Errorf("status %d, want 200 for another caller", s.res.StatusCode)
	}
}

// BenchmarkPages compares a page of 100 events with a page of 100 proposals that is not cached.
func BenchmarkPages(b *testing.B) {
	w := newWorld(b, func(_ *httpx.Options, o *Options) { o.PageCacheBytes = -1 })
	ada := w.member("acme", "user:ada")
	for range 100 {
		p := w.submit(ada, "acme")
		e := happens(event.ProposalSubmitted, "proposal:"+p.ID, event.Members)
		e.Data = encodeRecord(p)
		w.emit(e)
	}
	for name, target := range map[string]string{
		"proposals": "/api/v1/orgs/acme/proposals?limit=100", "events": eventsOfAcme + "?limit=100",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w.do(ada, "GET", target, "").want(200)
			}
		})
	}
}
