package httpx

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// members accepts the secret "<org>:<id>" for the user of that id in that org.
type members struct{}

func (members) Authenticate(_ context.Context, secret string) (*identity.Caller, error) {
	org, id, ok := strings.Cut(secret, ":")
	if !ok {
		return nil, errs.New(errs.Unauthenticated, "auth.invalid", "no")
	}
	return &identity.Caller{Principal: identity.Principal{Org: org, Kind: identity.User, ID: id}}, nil
}

// crowd is a router whose handlers block until they are released.
type crowd struct {
	t       *testing.T
	rt      *Router
	inside  chan struct{} // one for each handler that runs
	release chan struct{}
	ends    sync.WaitGroup
}

func newCrowd(t *testing.T, o Options) *crowd {
	t.Helper()
	o.Authenticator, o.Logger = members{}, quiet()
	c := &crowd{t: t, rt: NewRouter(o), inside: make(chan struct{}), release: make(chan struct{})}
	stay := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		c.inside <- struct{}{}
		<-c.release
	})
	c.rt.Handle("GET /x", stay)
	c.rt.HandleRoute("GET /agents/{agent}", Route{Worker: true}, stay)
	c.rt.HandlePublic("GET /public", stay)
	c.rt.HandleHealth("GET /healthz", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(c.leave)
	return c
}

// enter sends n requests that block. It returns when all of them are being served.
func (c *crowd) enter(n int, path, as string) {
	for range n {
		c.ends.Go(func() {
			if rec := c.try(path, as); rec.Code != 200 {
				c.t.Errorf("%s as %q: status = %d, want 200: %s", path, as, rec.Code, rec.Body)
			}
		})
		<-c.inside
	}
}

func (c *crowd) try(path, as string) *httptest.ResponseRecorder {
	if as == "" {
		return send(c.rt, "GET", path)
	}
	return send(c.rt, "GET", path, "Authorization", "Bearer "+as)
}

// leave releases all handlers.
func (c *crowd) leave() {
	select {
	case <-c.release:
	default:
		close(c.release)
	}
	c.ends.Wait()
}

func refused(t *testing.T, rec *httptest.ResponseRecorder, status int, code string) {
	t.Helper()
	if p := problemOf(t, rec); rec.Code != status || p.Code != code || rec.Header().Get("Retry-After") == "" {
		t.Errorf("status = %d %s %v, want %d %s and Retry-After", rec.Code, rec.Body, rec.Header(), status, code)
	}
}

func TestRequestsBeyondTheTotalAreRefusedByClass(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, Options{MaxRequests: 6})
	c.enter(3, "/x", "acme:ada")
	c.enter(1, "/x", "acme:bob")
	c.enter(2, "/x", "other:eve")
	refused(t, c.try("/x", "third:joe"), 503, "server.overloaded")
	refused(t, c.try("/public", ""), 503, "server.overloaded")
	c.enter(1, "/agents/bot", "acme:bot") // workers have their own slots
	if rec := c.try("/healthz", ""); rec.Code != 200 {
		t.Errorf("/healthz: status = %d, want 200", rec.Code)
	}
	c.leave()
	if n := c.rt.admission.admitted(ordinary); n != 0 {
		t.Errorf("used slots after all requests ended = %d, want 0", n)
	}
}

func TestOneCallerAndOneOrgHaveAShare(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, Options{MaxRequests: 12})
	c.rt.HandleRoute("GET /told", Route{Refuse: func(w http.ResponseWriter, r *http.Request, err error) {
		if n := c.rt.admission.admitted(ordinary); n != 6 {
			t.Errorf("used slots while a refusal is written = %d, want 6", n)
		}
		WriteError(w, r, err)
	}}, http.NotFoundHandler())
	c.enter(6, "/x", "acme:ada")
	refused(t, c.try("/told", "acme:ada"), 429, "request.too_many_concurrent")
	c.enter(2, "/x", "acme:bob")
	refused(t, c.try("/x", "acme:bob"), 429, "request.too_many_concurrent")
	c.enter(4, "/x", "other:eve")
	if n := c.rt.admission.admitted(ordinary); n != 12 {
		t.Errorf("used slots = %d, want 12: a refused request keeps no slot", n)
	}
}

func TestCallersWithoutCredentialsShareByAddress(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, Options{MaxRequests: 4})
	c.enter(1, "/public", "")
	c.enter(1, "/x", "")
	refused(t, c.try("/public", ""), 429, "request.too_many_concurrent")
	refused(t, c.try("/x", ""), 429, "request.too_many_concurrent")
	c.enter(1, "/x", "acme:ada") // from the same address, but authenticated
}

func TestRequestsThatOnlyEnteredAreBoundedToo(t *testing.T) {
	t.Parallel()
	a := newAdmission(2)
	for range 2 * enterFactor {
		if !a.enter(new(exchange), ordinary) {
			t.Fatal("enter below the bound: got false, want true")
		}
	}
	x := new(exchange)
	if a.enter(x, ordinary) {
		t.Error("enter at the bound: got true, want false")
	}
	a.leave(x)
	if !a.enter(x, worker) {
		t.Error("enter of a worker: got false, want true")
	}
	a.leave(x)
	a.leave(x)
	if n := a.classes[worker].entered.Load(); n != 0 {
		t.Errorf("entered after all left = %d, want 0", n)
	}
}

func TestKeysThatHoldNothingAreForgotten(t *testing.T) {
	t.Parallel()
	s := newShares[int]()
	kept := s.take(-1, 1)
	for i := range 100_000 {
		s.take(i, 1).Add(-1)
	}
	n := 0
	for i := range s.shards {
		n += len(s.shards[i].held)
	}
	if n > 2*64*shareShards {
		t.Errorf("kept keys = %d, want at most %d", n, 2*64*shareShards)
	}
	if s.take(-1, 1) != nil || kept.Load() != 1 {
		t.Error("a key that still holds a share was dropped")
	}
}

func TestTheDefaultsAdmit256CallersOfOnePrincipal(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, Options{MaxRequests: DefaultMaxRequests})
	c.enter(256, "/x", "acme:ada")
	c.enter(256, "/agents/bot", "acme:ada")
}

func TestARefusalHasTheFormOfItsRoute(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, Options{MaxRequests: 1})
	c.rt.HandleRoute("GET /own", Route{Refuse: func(w http.ResponseWriter, _ *http.Request, err error) {
		w.WriteHeader(StatusOf(errs.KindOf(err)))
		fmt.Fprint(w, "own: ", errs.As(err).Code)
	}}, http.NotFoundHandler())
	c.enter(1, "/x", "acme:ada")
	if rec := c.try("/own", ""); rec.Code != 503 || rec.Body.String() != "own: server.overloaded" {
		t.Errorf("response = %d %s, want 503 in the route's own form", rec.Code, rec.Body)
	}
}

func TestAParkedRequestHoldsNoSlot(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	c := newCrowd(t, Options{MaxRequests: 2, Registerer: reg, Parked: ParkLimits{Process: 3, PerPrincipal: 2}})
	for kind, path := range map[ParkKind]string{Stream: "/stream", Wait: "/wait"} {
		c.rt.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			if err := errors.Join(c.rt.Park(r.Context(), kind), c.rt.Park(r.Context(), kind)); err != nil {
				WriteError(w, r, err)
				return
			}
			c.rt.Yield(r.Context())
			c.rt.Yield(r.Context())
			c.inside <- struct{}{}
			<-c.release
		})
	}
	c.enter(2, "/stream", "acme:ada")
	refused(t, c.try("/stream", "acme:ada"), 429, "stream.too_many")
	c.enter(2, "/wait", "acme:ada")
	refused(t, c.try("/wait", "acme:ada"), 429, "wait.too_many")
	c.enter(1, "/stream", "acme:bob")
	refused(t, c.try("/stream", "other:eve"), 503, "server.overloaded")
	if n := c.rt.admission.admitted(ordinary); n != 0 {
		t.Errorf("slots of parked requests = %d, want 0", n)
	}
	c.enter(1, "/x", "acme:ada")
	gauges := func() (streams, waits float64) {
		return gaugeOf(t, reg, "parley_http_streams"), gaugeOf(t, reg, "parley_http_waits")
	}
	if streams, waits := gauges(); streams != 3 || waits != 2 {
		t.Errorf("gauges = %v streams, %v waits, want 3 and 2", streams, waits)
	}
	c.leave()
	if streams, waits := gauges(); streams != 0 || waits != 0 {
		t.Errorf("gauges after the end = %v streams, %v waits, want 0 and 0", streams, waits)
	}
}

func TestStreamsAndWaitsShareTheFiles(t *testing.T) {
	t.Parallel()
	p := newParking(ParkLimits{Both: 2})
	stream, err := p.take(Stream, holder{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.take(Wait, holder{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.take(Wait, holder{}); err == nil {
		t.Error("a third request: got nil, want an error")
	}
	p.give(Stream, stream)
	if _, err := p.take(Wait, holder{}); err != nil {
		t.Error(err)
	}
}

func TestABatchIsChargedForEachItem(t *testing.T) {
	t.Parallel()
	clock := newClock()
	rt := NewRouter(Options{Authenticator: known{}, RateLimit: 10, Now: clock.now, Logger: quiet()})
	ran := 0
	rt.HandleFunc("GET /batch/{n}", func(w http.ResponseWriter, r *http.Request) {
		n := 0
		fmt.Sscan(r.PathValue("n"), &n)
		if err := rt.Charge(r.Context(), n-1); err != nil {
			WriteError(w, r, err)
			return
		}
		ran += n
	})
	batch := func(n int) *httptest.ResponseRecorder {
		return send(rt, "GET", fmt.Sprint("/batch/", n), "Authorization", "Bearer good:ada")
	}
	if a, b := batch(40).Code, batch(9).Code; a != 200 || b != 200 || ran != 49 {
		t.Fatalf("statuses within a burst of 50 = %d and %d, %d ran, want 200, 200 and 49", a, b, ran)
	}
	rec := batch(9) // one token is left for the request itself
	if refused(t, rec, 429, "request.rate_limited"); ran != 49 || rec.Header().Get("RateLimit") == "" {
		t.Errorf("%d ran, want 49; headers = %v, want RateLimit", ran, rec.Header())
	}
	clock.add(burstSeconds * 1e9)
	rec = batch(51)
	if refused(t, rec, 429, "request.rate_limited"); !strings.Contains(rec.Body.String(), "send at most 50") {
		t.Errorf("body = %s, want the largest batch", rec.Body)
	}
}

// gaugeOf returns the value of a metric without labels.
func gaugeOf(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("metric %s does not exist", name)
	return 0
}

func BenchmarkAdmission(b *testing.B) {
	a := newAdmission(DefaultMaxRequests)
	h := holder{principal: identity.Principal{Org: "acme", Kind: identity.User, ID: "ada"}}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		x := &exchange{holder: h}
		for pb.Next() {
			a.enter(x, ordinary)
			_, _ = a.admit(x)
			a.leave(x)
		}
	})
}
