package authserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

// endpoint is the token endpoint of a server whose clients have the secret "right".
func endpoint(failureLimit int) http.Handler {
	now := func() time.Time { return time.Unix(1_700_000_000, 0) }
	rt := httpx.NewRouter(httpx.Options{AuthFailureLimit: failureLimit, Now: now})
	s := &server{Options: Options{Now: now}, router: rt, limits: newCallLimits(now)}
	m := &manager{s}
	s.protocol = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secret := r.PostFormValue("client_secret")
		if secret != "" && m.verifySecret(r.Context(), stored(identity.HashSecret("right")), secret) != nil {
			writeJSON(w, http.StatusUnauthorized, protocolError{"invalid_client", "no"})
		}
	})
	rt.HandlePublic("POST "+TokenPath, http.HandlerFunc(s.direct))
	return rt
}

// ask calls the endpoint from the address of the number.
func ask(h http.Handler, from int, client, secret string) *httptest.ResponseRecorder {
	form := url.Values{"client_id": {client}}
	if secret != "" {
		form.Set("client_secret", secret)
	}
	r := httptest.NewRequest(http.MethodPost, TokenPath, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.RemoteAddr = fmt.Sprintf("192.0.%d.%d:1", from/250, from%250+1)
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

func wantTooMany(t *testing.T, rec *httptest.ResponseRecorder) {
	t.Helper()
	var e protocolError
	if err := json.Unmarshal(rec.Body.Bytes(), &e); err != nil || rec.Code != 429 || e.Error != "temporarily_unavailable" ||
		rec.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s %v; want 429 in the form of the protocol, with Retry-After", rec.Code, rec.Body, rec.Header())
	}
}

func TestClientsAreLimitedByAddress(t *testing.T) {
	t.Parallel()
	h := endpoint(0)
	for i := range addressBurst {
		if rec := ask(h, 1, "public", ""); rec.Code != 200 {
			t.Fatalf("call %d: %d", i+1, rec.Code)
		}
	}
	wantTooMany(t, ask(h, 1, "public", ""))
	if rec := ask(h, 2, "public", ""); rec.Code != 200 {
		t.Errorf("the same client from elsewhere: %d", rec.Code)
	}
}

func TestAClientWithASecretIsLimitedWhereverItCallsFrom(t *testing.T) {
	t.Parallel()
	h := endpoint(0)
	for i := range clientBurst {
		if rec := ask(h, 10+i, "app", "wrong"); rec.Code != 401 { // uses up nothing of the client's
			t.Fatalf("guess %d: %d", i+1, rec.Code)
		}
	}
	for i := range clientBurst {
		if rec := ask(h, 200+i, "app", "right"); rec.Code != 200 {
			t.Fatalf("call %d: %d", i+1, rec.Code)
		}
	}
	wantTooMany(t, ask(h, 1, "app", "right"))
	if rec := ask(h, 1, "other", "right"); rec.Code != 200 {
		t.Errorf("another client: %d", rec.Code)
	}
}

func TestAWrongSecretCountsAsABadKey(t *testing.T) {
	t.Parallel()
	h := endpoint(2)
	for i := range 10 {
		if rec := ask(h, 1, "app", "wrong"); rec.Code != 401 {
			t.Fatalf("guess %d: %d", i+1, rec.Code)
		}
	}
	wantTooMany(t, ask(h, 1, "app", "wrong"))
	if rec := ask(h, 1, "app", "right"); rec.Code != 200 {
		t.Errorf("the right secret from the same address: %d", rec.Code)
	}
}

func TestParallelCallsOfAClientDoNotExceedItsBurst(t *testing.T) {
	t.Parallel()
	h := endpoint(0)
	var served atomic.Int64
	var wg sync.WaitGroup
	for i := range 3 * clientBurst {
		wg.Go(func() {
			if ask(h, i, "app", "right").Code == 200 {
				served.Add(1)
			}
		})
	}
	wg.Wait()
	if n := served.Load(); n != clientBurst {
		t.Errorf("%d calls were served; want %d", n, clientBurst)
	}
}

// Clients form-encode their credentials before they put them into the header (RFC 6749,
// 2.3.1). How much they escape differs, and some do not encode at all.
func TestBasicCredentialsAreFormDecoded(t *testing.T) {
	t.Parallel()
	const id, secret = "key-01k5xb7d2n8f4j6s0a9g3r5w1c", "parley_4fGh2k"
	for _, c := range []struct{ rule, id, secret, wantID, wantSecret string }{
		{"as they are", id, secret, id, secret},
		{"every sign escaped", "key%2D01k5xb7d2n8f4j6s0a9g3r5w1c", "parley%5F4fGh2k", id, secret},
		{"a plus is a blank", "a+b", "c+d", "a b", "c d"},
		{"no encoding", "key%zz", secret, "key%zz", secret},
		{"a colon in the id", "https%3A%2F%2Fapp.example", secret, "https%3A%2F%2Fapp.example", secret},
	} {
		r := httptest.NewRequest(http.MethodPost, TokenPath, nil)
		r.SetBasicAuth(c.id, c.secret)
		decodeBasic(r)
		if gotID, gotSecret, ok := r.BasicAuth(); !ok || gotID != c.wantID || gotSecret != c.wantSecret {
			t.Errorf("%s: %q %q %v; want %q %q", c.rule, gotID, gotSecret, ok, c.wantID, c.wantSecret)
		}
	}
	r := httptest.NewRequest(http.MethodPost, TokenPath, nil)
	r.Header.Set("Authorization", "Bearer key%2D1")
	if decodeBasic(r); r.Header.Get("Authorization") != "Bearer key%2D1" {
		t.Errorf("a header of another scheme was changed: %q", r.Header.Get("Authorization"))
	}
}
