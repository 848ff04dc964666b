package httpx

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

func TestAPrincipalHasOneBudgetWithABurst(t *testing.T) {
	t.Parallel()
	c := newClock()
	rt := NewRouter(Options{Authenticator: known{}, RateLimit: 10, Now: c.now, Logger: quiet()})
	rt.HandleFunc("GET /x", func(http.ResponseWriter, *http.Request) {})
	get := func(id string) *httptest.ResponseRecorder {
		return send(rt, "GET", "/x", "Authorization", "Bearer good:"+id)
	}
	for i := range 50 {
		if rec := get("ada"); rec.Code != 200 {
			t.Fatalf("request %d of the burst: status = %d, want 200", i+1, rec.Code)
		}
	}
	rec := get("ada")
	p := problemOf(t, rec)
	if rec.Code != 429 || p.Code != "request.rate_limited" || rec.Header().Get("Retry-After") != "1" ||
		rec.Header().Get("RateLimit-Policy") != `"principal";q=50;w=5` ||
		rec.Header().Get("RateLimit") != `"principal";r=0;t=1` {
		t.Errorf("after the burst: status = %d, want 429 with RateLimit: %s %v", rec.Code, rec.Body, rec.Header())
	}
	if rec := get("bob"); rec.Code != 200 {
		t.Errorf("another principal: status = %d, want 200", rec.Code)
	}
	c.add(100 * time.Millisecond)
	if a, b := get("ada").Code, get("ada").Code; a != 200 || b != 429 {
		t.Errorf("after a tenth of a second: statuses = %d, %d, want 200, 429", a, b)
	}
}

func TestAWorkerHasABudgetOfItsOwn(t *testing.T) {
	t.Parallel()
	rt := NewRouter(Options{RateLimit: 1})
	if rt.perWorker.rate != workerFactor || rt.perPrincipal.rate != 1 {
		t.Errorf("rates = %d for workers and %d for others, want %d and 1",
			rt.perWorker.rate, rt.perPrincipal.rate, workerFactor)
	}
	if off := NewRouter(Options{}); off.perWorker.Keyed != nil || off.perPrincipal.Keyed != nil {
		t.Error("a rate of 0 has a limiter, want none")
	}
}

func TestBadCredentialsAreLimitedByAddressAndGoodOnesAreNot(t *testing.T) {
	t.Parallel()
	c := newClock()
	rt := NewRouter(Options{Authenticator: known{}, AuthFailureLimit: 2, Now: c.now, Logger: quiet()})
	rt.HandleFunc("GET /x", func(http.ResponseWriter, *http.Request) {})
	var codes []int
	var last *httptest.ResponseRecorder
	for range 11 {
		last = send(rt, "GET", "/x", "Authorization", "Bearer guess")
		codes = append(codes, last.Code)
	}
	if codes[9] != 401 || codes[10] != 429 || last.Header().Get("Retry-After") != "1" {
		t.Errorf("statuses = %v, want 401 ten times, then 429: %v", codes, last.Header())
	}
	if rec := send(rt, "GET", "/x", "Authorization", "Basic x"); rec.Code != 429 {
		t.Errorf("another kind of bad credentials: status = %d, want 429", rec.Code)
	}
	if rec := send(rt, "GET", "/x", "Authorization", "Bearer good:ada"); rec.Code != 200 {
		t.Errorf("a good key from the same address: status = %d, want 200", rec.Code)
	}
	if rec := send(rt, "GET", "/x"); rec.Code != 200 {
		t.Errorf("no credentials: status = %d, want 200", rec.Code)
	}
	r := httptest.NewRequest("GET", "/x", nil)
	r.RemoteAddr = "192.0.2.2:1"
	r.Header.Set("Authorization", "Bearer guess")
	rec := httptest.NewRecorder()
	rt.ServeHTTP(rec, r)
	if rec.Code != 401 {
		t.Errorf("another address: status = %d, want 401", rec.Code)
	}
}

func TestTheClientAddressIsReadThroughTrustedProxiesOnly(t *testing.T) {
	t.Parallel()
	trusted, err := ParsePrefixes([]string{"10.0.0.0/8", " 192.168.1.1", "fd00::/8", ""})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		peer      string
		forwarded []string
		trusted   []netip.Prefix
		want      string
	}{
		{"203.0.113.9:1", []string{"1.1.1.1"}, trusted, "203.0.113.9"},
		{"203.0.113.9:1", []string{"1.1.1.1"}, nil, "203.0.113.9"},
		{"10.0.0.1:1", nil, trusted, "10.0.0.1"},
		{"10.0.0.1:1", []string{"1.1.1.1"}, nil, "10.0.0.1"},
		{"10.0.0.1:1", []string{"1.1.1.1"}, trusted, "1.1.1.1"},
		{"10.0.0.1:1", []string{"6.6.6.6, 1.1.1.1"}, trusted, "1.1.1.1"},
		{"10.0.0.1:1", []string{"6.6.6.6, 1.1.1.1, 10.9.9.9"}, trusted, "1.1.1.1"},
		{"10.0.0.1:1", []string{"6.6.6.6", "1.1.1.1,192.168.1.1"}, trusted, "1.1.1.1"},
		{"10.0.0.1:1", []string{"10.2.2.2, 10.3.3.3"}, trusted, "10.2.2.2"},
		{"10.0.0.1:1", []string{"1.1.1.1, unknown"}, trusted, "10.0.0.1"},
		{"10.0.0.1:1", []string{"1.1.1.1:443"}, trusted, "1.1.1.1"},
		{"10.0.0.1:1", []string{"[2001:db8::1]:443"}, trusted, "2001:db8::1"},
		{"[::ffff:10.0.0.1]:1", []string{"::ffff:1.1.1.1"}, trusted, "1.1.1.1"},
		{"[fd00::1]:1", []string{"2001:db8::2"}, trusted, "2001:db8::2"},
		{"@", []string{"1.1.1.1"}, trusted, "invalid IP"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.peer
		for _, f := range c.forwarded {
			r.Header.Add("X-Forwarded-For", f)
		}
		if got := clientAddr(r, c.trusted).String(); got != c.want {
			t.Errorf("%s %q: got %s, want %s", c.peer, c.forwarded, got, c.want)
		}
	}
	if _, err := ParsePrefixes([]string{"10.0.0.0/33"}); errs.KindOf(err) != errs.Invalid || err == nil {
		t.Errorf("err = %v, want Invalid", err)
	}
}

func TestAnIPv6ClientIsItsNetwork(t *testing.T) {
	t.Parallel()
	a, b := netip.MustParseAddr("2001:db8:1:2:3::4"), netip.MustParseAddr("2001:db8:1:2:9::9")
	if LimitKey(a) != LimitKey(b) || LimitKey(a) == LimitKey(netip.MustParseAddr("2001:db8:1:3::1")) {
		t.Errorf("keys = %s and %s, want the same /64 for both and another for the next network",
			LimitKey(a), LimitKey(b))
	}
	if v4 := netip.MustParseAddr("192.0.2.1"); LimitKey(v4) != v4 {
		t.Errorf("LimitKey(%s) = %s, want the address itself", v4, LimitKey(v4))
	}
}
