package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// eventLine is event n of eventServer as JSON.
func eventLine(n int, title string) string {
	data, _ := json.Marshal(map[string]string{"id": "prop-" + strconv.Itoa(n), "title": title}) // strings only
	return fmt.Sprintf(`{"seq":%d,"id":"evt-%d","type":"proposal.submitted","time":"2026-01-02T03:04:05Z",`+
		`"subject":"proposal:prop-%d","actor":"user:ada","version":1,"data":%s}`,
		n, n, n, data)
}

// eventServer has a log of events. Its feed returns two at a time; its stream breaks after two.
type eventServer struct {
	log   []string
	reset bool // the first response begins with a reset
	grows int  // so many events happen when a stream has reached the end
	// selects is the filter; nil: all events.
	selects func(n int) bool

	mu   sync.Mutex
	seen []string // the queries
}

func (s *eventServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if !strings.HasSuffix(r.URL.Path, "/events") {
		_, _ = io.WriteString(w, `{"org":"main","principal":"user:ada"}`)
		return
	}
	stream := strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	from := 0
	if r.URL.Query().Get("since") == "now" {
		from = len(s.log)
	}
	fmt.Sscan(r.URL.Query().Get("after"), &from)
	fmt.Sscan(r.Header.Get("Last-Event-ID"), &from)
	s.mu.Lock()
	s.seen = append(s.seen, r.URL.RawQuery)
	first := len(s.seen) == 1
	s.mu.Unlock()
	limit := 2
	if fmt.Sscan(r.URL.Query().Get("limit"), &limit); limit > 2 {
		limit = 2
	}
	to := min(from+limit, len(s.log))
	if !stream {
		var selected []string
		for i := from; i < to; i++ {
			if s.selects == nil || s.selects(i+1) {
				selected = append(selected, s.log[i])
			}
		}
		fmt.Fprintf(w, `{"events":[%s],"last_seq":%d,"reset":%t}`, strings.Join(selected, ","), to, s.reset && first)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "retry: 1\n\n")
	if s.reset && first {
		_, _ = io.WriteString(w, "id: 0\nevent: reset\ndata: {\"last_seq\":0}\n\n")
	}
	for i := from; i < to; i++ {
		fmt.Fprintf(w, "id: %d\ndata: %s\n\n", i+1, s.log[i])
	}
	for i := range s.grows {
		if n := len(s.log) + i + 1; from == len(s.log) {
			fmt.Fprintf(w, "id: %d\ndata: %s\n\n", n, eventLine(n, "New"))
		}
	}
	if from == len(s.log) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

func newEventServer(t *testing.T, s *eventServer) string {
	t.Helper()
	for i, title := range []string{"One", "Two\x1b[31m", "Three", "Four", "Five"} {
		s.log = append(s.log, eventLine(i+1, title))
	}
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	return ts.URL
}

func events(ctx context.Context, server string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	args = append([]string{"events", "--server", server, "--key", "k"}, args...)
	code = Main(ctx, args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestEventsAreListed(t *testing.T) {
	t.Parallel()
	srv := &eventServer{}
	server := newEventServer(t, srv)
	code, out, errs := events(t.Context(), server, "--types", "proposal.submitted,proposal.voted", "--after", "1")
	want := `2026-01-02 03:04:05  2  proposal.submitted  proposal:prop-2  user:ada  Two[31m
2026-01-02 03:04:05  3  proposal.submitted  proposal:prop-3  user:ada  Three
2026-01-02 03:04:05  4  proposal.submitted  proposal:prop-4  user:ada  Four
2026-01-02 03:04:05  5  proposal.submitted  proposal:prop-5  user:ada  Five
`
	if diff := cmp.Diff(want, out); code != exitOK || diff != "" {
		t.Errorf("exit code %d, stderr %s, (-want +got):\n%s", code, errs, diff)
	}
	for _, param := range []string{"types=proposal.submitted%2Cproposal.voted", "after=1"} {
		if !strings.Contains(srv.seen[0], param) {
			t.Errorf("the first query is %s; want %s in it", srv.seen[0], param)
		}
	}
	code, out, errs = events(t.Context(), server, "--limit", "3", "--json")
	if code != exitOK || strings.Count(out, "\n") != 3 {
		t.Errorf("exit code %d, stderr %s, printed %s; want 3 lines", code, errs, out)
	}
	for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var e struct {
			Seq  int
			Data struct{ Title string }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Seq != i+1 || e.Data.Title == "" {
			t.Errorf("line %d is %s (%v); want event %d", i, line, err, i+1)
		}
	}
	if code, out, _ := events(t.Context(), server, "--after", "5"); code != exitOK || out != "no events\n" {
		t.Errorf("exit code %d, printed %q; want 0 and no events", code, out)
	}
	if code, out, _ := events(t.Context(), server, "--after", "5", "--json"); code != exitOK || out != "" {
		t.Errorf("exit code %d, printed %q; want 0 and nothing", code, out)
	}
}

func TestEventsAreFollowed(t *testing.T) {
	t.Parallel()
	server := newEventServer(t, &eventServer{reset: true})
	code, out, errs := events(t.Context(), server, "--follow", "--limit", "5", "--after", "0")
	if code != exitOK || strings.Count(out, "\n") != 5 {
		t.Errorf("exit code %d, printed %s; want 5 lines", code, out)
	}
	if !strings.Contains(errs, "some events are missing") {
		t.Errorf("stderr is %q; want a notice of the reset", errs)
	}
	// Ctrl-C is the usual end.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done, printed := make(chan int), &stopper{after: 5, stop: cancel}
	go func() {
		done <- Main(ctx, []string{"events", "--follow", "--server", server, "--key", "k"}, strings.NewReader(""),
			printed, io.Discard)
	}()
	if code := <-done; code != exitOK {
		t.Errorf("exit code %d after Ctrl-C, want 0", code)
	}
}

// stopper calls a function after so many lines.
type stopper struct {
	after int
	stop  func()
}

func (s *stopper) Write(p []byte) (int, error) {
	if s.after -= bytes.Count(p, []byte("\n")); s.after == 0 {
		s.stop()
	}
	return len(p), nil
}

// seqs returns the numbers of printed lines.
func seqs(out string) (list []string) {
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 2 {
			list = append(list, fields[2])
		}
	}
	return list
}

func TestTheLastEventsArePrinted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args, want string
	}{
		{"--tail 0", ""},
		{"--tail 2", "4 5"},
		{"--tail 3", "3 4 5"},
		{"--tail 4 --limit 2", "2 3"},
		{"--tail 5", "1 2 3 4 5"},
		{"--tail 99", "1 2 3 4 5"},
		{"--tail 2 --types proposal.submitted --subject proposal:prop-1", "4 5"}, // the server does not filter
		{"--tail 2 --follow --limit 2", "4 5"},
		{"--tail 1 --follow --limit 3", "5 6 7"},
		{"--tail 0 --follow --limit 2", "6 7"},
	} {
		srv := &eventServer{grows: 2}
		server := newEventServer(t, srv)
		code, out, errs := events(t.Context(), server, strings.Fields(c.args)...)
		if got := strings.Join(seqs(out), " "); code != exitOK || got != c.want || errs != "" {
			t.Errorf("%s: exit code %d, printed %s, stderr %s; want %s", c.args, code, got, errs, c.want)
		}
	}
	// Few of the last events are selected: more of the log is read, and no more than it has.
	srv := &eventServer{selects: func(n int) bool { return n <= 2 }}
	server := newEventServer(t, srv)
	for tail, want := range map[string]string{"1": "2", "2": "1 2", "3": "1 2", "10000": "1 2"} {
		if _, out, _ := events(t.Context(), server, "--tail", tail); strings.Join(seqs(out), " ") != want {
			t.Errorf("--tail %s printed %s, want %s", tail, out, want)
		}
	}
}

func TestEventsSinceATime(t *testing.T) {
	t.Parallel()
	for since, check := range map[string]func(at time.Time) bool{
		"2026-03-02T10:00:00+01:00": func(at time.Time) bool {
			return at.Equal(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))
		},
		"90m": func(at time.Time) bool { return time.Since(at) >= 90*time.Minute && time.Since(at) < 2*time.Hour },
		"7d":  func(at time.Time) bool { return time.Since(at) >= 7*day && time.Since(at) < 8*day },
	} {
		for _, follow := range []bool{false, true} {
			srv := &eventServer{}
			args := []string{"--since", since, "--limit", "1"}
			if follow {
				args = append(args, "--follow")
			}
			code, _, errs := events(t.Context(), newEventServer(t, srv), args...)
			query, _ := url.ParseQuery(srv.seen[0])
			at, err := time.Parse(time.RFC3339Nano, query.Get("since"))
			if code != exitOK || err != nil || !check(at) {
				t.Errorf("%v: exit code %d, stderr %s, asked since %q", args, code, errs, query.Get("since"))
			}
		}
	}
}

func TestEventsSinceNow(t *testing.T) {
	t.Parallel()
	code, out, errs := events(t.Context(), newEventServer(t, &eventServer{}), "--since", "now")
	if code != exitOK || out != "no events\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q; want no events", code, out, errs)
	}
	code, out, errs = events(t.Context(), newEventServer(t, &eventServer{grows: 1}), "--since", "now", "--follow",
		"--limit", "1")
	if code != exitOK || strings.Join(seqs(out), " ") != "6" {
		t.Errorf("exit code %d, stdout %q, stderr %q; want only the new event", code, out, errs)
	}
}

func TestTheHelpOfEventsHasParagraphs(t *testing.T) {
	t.Parallel()
	code, out, _ := events(t.Context(), "http://127.0.0.1:1", "--help")
	if code != exitOK || !strings.Contains(out, "\n\nExamples:\n\n") || !strings.Contains(out, "--types=TYPE,...\n") &&
		!strings.Contains(out, "--types=TYPE,... ") {
		t.Errorf("exit code %d, help:\n%s\nwant a paragraph before the examples, and --types=TYPE,...", code, out)
	}
}

func TestEventsReportErrors(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--after", "-1"},
		{"--limit", "-1"},
		{"--after", "x"},
		{"extra"},
		{"--tail", "-1"},
		{"--tail", "10001"},
		{"--since", "yesterday"},
		{"--since", "-5m"},
		{"--since", ""},
		{"--since", "5m", "--tail", "1"},
		{"--since", "5m", "--after", "1"},
		{"--tail", "1", "--after", "0"},
	} {
		if code, _, errs := events(t.Context(), "http://127.0.0.1:1", args...); code != exitUsage || errs == "" {
			t.Errorf("%v: exit code %d, stderr %q; want %d and the reason", args, code, errs, exitUsage)
		}
	}
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"status":422,"code":"request.invalid","detail":"types contains \"x\""}`)
	}))
	defer ts.Close()
	for _, args := range [][]string{{"--types", "x"}, {"--types", "x", "--follow"}} {
		code, out, errs := events(t.Context(), ts.URL, args...)
		if code != exitFailed || out != "" || !strings.Contains(errs, `types contains "x"`) {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q; want 1 and the reason", args, code, out, errs)
		}
	}
}
