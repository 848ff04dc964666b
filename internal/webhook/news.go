package webhook

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
)

const (
	// newsWithin is how long news is collected, so that a busy org costs few queries.
	newsWithin = 50 * time.Millisecond
	// pollEvery is how often webhooks are sought whose news was lost: that of another process, or
	// of a node that ended.
	pollEvery = 5 * time.Second
)

// news is the set of orgs whose logs have grown. It is in memory only: what is lost in a crash is
// found by the poll.
type news struct {
	mu    sync.Mutex
	orgs  map[string]struct{}
	timer bool // tell is going to be called
}

// add adds orgs and calls tell soon.
func (n *news) add(tell func(), orgs ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, org := range orgs {
		n.orgs[org] = struct{}{}
	}
	if !n.timer && len(n.orgs) > 0 {
		n.timer = true
		time.AfterFunc(newsWithin, func() {
			n.mu.Lock()
			n.timer = false
			n.mu.Unlock()
			tell()
		})
	}
}

// take empties the set.
func (n *news) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]string, 0, len(n.orgs))
	for org := range n.orgs {
		out = append(out, org)
	}
	clear(n.orgs)
	return out
}

// keep returns orgs to the set. Nothing is told: there is no room for them now, and the engine
// claims again when a delivery ends.
func (n *news) keep(orgs []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, org := range orgs {
		n.orgs[org] = struct{}{}
	}
}

// due is the delivery.Store of webhooks. It claims what the news says.
type due struct {
	store Store
	news  news
}

// Claim implements delivery.Store.
func (d *due) Claim(ctx context.Context, r delivery.Room) ([]delivery.Subscription, error) {
	orgs := d.news.take()
	claimed, left, err := d.store.Claim(ctx, r, orgs)
	if err != nil {
		left = orgs
	}
	d.news.keep(left)
	return claimed, err
}

// Release implements delivery.Store.
func (d *due) Release(ctx context.Context) error { return d.store.Release(ctx) }

// Update implements delivery.Store.
func (d *due) Update(
	ctx context.Context, k delivery.Key, decide func(delivery.Progress, time.Time) (delivery.Progress, error),
) (delivery.Progress, error) {
	return d.store.Progress(ctx, k.Org, k.ID, decide)
}

// Changed tells the service that the log of an org has grown. It does not block.
func (s *Service) Changed(org string) { s.due.news.add(s.engine.Nudge, org) }

// Run delivers events until ctx ends, then waits for the requests in flight, at most
// delivery.StopGrace.
func (s *Service) Run(ctx context.Context) {
	var work sync.WaitGroup
	work.Go(func() { s.engine.Run(ctx) })
	defer work.Wait()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if err := s.poll(ctx); err != nil && ctx.Err() == nil {
			s.onError(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// poll finds webhooks whose news was lost, and counts for Counts.
func (s *Service) poll(ctx context.Context) error {
	b, err := s.store.Behind(ctx)
	if err != nil {
		return err
	}
	s.counts.due.Store(b.Due)
	s.counts.failed.Store(b.Failed)
	s.due.news.add(s.engine.Nudge, b.Orgs...)
	return nil
}

type counts struct{ due, failed atomic.Int64 }

// Counts returns how many webhooks of all orgs have something to deliver and how many have failed,
// as of the last poll.
func (s *Service) Counts() (due, failed int64) { return s.counts.due.Load(), s.counts.failed.Load() }
