package rest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

// TestAClaimThatWaitsHoldsNoSlot lets a worker wait with as many claims as allowed, which is more
// than its limit of concurrent requests.
func TestAClaimThatWaitsHoldsNoSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *httpx.Options, _ *Options) {
		o.MaxRequests, o.Parked = 4, httpx.ParkLimits{PerPrincipal: 3}
	})
	worker := w.key("acme", "agent:fixer", identity.A2AServe)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	claim := func() *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/v1/agents/fixer/claim",
			strings.NewReader(`{"wait_seconds":60}`))
		r.Header.Set("Authorization", "Bearer "+worker)
		r.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		w.handler.ServeHTTP(rec, r)
		return rec
	}
	refused := make(chan *httptest.ResponseRecorder, 100)
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		go func() { refused <- claim() }()
		select {
		case rec := <-refused:
			if strings.Contains(rec.Body.String(), "request.too_many_concurrent") {
				continue // earlier claims do not wait yet
			}
			if rec.Code != http.StatusTooManyRequests || !strings.Contains(rec.Body.String(), `"wait.too_many"`) ||
				rec.Header().Get("Retry-After") == "" {
				t.Errorf("got %v %v, want Code %v, containing \"wait.too_many\", Retry-After not empty", rec.Code, rec.Body,
					http.StatusTooManyRequests)
			}
			return
		case <-time.After(100 * time.Millisecond): // it waits
		}
	}
	t.Error("any number of claims may wait")
}
