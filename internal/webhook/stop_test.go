package webhook_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/webhook"
)

// A server that stops does not wait for the receiver of a ping. The admin is told to repeat it, and
// it is not recorded as a failure.
func TestAStopEndsAPingThatStalls(t *testing.T) {
	t.Parallel()
	s := newSite(t, delivery.Retry{}, func(s *site) { s.limit = time.Minute })
	arrived := make(chan struct{})
	r := listen(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	})
	hook, _ := s.create(webhook.Creation{URL: r.URL})
	go func() {
		<-arrived
		s.Stop()
	}()
	_, err := s.Ping(t.Context(), s.admin, hook.ID)
	if e := errs.As(err); e.Kind != errs.Unavailable || e.Code != "webhook.stopping" || e.RetryAfter <= 0 {
		t.Errorf("error = %v, want webhook.stopping with a retry time", err)
	}
	if list := s.deliveries(hook.ID); len(list) != 0 {
		t.Errorf("deliveries = %+v, want none", list)
	}
}
