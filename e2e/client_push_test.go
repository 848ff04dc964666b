package e2e

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// pushed is a push as its receiver got it.
type pushed struct {
	header http.Header
	body   []byte
}

// receiver takes pushes.
type receiver struct {
	url string
	got chan pushed
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{got: make(chan pushed, 100)}
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		if req.URL.String() == "/pushes" { // else it is for a config that is about to be deleted
			r.got <- pushed{req.Header, body}
		}
	}))
	t.Cleanup(srv.Close)
	r.url = srv.URL + "/pushes"
	return r
}

// until reads pushes until one satisfies; the test ends if none comes.
func (r *receiver) until(t *testing.T, what string, ok func(p pushed) bool) {
	t.Helper()
	late := time.After(soon)
	for {
		select {
		case p := <-r.got:
			if ok(p) {
				return
			}
		case <-late:
			t.Fatalf("no push within %v: %s", soon, what)
		}
	}
}

// verify checks what every push must have: the token, the credentials, and a
// signature by the published key.
func (p pushed) verify(key ed25519.PublicKey, token, authorization string) error {
	h := p.header
	if got := h.Get("X-A2A-Notification-Token"); got != token {
		return fmt.Errorf("the token is %q", got)
	}
	if got := h.Get("Authorization"); got != authorization {
		return fmt.Errorf("the credentials are %q", got)
	}
	signed := []byte(h.Get("webhook-id") + "." + h.Get("webhook-timestamp") + "." + string(p.body))
	for s := range strings.SplitSeq(h.Get("webhook-signature"), " ") {
		if encoded, ok := strings.CutPrefix(s, "v1a,"); ok {
			signature, err := base64.StdEncoding.DecodeString(encoded)
			if err == nil && ed25519.Verify(key, signed, signature) {
				return nil
			}
		}
	}
	return fmt.Errorf("no good signature in %q", h.Get("webhook-signature"))
}

// signingKey is the key of pushes, the first that the server publishes.
func (s *server) signingKey(t *testing.T) ed25519.PublicKey {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.base+"/.well-known/jwks.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var set struct {
		Keys []struct{ Kty, Crv, X string }
	}
	if err := json.NewDecoder(res.Body).Decode(&set); err != nil || len(set.Keys) == 0 || set.Keys[0].Crv != "Ed25519" {
		t.Fatalf("the published keys are %+v, %v", set, err)
	}
	key, err := base64.RawURLEncoding.DecodeString(set.Keys[0].X)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
