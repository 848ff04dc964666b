package httpx

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// known accepts the secret "good:<id>" for the user of that id, and fails on "down".
type known struct{}

func (known) Authenticate(_ context.Context, secret string) (*identity.Caller, error) {
	if secret == "down" {
		return nil, errs.New(errs.Unavailable, "store.unavailable", "try again")
	}
	id, ok := strings.CutPrefix(secret, "good:")
	if !ok {
		return nil, errs.New(errs.Unauthenticated, "auth.invalid", "no")
	}
	return &identity.Caller{Principal: identity.Principal{Org: "acme", Kind: identity.User, ID: id}, KeyID: secret}, nil
}

// clock is a clock that tests advance.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func newClock() *clock { return &clock{t: time.Unix(1_700_000_000, 0)} }

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func send(h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

func problemOf(t *testing.T, rec *httptest.ResponseRecorder) Problem {
	t.Helper()
	var p Problem
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || rec.Header().Get("Content-Type") != ProblemType {
		t.Fatalf("not a problem document: %v, %q %s", err, rec.Header().Get("Content-Type"), rec.Body)
	}
	return p
}

func TestEveryKindHasItsStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		code   string
		header string // name: value
	}{
		{errs.New(errs.Malformed, "request.malformed", "m"), 400, "request.malformed", ""},
		{errs.InvalidFields(errs.Field{Path: errs.At("title"), Message: "m"}), 422, "request.invalid", ""},
		{errs.New(errs.Unauthenticated, "auth.missing", "m"), 401, "auth.missing", `WWW-Authenticate: Bearer realm="parley"`},
		{
			errs.New(errs.Unauthenticated, "auth.invalid", "m"), 401, "auth.invalid",
			`WWW-Authenticate: Bearer realm="parley", error="invalid_token"`,
		},
		{
			identity.MissingScope(identity.ResolveProposal, identity.Admin), 403, "auth.scope_missing",
			`WWW-Authenticate: Bearer realm="parley", error="insufficient_scope", scope="svc:admin:admin"`,
		},
		{errs.New(errs.Forbidden, "proposal.not_yours", "m"), 403, "proposal.not_yours", "WWW-Authenticate: "},
		{errs.ErrNotFound, 404, "resource.not_found", ""},
		{errs.New(errs.Conflict, "c", "m"), 409, "c", ""},
		{errs.New(errs.Stale, "request.stale", "m"), 412, "request.stale", ""},
		{errs.New(errs.TooLarge, "request.too_large", "m"), 413, "request.too_large", ""},
		{errs.New(errs.Unsupported, "u", "m"), 415, "u", ""},
		{
			&errs.Error{
				Kind: errs.RateLimited, Code: "request.rate_limited", Message: "m", RetryAfter: 1100 * time.Millisecond,
			},
			429, "request.rate_limited", "Retry-After: 2",
		},
		{errs.New(errs.Unavailable, "store.unavailable", "m"), 503, "store.unavailable", "Retry-After: 1"},
		{errs.Wrap(errors.New("secret"), errs.Internal, "store.broken", "secret table"), 500, "internal", ""},
		{errors.New("secret"), 500, "internal", ""},
		{errs.New(errs.Kind(99), "secret", "secret"), 500, "internal", ""},
		{fmt.Errorf("query: %w", context.DeadlineExceeded), 503, "store.unavailable", "Retry-After: 1"},
		{fmt.Errorf("query: %w", context.Canceled), 503, "store.unavailable", ""}, // canceled, but not by the client
		{fmt.Errorf("wrapped: %w", errs.ErrNotFound), 404, "resource.not_found", ""},
	} {
		rt := NewRouter(Options{Logger: quiet()})
		rt.HandlePublic("GET /", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"of the intended response"`)
			WriteError(w, r, c.err)
		}))
		rec := send(rt, "GET", "/", "X-Request-Id", "id-1")
		p := problemOf(t, rec)
		if rec.Code != c.status || p.Status != c.status || p.Code != c.code || p.RequestID != "id-1" ||
			p.Title != http.StatusText(c.status) {
			t.Errorf("%v: got %d %s, want %d %s", c.err, rec.Code, rec.Body, c.status, c.code)
		}
		if strings.Contains(rec.Body.String(), "secret") {
			t.Errorf("%v: the response contains the cause: %s", c.err, rec.Body)
		}
		if name, value, ok := strings.Cut(c.header, ": "); ok && rec.Header().Get(name) != value {
			t.Errorf("%v: %s = %q, want %q", c.err, name, rec.Header().Get(name), value)
		}
		if rec.Header().Get("ETag") != "" || rec.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%v: headers = %v, want no ETag and no-store", c.err, rec.Header())
		}
	}
}

func TestAFieldIsNamedByPointerOrByParameter(t *testing.T) {
	t.Parallel()
	domain := errs.InvalidFields(errs.Field{Message: "a"}, errs.Field{Path: errs.At("a/b", 0, "~"), Message: "b"})
	for name, c := range map[string]struct {
		err          error
		detail, want string
	}{
		"body": {
			domain, "the body a; a/b[0].~ b",
			`[{"pointer":"","in":"body","detail":"a"},{"pointer":"/a~1b/0/~0","in":"body","detail":"b"}]`,
		},
		"query": {
			InQuery(fmt.Errorf("list: %w", errs.InvalidFields(errs.Field{Path: errs.At("limit"), Message: "b"}))),
			"limit b",
			`[{"parameter":"limit","in":"query","detail":"b"}]`,
		},
		"parts": {
			InvalidParts(Part{In: Header, Name: "X-Y", Message: "a"}, Part{In: Body, Name: "/z/0", Message: "b", Whole: true}),
			"X-Y a; z[0]: b",
			`[{"parameter":"X-Y","in":"header","detail":"a"},{"pointer":"/z/0","in":"body","detail":"b"}]`,
		},
	} {
		p := NewProblem(context.Background(), c.err)
		got, err := json.Marshal(p.Errors)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, string(got)); diff != "" || p.Detail != c.detail || p.Status != 422 ||
			p.Code != "request.invalid" {
			t.Errorf("%s: got %d %s %q, want 422 request.invalid %q\n%s",
				name, p.Status, p.Code, p.Detail, c.detail, diff)
		}
	}
	if err := InQuery(errs.ErrNotFound); err != errs.ErrNotFound {
		t.Errorf("InQuery of an error without fields = %v, want the error itself", err)
	}
}

func TestAClientThatLeavesIsNotAFailure(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	rt := NewRouter(Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	rt.HandlePublic("GET /", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		WriteError(w, r, fmt.Errorf("query: %w", r.Context().Err()))
	}))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	rec := httptest.NewRecorder()
	rt.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
	if rec.Code != StatusCanceled || log.Len() != 0 {
		t.Errorf("status = %d, want %d; log = %q, want none", rec.Code, StatusCanceled, log.String())
	}
}

func TestAPanicIsA500WithItsStackInTheLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	rt := NewRouter(Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	rt.HandlePublic("GET /early", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") }))
	rt.HandlePublic("GET /late", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("half"))
		panic("boom")
	}))
	rt.HandlePublic("GET /abort", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	}))

	rec := send(rt, "GET", "/early", "X-Request-Id", "id-1")
	if p := problemOf(t, rec); rec.Code != 500 || p.Code != "internal" || strings.Contains(rec.Body.String(), "boom") {
		t.Errorf("response = %d %s, want 500 internal without the cause", rec.Code, rec.Body)
	}
	l := log.String()
	if !strings.Contains(l, "boom") || !strings.Contains(l, "router_test.go") ||
		!strings.Contains(l, "request_id=id-1") {
		t.Errorf("log = %q, want the panic, its stack and the request id", l)
	}
	for _, path := range []string{"/late", "/abort"} {
		func() {
			defer func() {
				if p := recover(); p != http.ErrAbortHandler {
					t.Errorf("%s: panic = %v, want http.ErrAbortHandler", path, p)
				}
			}()
			send(rt, "GET", path)
		}()
	}
}

func TestRequestIDsAreKeptOnlyIfHarmless(t *testing.T) {
	t.Parallel()
	rt := NewRouter(Options{Logger: quiet()})
	rt.HandlePublic("GET /", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(RequestID(r.Context())))
	}))
	for id, kept := range map[string]bool{
		"a": true, "A.b_c-9": true, strings.Repeat("x", 64): true, strings.Repeat("x", 65): false,
		"": false, "a b": false, "é": false, "a\"b": false, "a/b": false,
	} {
		rec := send(rt, "GET", "/", "X-Request-Id", id)
		got := rec.Header().Get("X-Request-Id")
		if (got == id) != kept || got == "" || rec.Body.String() != got {
			t.Errorf("%q: id = %q in the header, %q in the handler, want it kept: %v", id, got, rec.Body, kept)
		}
	}
	if rec := send(rt, "GET", "/", "X-Request-Id", "a", "X-Request-Id", "b"); rec.Header().Get("X-Request-Id") == "a" {
		t.Error("one of two ids was kept, want a new one")
	}
	if a, b := send(rt, "GET", "/").Body.String(), send(rt, "GET", "/").Body.String(); a == b || !validRequestID(a) {
		t.Errorf("ids = %q and %q, want two different valid ones", a, b)
	}
}

func TestTheAccessLogHoldsNoSecrets(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	rt := NewRouter(Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), AccessLog: true, Authenticator: known{}})
	rt.HandleFunc("GET /x", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })
	send(rt, "GET", "/x?token=hidden", "Authorization", "Bearer good:ada", "Cookie", "hidden", "X-Request-Id", "id-1")
	l := log.String()
	for _, want := range []string{
		"method=GET", "path=/x", "route=/x", "status=200", "bytes=5",
		"request_id=id-1", "principal=user:ada", "org=acme", "client=192.0.2.1",
	} {
		if !strings.Contains(l, want) {
			t.Errorf("log = %s, want %s in it", l, want)
		}
	}
	if strings.Contains(l, "hidden") || strings.Contains(l, "good:") {
		t.Errorf("log = %s, want no secrets", l)
	}
}

func TestMetricsKnowRoutesAndNoOrgs(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	rt := NewRouter(Options{Registerer: reg, Authenticator: known{}, Logger: quiet()})
	rt.HandleFunc("GET /orgs/{org}/things", func(http.ResponseWriter, *http.Request) {})
	rt.HandlePublic("POST /boom", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") }))
	send(rt, "GET", "/orgs/acme/things", "Authorization", "Bearer good:ada")
	send(rt, "GET", "/orgs/acme/things", "Authorization", "Bearer bad")
	send(rt, "POST", "/boom")
	send(rt, "GET", "/nope")
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			name := f.GetName() + " " + strings.Join(labels, " ")
			if v := m.GetCounter().GetValue(); v > 0 {
				got[name] = v
			}
			if m.GetGauge() != nil && m.GetGauge().GetValue() != 0 {
				t.Errorf("%s = %v after all requests ended, want 0", name, m.GetGauge().GetValue())
			}
			if strings.Contains(name, "acme") || strings.Contains(name, "ada") {
				t.Errorf("the metric %q reveals who uses the server", name)
			}
		}
	}
	want := map[string]float64{
		"parley_http_requests_total GET /orgs/{org}/things 2xx": 1,
		"parley_http_requests_total GET /orgs/{org}/things 4xx": 1,
		"parley_http_requests_total POST /boom 5xx":             1,
		"parley_http_requests_total any unmatched 4xx":          1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnUnavailableStoreIsNotABadKey(t *testing.T) {
	t.Parallel()
	rt := NewRouter(Options{Authenticator: known{}, Logger: quiet(), AuthFailureLimit: 1})
	rt.HandleFunc("GET /x", func(http.ResponseWriter, *http.Request) {})
	for range 20 {
		if rec := send(rt, "GET", "/x", "Authorization", "Bearer down"); rec.Code != 503 {
			t.Fatalf("status = %d, want 503", rec.Code)
		}
	}
}
