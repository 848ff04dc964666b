package web_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/orgtest"
	"github.com/parley-dev/parley/internal/task"
)

// liveReader reads a stream over a real connection.
type liveReader struct {
	tb    testing.TB
	res   *http.Response
	lines *bufio.Scanner
}

// liveMessage is a message of a stream; the zero value is its end.
type liveMessage struct{ id, name, data string }

// liveHint is the data of a change.
type liveHint struct {
	Seq      int64    `json:"seq"`
	Types    []string `json:"types"`
	Subjects []string `json:"subjects"`
}

// listen serves the office on a real port, and returns its URL.
func listen(o *office) string {
	server := httptest.NewServer(o.handler)
	o.Cleanup(server.Close)
	o.Cleanup(o.Tasks.Stop) // ends the streams
	return server.URL
}

// follow opens the stream of acme. headers are pairs of name and value.
func (v *visitor) follow(base, query string, headers ...string) *liveReader {
	v.tb.Helper()
	req, err := http.NewRequestWithContext(v.tb.Context(), http.MethodGet, base+"/orgs/acme/live"+query, nil)
	if err != nil {
		v.tb.Fatal(err)
	}
	if v.cookie != nil {
		req.AddCookie(v.cookie)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		v.tb.Fatal(err)
	}
	v.tb.Cleanup(func() { _ = res.Body.Close() })
	return &liveReader{v.tb, res, bufio.NewScanner(res.Body)}
}

// next returns the next message, without comments.
func (l *liveReader) next() liveMessage {
	l.tb.Helper()
	var m liveMessage
	for l.lines.Scan() {
		name, value, _ := strings.Cut(l.lines.Text(), ": ")
		switch name {
		case "id":
			m.id = value
		case "event":
			m.name = value
		case "data":
			m.data = value
		case "":
			if m.name != "" {
				return m
			}
		}
	}
	return liveMessage{}
}

// want fails unless the next message has the name.
func (l *liveReader) want(name string) liveMessage {
	l.tb.Helper()
	if l.res.StatusCode != http.StatusOK {
		l.tb.Fatalf("status %d, want a stream", l.res.StatusCode)
	}
	m := l.next()
	if m.name != name {
		l.tb.Fatalf("got %+v, want %q", m, name)
	}
	return m
}

// until skips messages up to one with the name.
func (l *liveReader) until(name string) {
	l.tb.Helper()
	for m := l.next(); m.name != name; m = l.next() {
		if m == (liveMessage{}) {
			l.tb.Fatalf("the stream ended, want %q", name)
		}
	}
}

// change reads changes until one has the number.
func (l *liveReader) change(upTo int64) (types, subjects []string, messages int) {
	l.tb.Helper()
	for {
		var h liveHint
		m := l.want("change")
		if err := json.Unmarshal([]byte(m.data), &h); err != nil || m.id != strconv.FormatInt(h.Seq, 10) {
			l.tb.Fatalf("got %+v, %v; want a hint with its number", m, err)
		}
		messages++
		types, subjects = append(types, h.Types...), append(subjects, h.Subjects...)
		if h.Seq >= upTo {
			return types, subjects, messages
		}
	}
}

// happen appends events to the log of acme, and returns the number of the last one.
func (o *office) happen(events ...event.Event) int64 {
	o.Helper()
	if err := o.Store.Events().Append(o.Context(), events...); err != nil {
		o.Fatal(err)
	}
	return o.head()
}

func (o *office) head() int64 {
	o.Helper()
	n, err := o.Store.Events().Head(o.Context(), "acme")
	if err != nil {
		o.Fatal(err)
	}
	return n
}

func happened(t event.Type, subject string, scope event.Scope) event.Event {
	return event.New("acme", t, orgtest.Now(), subject, "user:ada", scope, []byte("{}"))
}

func TestLiveShowsWhatTheMemberMaySee(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	base := listen(o)
	admin, member := o.ada.follow(base, ""), o.bob.follow(base, "")
	if h := admin.res.Header; h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v, want a stream that is not stored", h)
	}
	admin.want("hello")
	member.want("hello")
	last := o.happen(
		happened(event.KeyCreated, "key:1", event.Admins),
		happened(event.TaskCreated, "task:1", event.Only("user:bob")),
		happened(event.TaskCreated, "task:2", event.Only("agent:scout")),
		happened(event.ProposalVoted, "proposal:1", event.Members),
	)
	_, subjects, _ := admin.change(last)
	slices.Sort(subjects)
	if want := []string{"key:1", "proposal:1", "task:1", "task:2"}; !slices.Equal(subjects, want) {
		t.Errorf("an admin got %q, want %q", subjects, want)
	}
	types, subjects, _ := member.change(last)
	slices.Sort(subjects)
	if want := []string{"proposal:1", "task:1"}; !slices.Equal(subjects, want) {
		t.Errorf("a member got %q, want %q", subjects, want)
	}
	if want := []string{"proposal.voted", "task.created"}; !slices.Equal(slices.Sorted(slices.Values(types)), want) {
		t.Errorf("a member got the types %q, want %q", types, want)
	}
}

func TestLiveIsRefused(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	nobody := &visitor{tb: t, site: o}
	for _, c := range []struct {
		who  *visitor
		path string
		code int
	}{
		{nobody, "/orgs/acme/live", http.StatusUnauthorized},
		{o.eve, "/orgs/acme/live", http.StatusNotFound},
		{o.ada, "/orgs/globex/live", http.StatusNotFound},
		{o.ada, "/orgs/acme/live?after=x", http.StatusUnprocessableEntity},
		{o.ada, "/orgs/acme/live?after=-1", http.StatusUnprocessableEntity},
		{o.ada, "/orgs/acme/live?task=nobody/1", http.StatusNotFound},
		{o.ada, "/orgs/acme/live?task=scout/unknown", http.StatusNotFound},
		{o.ada, "/orgs/acme/live?task=scout", http.StatusNotFound},
	} {
		if w := o.visit(c.who.cookie, http.MethodGet, c.path, nil); w.Code != c.code ||
			!strings.HasPrefix(w.Header().Get("Content-Type"), "application/problem+json") {
			t.Errorf("%s: got %d %s, want %d", c.path, w.Code, w.Body, c.code)
		}
	}
	if w := o.visit(o.ada.cookie, http.MethodHead, "/orgs/acme/live", nil); w.Code != http.StatusOK || w.Body.Len() > 0 {
		t.Errorf("HEAD: got %d %s, want only the headers", w.Code, w.Body)
	}
}

func TestLiveContinues(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	base := listen(o)
	page := o.ada.get("/proposals").want(http.StatusOK)
	before := o.head()
	page.want(http.StatusOK, fmt.Sprintf(`data-live-stream="/orgs/acme/live" data-live-after="%d"`, before))
	last := o.happen(
		happened(event.ProposalVoted, "proposal:1", event.Members),
		happened(event.ProposalVoted, "proposal:2", event.Members),
	)
	after := strconv.FormatInt(before, 10)
	for name, l := range map[string]*liveReader{
		"after":         o.ada.follow(base, "?after="+after),
		"Last-Event-ID": o.ada.follow(base, "?after=0", "Last-Event-ID", after), // a browser repeats its URL
	} {
		l.want("hello")
		if _, subjects, _ := l.change(last); !slices.Equal(subjects, []string{"proposal:1", "proposal:2"}) {
			t.Errorf("%s: got %q, want what happened since", name, subjects)
		}
	}
	lost := o.ada.follow(base, "?after="+strconv.FormatInt(last+100, 10)) // of a log that was restored
	lost.want("hello")
	if types, subjects, _ := lost.change(0); types[0] != "*" || subjects[0] != "*" {
		t.Errorf("got %q %q, want that anything may have changed", types, subjects)
	}
}

// TestLiveEndsWithTheSession: a message tells the page why.
func TestLiveEndsWithTheSession(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(o *office){
		"signed out": func(o *office) { o.visit(o.bob.cookie, http.MethodPost, "/logout", nil) },
		"disabled":   func(o *office) { o.ada.post("/members/user:bob", "change", "disable").want(http.StatusSeeOther) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			base := listen(o)
			bob, ada := o.bob.follow(base, ""), o.ada.follow(base, "")
			bob.want("hello")
			ada.want("hello")
			end(o)
			bob.want("signed-out")
			if m := bob.next(); m != (liveMessage{}) {
				t.Errorf("got %+v, want the end", m)
			}
			ada.change(o.happen(happened(event.ProposalVoted, "proposal:1", event.Members)))
		})
	}
}

// TestLiveEndsWithTheRole: the page is told to look again, and the browser connects again with the
// new role.
func TestLiveEndsWithTheRole(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	base := listen(o)
	bob := o.bob.follow(base, "")
	bob.want("hello")
	o.ada.post("/members/user:bob", "change", "make-admin").want(http.StatusSeeOther)
	m := bob.want("change")
	if want := `{"seq":0,"types":["*"],"subjects":["*"]}`; m.data != want || m.id != "" {
		t.Errorf("got %+v, want %s without a number", m, want)
	}
	if m := bob.next(); m != (liveMessage{}) {
		t.Errorf("got %+v, want the end", m)
	}
}

// TestLiveKeepsNoSessionAlive: neither the stream nor the requests of the script extend it, and
// they leave the message of the last form to the next page.
func TestLiveKeepsNoSessionAlive(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	base := listen(o)
	o.ada.post("/followups", "title", "By hand").want(http.StatusSeeOther)
	l := o.ada.follow(base, "")
	l.want("hello")
	r := httptest.NewRequest(http.MethodGet, "/orgs/acme/followups", nil)
	r.AddCookie(o.ada.cookie)
	r.Header.Set("Parley-Live", "1")
	w := httptest.NewRecorder()
	o.handler.ServeHTTP(w, r)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "By hand") {
		t.Fatalf("got %d, want the page", w.Code)
	}
	for name, h := range map[string]http.Header{"stream": l.res.Header, "page": w.Header()} {
		if c := h.Get("Set-Cookie"); c != "" {
			t.Errorf("the %s sets the cookie %s, want none", name, c)
		}
	}
	if next := o.ada.get("/followups"); !strings.Contains(next.body, "notice ok") {
		t.Errorf("the next page has lost the message of the form: %s", next.main())
	}
	nobody := httptest.NewRequest(http.MethodGet, "/orgs/acme/followups", nil)
	nobody.Header.Set("Parley-Live", "1")
	w = httptest.NewRecorder()
	o.handler.ServeHTTP(w, nobody)
	if w.Code != http.StatusUnauthorized {
		t.Errorf("signed out: got %d, want 401 for a script", w.Code)
	}
}

// TestLiveCollectsBursts: 2,000 events cost few messages, and none is forgotten.
func TestLiveCollectsBursts(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	l := o.bob.follow(listen(o), "")
	l.want("hello")
	start := time.Now()
	var last int64
	for n := range 361 {
		size := 5
		if n == 360 {
			size = 200 // more than one hint names
		}
		burst := make([]event.Event, size)
		for i := range burst {
			burst[i] = happened(event.ProposalVoted, fmt.Sprintf("proposal:%d-%d", n, i), event.Members)
		}
		burst[0].Type = event.ProposalEdited
		last = o.happen(burst...)
	}
	types, subjects, messages := l.change(last)
	if most := 2 + int(time.Since(start)/(100*time.Millisecond)); messages > most {
		t.Errorf("got %d messages, want at most %d", messages, most)
	}
	for _, want := range []string{"proposal.edited", "proposal.voted"} {
		if !slices.Contains(types, want) {
			t.Errorf("got the types %q, want %s among them", types, want)
		}
	}
	if !slices.Contains(subjects, "*") {
		t.Errorf("got %q, want * for more than 50", subjects)
	}
}

func TestLiveFollowsATask(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	base := listen(o)
	to := o.bob.post("/agents/scout/tasks", "message", "Look at this.").want(http.StatusSeeOther).header.Get("Location")
	id := to[strings.LastIndex(to, "/")+1:]
	l := o.bob.follow(base, "?task=scout/"+id)
	l.want("hello")
	first := l.want("task") // it may have changed since the page was made
	if want := fmt.Sprintf(`{"task":"scout/%s"}`, id); first.data != want || first.id != "" {
		t.Errorf("got %+v, want %s without a number", first, want)
	}
	post, token := o.claim()
	l.until("task") // it is working
	for range 3 {
		_, err := o.Tasks.Report(t.Context(), post, token, task.Report{Artifacts: []task.ArtifactUpdate{{
			Artifact: task.Artifact{ID: "out", Parts: []task.Part{{Kind: task.TextPart, Text: "more"}}}, Append: true,
		}}})
		if err != nil {
			t.Fatal(err)
		}
		l.until("task")
	}
	if l := o.ada.follow(base, "?task=scout/"+id); l.res.StatusCode != http.StatusNotFound {
		t.Errorf("status %d, want 404 for the task of another sender, as on its page", l.res.StatusCode)
	}

	// Admins follow it by its uid, as on its timeline.
	found := regexp.MustCompile(`data-key="([0-9a-z]{26})"`).FindStringSubmatch(o.ada.get("/tasks").want(http.StatusOK).body)
	if found == nil {
		t.Fatal("the task is not listed")
	}
	uid := found[1]
	timeline := o.ada.follow(base, "?task="+uid)
	timeline.want("hello")
	if got := timeline.want("task"); got.data != `{"task":"`+uid+`"}` {
		t.Errorf("got %+v, want the uid", got)
	}
	if _, err := o.Tasks.Report(t.Context(), post, token, task.Report{State: task.Working, Message: &task.Message{
		Role: task.RoleAgent, Parts: []task.Part{{Kind: task.TextPart, Text: "half"}},
	}}); err != nil {
		t.Fatal(err)
	}
	timeline.until("task")
	for who, want := range map[*visitor]int{o.bob: http.StatusForbidden, o.eve: http.StatusNotFound} {
		if l := who.follow(base, "?task="+uid); l.res.StatusCode != want {
			t.Errorf("status %d, want %d", l.res.StatusCode, want)
		}
	}
}

// claim lets a worker of scout claim the next task.
func (o *office) claim() (post dispatch.Post, token string) {
	o.Helper()
	secret, _ := o.Key("acme", "service:worker", "svc:a2a:serve", "agent:scout")
	c, err := o.Auth.Authenticate(o.Context(), secret)
	if err != nil {
		o.Fatal(err)
	}
	if post, err = o.Tasks.Serve(o.Context(), c, "scout"); err != nil {
		o.Fatal(err)
	}
	got, err := o.Tasks.Claim(o.Context(), post, dispatch.ClaimRequest{
		Worker: "w", Max: 1, Wait: 10 * time.Second, Lease: time.Minute, Capacity: 1,
	})
	if err != nil || len(got.Assignments) != 1 {
		o.Fatal(len(got.Assignments), err)
	}
	return post, got.Assignments[0].Lease.Token
}

func TestTooManyLiveStreams(t *testing.T) {
	t.Parallel()
	o := newOffice(t, func(o *httpx.Options) { o.Parked.PerPrincipal = 2 })
	base := listen(o)
	for range 2 {
		o.bob.follow(base, "").want("hello")
	}
	l := o.bob.follow(base, "")
	if l.res.StatusCode != http.StatusTooManyRequests || l.res.Header.Get("Retry-After") == "" {
		t.Errorf("status %d, want 429 with Retry-After", l.res.StatusCode)
	}
	if l := o.bob.follow(base, "?task=nobody/1"); l.res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("status %d, want 429 before anything is read", l.res.StatusCode)
	}
	o.ada.follow(base, "").want("hello")
}
