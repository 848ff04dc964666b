package relay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-dev/parley/internal/outbound"
)

// A token URL that hangs is asked once for all requests that wait, and none of them waits longer than
// its context.
func TestTokenURLHangs(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	arrived, release := make(chan struct{}, 10), make(chan struct{})
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		arrived <- struct{}{}
		<-release
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token":"issued","token_type":"Bearer","expires_in":3600}`))
	}))
	defer tokens.Close()
	a := newAuthenticator(&Credential{Type: OAuth, TokenURL: tokens.URL, ClientID: "us", ClientSecret: "s3cret"},
		tokens.Client(), nil)

	var waiting sync.WaitGroup
	for range 5 {
		waiting.Go(func() {
			if _, value, err := a.header(t.Context()); err != nil || value != "Bearer issued" {
				t.Errorf("header = %q, %v; want the token", value, err)
			}
		})
	}
	<-arrived
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := a.header(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("header after the end of its context: %v, want that it has ended", err)
	}
	close(release)
	waiting.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("the token URL was asked %d times, want once", n)
	}
	a.refused() // the remote did not accept it
	if _, _, err := a.header(t.Context()); err != nil || asked.Load() != 2 {
		t.Errorf("after a refusal: %v, asked %d times; want a new token", err, asked.Load())
	}
}

// What remotes repeat of a credential in their errors is not shown.
func TestErrorsHideCredentials(t *testing.T) {
	t.Parallel()
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost { // the token URL
			_, secret, _ := r.BasicAuth()
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"error":"invalid_client","error_description":"the secret is not %s"}`, secret+r.FormValue("client_secret"))
			return
		}
		w.Header().Set("Location", "/sign-in?with="+r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusFound)
	}))
	defer remote.Close()
	plain := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	guard, err := outbound.New(outbound.Options{Allow: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	n := &network{client: plain, guard: guard, version: "1"}
	for _, c := range []*Credential{
		{Type: Bearer, Token: "s3cret"},
		{Type: OAuth, TokenURL: remote.URL, ClientID: "us", ClientSecret: "s3cret"},
	} {
		_, p := n.fetchCard(t.Context(), remote.URL, newAuthenticator(c, plain, guard), Card{})
		if p == nil || strings.Contains(p.Error(), "s3cret") || !strings.Contains(p.Error(), "[credential]") {
			t.Errorf("%s: problem = %v, want one with the credential hidden", c.Type, p)
		}
	}
}
