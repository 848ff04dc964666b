package app

import (
	"context"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

const (
	probeStore   = time.Second     // how often the store is checked
	probeTimeout = 3 * time.Second // how long one check may take
	probeStale   = 4 * time.Second // how old the last successful check may be
)

// probe checks the store in the background, so that a health check never waits for the
// store.
type probe struct {
	check func(context.Context) error
	now   func() time.Time

	mu   sync.Mutex
	good time.Time // when the last successful check ended
	err  error     // of the last check
}

func newProbe(check func(context.Context) error) *probe {
	return &probe{
		check: check, now: time.Now,
		err: errs.New(errs.Unavailable, "store.unavailable", "the store was not checked yet"),
	}
}

// run checks until ctx ends.
func (p *probe) run(ctx context.Context) {
	tick := time.NewTicker(probeStore)
	defer tick.Stop()
	for {
		p.once(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (p *probe) once(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := p.check(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err = err; err == nil {
		p.good = p.now()
	}
}

// state returns nil if the store works.
func (p *probe) state() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	if age := p.now().Sub(p.good); age > probeStale {
		e := errs.New(errs.Unavailable, "store.unavailable",
			"the last successful check of the store was %s ago", age.Round(time.Second))
		e.RetryAfter = time.Second
		return e
	}
	return nil
}
