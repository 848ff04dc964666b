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
	"strconv"
	"strings"
	"testing"
	"time"
)

// pushed is a push as it arrived.
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
		if req.URL.String() == "/pushes" { // others are for a config that is about to be deleted
			r.got <- pushed{req.Header, body}
		}
	}))
	t.Cleanup(srv.Close)
	r.url = srv.URL + "/pushes"
	return r
}

// until reads pushes until one matches; it fails the test if none arrives in time.
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

// verify checks the token, the credentials and the signature of a push.
func (p pushed) verify(key ed25519.PublicKey, token, authorization string) error {
	h := p.header
	if got := h.Get("X-A2A-Notification-Token"); got != token {
		return fmt.Errorf("the token is %q", got)
	}
	if got := h.Get("Authorization"); got != authorization {
		return fmt.Errorf("the credentials are %q", got)
	}
	if !verify(key, h, p.body) {
		return fmt.Errorf("no good signature in %q", h.Get("webhook-signature"))
	}
	return nil
}

// verify is the receiver's check that docs/a2a.md shows.
func verify(key ed25519.PublicKey, h http.Header, body []byte) bool {
	sent, err := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(sent, 0)).Abs() > 5*time.Minute {
		return false
	}
	content := h.Get("webhook-id") + "." + h.Get("webhook-timestamp") + "." + string(body)
	for _, s := range strings.Fields(h.Get("webhook-signature")) {
		if text, ok := strings.CutPrefix(s, "v1a,"); ok {
			sig, err := base64.StdEncoding.DecodeString(text)
			return err == nil && ed25519.Verify(key, []byte(content), sig)
		}
	}
	return false
}

// signingKey returns the key that signs pushes, the first one that the server publishes.
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
		t.Fatalf("published keys = %+v, %v; want one of Ed25519", set, err)
	}
	key, err := base64.RawURLEncoding.DecodeString(set.Keys[0].X)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
