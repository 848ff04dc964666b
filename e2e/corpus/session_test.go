package corpus

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/parley-dev/parley/internal/servertest"
)

// session is the scripted session of one topic, and its transcript.
type session struct {
	*testing.T
	*server
	*names
	org    string
	client *http.Client
	grpc   *grpc.ClientConn
	seen   *coverage
	out    bytes.Buffer

	unfinished bool // a failure ended the script
}

var httpClient = &http.Client{
	Timeout:       patience,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func newSession(t *testing.T, s *server, org string, seen *coverage) *session {
	n := newNames()
	n.set("base", s.base)
	n.set("host", strings.TrimPrefix(s.base, "http://"))
	return &session{T: t, server: s, names: n, org: org, client: httpClient, seen: seen}
}

// say writes a heading to the transcript.
func (s *session) say(format string, args ...any) {
	fmt.Fprintf(&s.out, "=== "+format+"\n", args...)
}

// reply is a response.
type reply struct {
	status int
	header http.Header
	body   string
}

// do makes a request and records it with its response. The line is "METHOD /path"; who names a
// credential, or is empty. Headers are "Name: value". The path, the headers and the body may use
// placeholders.
func (s *session) do(title, who, line, body string, headers ...string) *reply {
	s.Helper()
	s.say("%s", title)
	res := s.send(who, line, body, headers...)
	return s.finish(res, line, body)
}

// quiet makes a request that is not recorded.
func (s *session) quiet(who, line, body string, headers ...string) *reply {
	s.Helper()
	before := s.out.Len()
	res := s.send(who, line, body, headers...)
	r := s.read(res)
	s.out.Truncate(before)
	return r
}

// send records the request and sends it.
func (s *session) send(who, line, body string, headers ...string) *http.Response {
	s.Helper()
	if who != "" {
		headers = append([]string{"Authorization: Bearer <" + who + ">"}, headers...)
	}
	if body != "" && !slices.ContainsFunc(headers, func(h string) bool { return strings.HasPrefix(h, "Content-Type:") }) {
		headers = append(headers, "Content-Type: application/json")
	}
	fmt.Fprintln(&s.out, ">", line)
	for _, h := range headers {
		fmt.Fprintln(&s.out, ">", h)
	}
	if body != "" {
		s.out.WriteString(prefixed("> ", pretty(body)))
	}
	method, path, _ := strings.Cut(s.expand(line), " ")
	req, err := http.NewRequestWithContext(s.Context(), method, s.base+path, strings.NewReader(s.expand(body)))
	if err != nil {
		s.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(s.expand(h), ": ")
		if value == "-" {
			req.Header.Del(name)
			continue
		}
		req.Header.Add(name, value)
	}
	res, err := s.client.Do(req)
	if err != nil {
		s.Fatalf("%s: %v", line, err)
	}
	return res
}

func (s *session) read(res *http.Response) *reply {
	s.Helper()
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.Fatalf("%s: %v", res.Request.URL, err)
	}
	return &reply{res.StatusCode, res.Header, string(b)}
}

// finish records the response.
func (s *session) finish(res *http.Response, line, body string) *reply {
	s.Helper()
	r := s.read(res)
	s.seen.http(line, body, r.body, r.status)
	s.out.WriteString(s.normalize(s.head(res.Header, fmt.Sprintf("%d %s", r.status, http.StatusText(r.status)), r.body)))
	s.out.WriteByte('\n')
	return r
}

// head returns a response as text, before its values are replaced.
func (s *session) head(h http.Header, status, body string) string {
	var b strings.Builder
	fmt.Fprintln(&b, "<", status)
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if unrecorded[name] {
			continue
		}
		for _, v := range h[name] {
			if common[name] != v {
				fmt.Fprintf(&b, "< %s: %s\n", name, v)
			}
		}
	}
	// A common header is recorded where it is missing.
	for _, name := range slices.Sorted(maps.Keys(common)) {
		if h.Get(name) == "" {
			fmt.Fprintf(&b, "< no %s\n", name)
		}
	}
	text := b.String()
	if id := h.Get("X-Request-Id"); id != "" {
		s.request = id
	} else {
		text += "< no X-Request-Id\n"
	}
	return text + prefixed("< ", s.body(h, body))
}

// unrecorded lists headers of the connection, and the request id, which a body that repeats it
// shows as <request>.
var unrecorded = map[string]bool{"Date": true, "Content-Length": true, "Connection": true, "X-Request-Id": true}

// common lists headers that are the same on every response; they are not recorded.
var common = map[string]string{
	"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
	"Referrer-Policy":         "no-referrer",
	"X-Content-Type-Options":  "nosniff",
}

// body returns a response body: JSON indented, events one after the other, and for HTML only that
// there is a page.
func (s *session) body(h http.Header, body string) string {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	switch {
	case media == "text/event-stream":
		return events(body)
	case media == "text/html":
		return "(a page)"
	case body == "":
		return "(no body)"
	case len(body) > 200_000:
		return "(a large document)"
	}
	return pretty(body)
}

// events returns the events of a stream, their data as indented JSON.
func events(body string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(body), "\n") {
		data, ok := strings.CutPrefix(line, "data: ")
		switch {
		case strings.HasPrefix(line, ":"):
		case ok:
			fmt.Fprintf(&b, "data: %s\n", pretty(data))
		default:
			fmt.Fprintln(&b, line)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// stream is a response that is read while other requests are made.
type stream struct {
	s    *session
	res  *http.Response
	line string
	body string // of the request
	at   string // the request's part of the transcript
	got  servertest.Output
	done chan error
}

// stream sends a request whose response is a stream of events, and returns after the first n of
// them. The transcript gets it when its end is awaited.
func (s *session) stream(title, who, line, body string, n int, headers ...string) *stream {
	s.Helper()
	before := s.out.Len()
	s.say("%s", title)
	st := &stream{s: s, line: line, body: body, done: make(chan error, 1)}
	st.res = s.send(who, line, body, headers...)
	st.at = s.out.String()[before:]
	s.out.Truncate(before)
	go func() {
		_, err := io.Copy(&st.got, st.res.Body)
		_ = st.res.Body.Close()
		st.done <- err
	}()
	st.await(n)
	return st
}

// await waits until the stream has sent n events.
func (st *stream) await(n int) {
	st.s.Helper()
	eventually(st.s.T, fmt.Sprintf("%s had %d events", st.line, n), func() error {
		if got := strings.Count(st.got.String(), "\n\n"); got < n {
			return fmt.Errorf("%d events:\n%s", got, st.got.String())
		}
		return nil
	})
}

// end waits until the server ends the stream, and records it.
func (st *stream) end() {
	s := st.s
	s.Helper()
	select {
	case err := <-st.done:
		if err != nil {
			s.Fatal(err)
		}
	case <-time.After(patience):
		s.Fatalf("%s does not end:\n%s", st.line, st.got.String())
	}
	s.seen.http(st.line, st.body, st.got.String(), st.res.StatusCode)
	s.out.WriteString(st.at)
	status := fmt.Sprintf("%d %s", st.res.StatusCode, http.StatusText(st.res.StatusCode))
	s.out.WriteString(s.normalize(s.head(st.res.Header, status, st.got.String())))
	s.out.WriteByte('\n')
}

// rpc calls a JSON-RPC method of an agent.
func (s *session) rpc(title, who, agent, method, params string, headers ...string) *reply {
	s.Helper()
	return s.do(title, who, "POST /a2a/"+agent, call(method, params), headers...)
}

// call returns a JSON-RPC request.
func call(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
}

// form posts a form, whose values need no escaping.
func (s *session) form(title, line, form string, headers ...string) *reply {
	s.Helper()
	return s.do(title, "", line, form, append(headers, "Content-Type: application/x-www-form-urlencoded")...)
}
