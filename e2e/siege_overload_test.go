package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// metric reads a metric of the server on a new connection.
func (s *server) metric(t *testing.T, name string) int {
	t.Helper()
	_, rest, ok := strings.Cut(s.fresh(t, "/metrics"), "\n"+name+" ")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseFloat(line, 64)
	if !ok || err != nil {
		t.Fatalf("the metric %s: %q, %v", name, line, err)
	}
	return int(n)
}

// fresh gets a path on a new connection; the status must be 200.
func (s *server) fresh(t *testing.T, path string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Transport{DisableKeepAlives: true, DisableCompression: true}).RoundTrip(req)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: got %s, %v; want 200: %s", path, res.Status, err, b)
	}
	return string(b)
}

// mustBeHealthy checks the monitoring endpoints, on new connections.
func (s *server) mustBeHealthy(t *testing.T) {
	t.Helper()
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		s.fresh(t, path)
	}
}

// TestSiegeOverload has 950 clients of one key send requests as fast as they can. Requests
// over a principal's share, half of all, are refused at once; health checks and other callers are
// served. Latency is not checked: the clients alone use all processors.
//
// From a thousand connections of one address on, the server closes idle ones. A client that gets no
// processor time for a second is idle, too.
func TestSiegeOverload(t *testing.T) {
	const limit, share = 256, 128 // four times the limit may queue, more than there are clients
	const clients = 950
	needFiles(t, 4000)
	eachEngine(t, func(t *testing.T, e engine) {
		s := newSiege(t, serve(t, e, "--rate-limit", "0", "--max-requests", strconv.Itoa(limit)))
		must(s.attacker.send(t.Context(), s.prey.agent, "one", "hello"))(t)
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients, MaxConnsPerHost: clients}}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var served, shed atomic.Int64
		for i := range clients {
			wg.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					body := envelope("tasks/get", object{"id": "one"})
					if n%8 == 7 {
						body = envelope("tasks/send", object{"id": fmt.Sprintf("t-%d-%d", i, n), "message": text("hello")})
					}
					b, _ := json.Marshal(body)
					req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/a2a/"+s.prey.agent,
						strings.NewReader(string(b)))
					req.Header.Set("Authorization", "Bearer "+s.attacker.key)
					req.Header.Set("Content-Type", "application/json")
					res, err := client.Do(req)
					if err != nil {
						if ctx.Err() == nil {
							t.Error(err)
						}
						return
					}
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
					if mustShed(t, res); res.StatusCode == http.StatusOK {
						served.Add(1)
					} else {
						shed.Add(1)
						time.Sleep(50 * time.Millisecond) // leave the server some CPU time
					}
				}
			})
		}
		most := 0
		for i := range 9 {
			s.mustBeHealthy(t)
			if err := s.caller().call(i); err != nil {
				t.Errorf("an honest call: %v", err)
			}
			most = max(most, s.metric(t, `parley_http_requests_admitted{class="ordinary"}`))
			time.Sleep(50 * time.Millisecond)
		}
		cancel()
		wg.Wait()
		t.Logf("%d requests were served and %d shed; at most %d at the same time", served.Load(), shed.Load(), most)
		if served.Load() == 0 || shed.Load() == 0 {
			t.Errorf("%d requests were served and %d shed; want some of both", served.Load(), shed.Load())
		}
		if most == 0 || most > share {
			t.Errorf("%d requests of one key were served at the same time; want 1 to %d", most, share)
		}
		s.mustBeWell(t)
	})
}

// Test256CallersAreNotShed runs as many clients of one key as a busy org has.
func Test256CallersAreNotShed(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		s := serve(t, e, "--rate-limit", "0")
		o := newTaskOrg(t, s, "busy")
		var wg sync.WaitGroup
		for i := range 256 {
			wg.Go(func() {
				for n := range 8 {
					if _, err := o.peer().send(t.Context(), o.agent, fmt.Sprintf("t-%d-%d", i, n), "hello"); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		for _, reason := range []string{"overload", "share", "streams", "waits"} {
			if n := s.metric(t, `parley_http_requests_shed_total{reason="`+reason+`"}`); n != 0 {
				t.Errorf("%d requests were shed by %s, want 0", n, reason)
			}
		}
	})
}

// TestSiegeFewFiles opens a thousand streams on a server that may open a thousand files. Health
// checks and other callers still get connections.
func TestSiegeFewFiles(t *testing.T) {
	needFiles(t, 4000)
	eachEngine(t, func(t *testing.T, e engine) {
		limited := []string{"sh", "-c", `ulimit -n 1000; exec "$0" "$@"`}
		s := newSiege(t, serveThrough(t, e, limited, nil, "--rate-limit", "0"))
		id := "watched"
		keys := []string{s.attacker.key, s.prey.sender}
		for _, key := range keys {
			must(peer{s.base, key}.send(t.Context(), s.prey.agent, id, "hello"))(t)
		}
		opened, refused := 0, 0
		for i := range 1000 {
			o := *s.prey
			o.sender = keys[i%2]
			st := o.openRaw(t, id, 0)
			_ = st.SetReadDeadline(time.Now().Add(soon))
			line, err := st.r.ReadString('\n')
			switch {
			case err != nil:
				refused++ // the connection
			case strings.Contains(line, " 200 "):
				opened++
			case strings.Contains(line, " 429 "), strings.Contains(line, " 503 "):
				refused++
			default:
				t.Fatalf("got %q, want status 200, 429 or 503", line)
			}
			if i%50 == 49 {
				s.mustBeHealthy(t)
			}
		}
		t.Logf("%d streams were opened and %d refused", opened, refused)
		if n := s.metric(t, "parley_http_streams"); n < 500 || n > 600 || opened < n {
			t.Errorf("%d streams are open, %d were opened; want 500 to 600", n, opened)
		}
		s.mustBeHealthy(t)
		for i := range 30 {
			if err := s.caller().call(i); err != nil {
				t.Errorf("an honest call: %v", err)
			}
		}
		s.mustBeWell(t)
	})
}

// TestSiegeBatchesPay sends batches of small requests as fast as it can: the rate limit counts
// their items like single requests.
func TestSiegeBatchesPay(t *testing.T) {
	frontSiege(t, func(t *testing.T, s *siege) {
		start, ran, refused := time.Now(), 0, 0
		for range siegeSize(40, 4000) {
			res, b := s.attack(t, "/a2a/"+s.prey.agent, batchOf(50, "tasks/get", object{"id": "none"}))
			mustShed(t, res)
			if res != nil && res.StatusCode == http.StatusOK {
				ran += strings.Count(string(b), `"jsonrpc"`)
			} else {
				refused++
			}
		}
		allowed := 500 + 100*int(time.Since(start)/time.Second+1)
		if ran == 0 || ran > allowed || refused == 0 {
			t.Errorf("%d items ran and %d batches were refused, want at most %d items and a refusal", ran, refused, allowed)
		}
	})
}

// TestSiegeOAuth floods the endpoints that need no key.
func TestSiegeOAuth(t *testing.T) {
	frontSiege(t, func(t *testing.T, s *siege) {
		var refused atomic.Int64
		var wg sync.WaitGroup
		for i := range 20 {
			path := []string{"/oauth/token", "/oauth/introspect", "/oauth/revoke", "/oauth/authorize"}[i%4]
			wg.Go(func() {
				for range siegeSize(50, 1000) {
					form := url.Values{
						"grant_type": {"client_credentials"}, "client_id": {"key-none"}, "client_secret": {"guess"},
						"token": {"none"},
					}
					var res *http.Response
					var err error
					if path == "/oauth/authorize" {
						res, err = taskClient.Get(s.base + path + "?" + form.Encode())
					} else {
						res, err = taskClient.PostForm(s.base+path, form)
					}
					if err != nil {
						t.Error(err)
						return
					}
					_ = res.Body.Close()
					switch {
					case res.StatusCode == http.StatusTooManyRequests && res.Header.Get("Retry-After") != "":
						refused.Add(1)
					case res.StatusCode >= http.StatusInternalServerError, res.StatusCode == http.StatusTooManyRequests:
						t.Errorf("%s: got %s %v, want neither 429 nor 5xx", path, res.Status, res.Header)
					}
				}
			})
		}
		wg.Wait()
		if refused.Load() < 200 {
			t.Errorf("%d calls from one address were refused, want at least 200", refused.Load())
		}
	})
}
