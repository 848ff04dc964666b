package worker

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

const (
	// gatherFor is how long a result waits for those of other handlers.
	gatherFor = time.Millisecond
	// maxReports and maxReportBytes limit the results in one request. A larger one has a request of
	// its own.
	maxReports     = 100
	maxReportBytes = 1 << 20
	// A further request is sent if the last one got no response for this long, so that a request
	// that hangs delays no other results. Some may be in flight at a time.
	exchangeSlow = 500 * time.Millisecond
	maxExchanges = 4
	// singleFor is how long results are sent alone to a server that does not know exchanges.
	singleFor = 5 * time.Minute
	// warnEvery is how often at most claims that fail are logged.
	warnEvery = 10 * time.Second
)

// outbox has the results of handlers that wait to be sent.
type outbox struct {
	mu     sync.Mutex
	items  []*result
	flying int       // requests in flight
	began  time.Time // when the last of them was sent
	ended  time.Time // when the last response arrived
	single time.Time // until when the server is taken for one that does not know exchanges
	warned time.Time // of a claim that failed
	closed bool
	wake   chan struct{}
}

// result is a report that ends a lease.
type result struct {
	hold   *hold
	report client.LeaseReport
	size   int
	done   chan sent // buffered
}

// sent is what became of a result.
type sent struct {
	progress *client.WorkProgress
	err      error
	alone    bool // it must be sent in a request of its own
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.signal()
}

// idle returns how long ago the server last heard of this worker by a result.
func (o *outbox) idle() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Since(o.ended)
}

// put adds a result. It returns false if results are not sent together.
func (o *outbox) put(r *result) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Now().Before(o.single) || o.closed {
		return false
	}
	o.items = append(o.items, r)
	return true
}

// remove removes a result whose handler no longer waits, if it was not sent.
func (o *outbox) remove(r *result) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.items = slices.DeleteFunc(o.items, func(x *result) bool { return x == r })
}

// deliver sends a result, together with others if possible.
func (s *shift) deliver(ctx context.Context, h *hold, r client.WorkReport) (*client.WorkProgress, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return h.alone(ctx, h, r) // explains the error
	}
	item := &result{
		hold: h, size: len(text), done: make(chan sent, 1),
		report: client.LeaseReport{Lease: h.token, Report: r, Trace: client.TraceOf(ctx)},
	}
	if item.size > maxReportBytes || !s.outbox.put(item) {
		return h.alone(ctx, h, r)
	}
	s.outbox.signal()
	select {
	case got := <-item.done:
		if got.alone {
			return h.alone(ctx, h, r)
		}
		return got.progress, got.err
	case <-ctx.Done():
		s.outbox.remove(item)
		return nil, ctx.Err()
	}
}

// sendResults sends what is in the outbox until it is closed.
func (s *shift) sendResults() {
	// No handler waits for a result after the end of drain.
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.work))
	var flying sync.WaitGroup
	defer flying.Wait()
	defer cancel()
	for !s.outbox.isClosed() {
		s.gather()
		if batch := s.next(); len(batch) > 0 {
			flying.Go(func() { s.exchange(ctx, batch) })
		}
		var slow <-chan time.Time
		if s.outbox.waits() {
			slow = time.After(exchangeSlow)
		}
		select {
		case <-s.outbox.wake:
		case <-slow:
		}
	}
}

// warns reports whether it is time to log again that a claim failed.
func (o *outbox) warns() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if now.Sub(o.warned) < warnEvery {
		return false
	}
	o.warned = now
	return true
}

func (o *outbox) isClosed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

// waits reports whether results wait for a request in flight to end.
func (o *outbox) waits() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.items) > 0
}

// gather waits a moment for the results of other handlers that run.
func (s *shift) gather() {
	over := time.NewTimer(gatherFor)
	defer over.Stop()
	for s.expects() {
		select {
		case <-s.outbox.wake:
		case <-over.C:
			return
		}
	}
}

// expects reports whether there are results, and more may follow.
func (s *shift) expects() bool {
	s.mu.Lock()
	running := len(s.holds) - len(s.leaving)
	s.mu.Unlock()
	s.outbox.mu.Lock()
	defer s.outbox.mu.Unlock()
	n := len(s.outbox.items)
	return n > 0 && n < running && n < maxReports && !s.outbox.closed
}

// next takes the results for the next request, if it is time for one.
func (s *shift) next() []*result {
	o := &s.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.flying >= maxExchanges || o.flying > 0 && time.Since(o.began) < exchangeSlow {
		return nil
	}
	n, size := 0, 0
	for n < min(len(o.items), maxReports) && (n == 0 || size+o.items[n].size <= maxReportBytes) {
		size += o.items[n].size
		n++
	}
	if n == 0 {
		return nil
	}
	batch := o.items[:n:n]
	o.items = o.items[n:]
	o.flying++
	o.began = time.Now()
	return batch
}

// exchange sends results and asks for tasks for their slots.
func (s *shift) exchange(ctx context.Context, batch []*result) {
	req := client.ExchangeRequest{Reports: make([]client.LeaseReport, len(batch))}
	s.mu.Lock()
	for i, r := range batch {
		req.Reports[i] = r.report
		if s.holds[r.hold] {
			s.leaving[r.hold] = true
		}
	}
	s.mu.Unlock()
	room := s.reserve()
	if room > 0 {
		claim := s.request(room, 0)
		req.Claim = &claim
	}
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	answer, err := s.leases.Exchange(ctx, req, once)
	cancel()
	if err == nil && len(answer.Reports) != len(batch) {
		err = errors.New("worker: the server responded with a wrong number of results")
	}
	s.landed(err)
	if err != nil {
		s.settleFailed(batch, err)
	} else {
		if req.Claim != nil {
			s.receive(req.Claim.Ack, answer.Messages)
		}
		s.settleEach(batch, answer)
		s.take(answer.Tasks)
	}
	s.release(room)
	s.outbox.signal()
}

// landed records that a request has ended.
func (s *shift) landed(err error) {
	var e *Error
	old := errors.As(err, &e) && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed)
	o := &s.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flying--
	if err == nil {
		o.ended = time.Now()
	}
	if old {
		o.single = time.Now().Add(singleFor)
	}
}

// settleFailed ends the delivery of results whose request failed. If trying again cannot help, each
// is sent alone, so that one bad result does not affect the others.
func (s *shift) settleFailed(batch []*result, err error) {
	_, again := new(backoff).next(err)
	for _, r := range batch {
		s.stays(r.hold)
		r.done <- sent{err: err, alone: !again}
	}
}

func (s *shift) settleEach(batch []*result, answer *client.Exchange) {
	for i, r := range batch {
		got := &answer.Reports[i]
		switch {
		case got.Problem != nil:
			s.stays(r.hold)
			r.done <- sent{err: got.Problem}
		case got.Progress == nil:
			s.stays(r.hold)
			r.done <- sent{alone: true}
		default:
			r.done <- sent{progress: got.Progress}
		}
	}
	if answer.ClaimProblem != nil && s.outbox.warns() {
		s.log.Warn("claim failed", "agent", s.agent, "error", answer.ClaimProblem)
	}
}

// stays records that a task keeps its slot, because its result was not accepted.
func (s *shift) stays(h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.leaving, h)
}
