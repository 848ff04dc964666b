package delivery

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/trace"
)

// Options configure a Service.
type Options struct {
	Store     Store
	Sources   map[Kind]Source
	Sender    Sender // nil if this node sends nothing
	Retry     Retry
	Tracer    *trace.Tracer // nil: no spans
	OnAttempt func(Outcome) // may be nil
	OnError   func(error)
}

// Service delivers due events of all kinds.
type Service struct {
	store     Store
	sources   map[Kind]Source
	sender    Sender
	retry     Retry
	tracer    *trace.Tracer
	onAttempt func(Outcome)
	onError   func(error)

	wake     chan struct{} // buffered
	inFlight *inFlight
	work     sync.WaitGroup
}

// New returns a Service. It delivers nothing until Run is called.
func New(o Options) *Service {
	retry := o.Retry.orDefault()
	return &Service{
		store: o.Store, sources: o.Sources, sender: o.Sender, retry: retry, tracer: o.Tracer,
		onAttempt: o.OnAttempt, onError: o.OnError,
		wake: make(chan struct{}, 1), inFlight: newInFlight(o.Store, retry.Claim),
	}
}

// Nudge wakes Run because a subscription may be due.
func (s *Service) Nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Retry makes a dead subscription due again. allow may refuse it. It is called inside the
// store's transaction, possibly more than once.
func (s *Service) Retry(ctx context.Context, k Key, allow func(Progress) error) (Progress, error) {
	p, err := s.store.Update(ctx, k, func(p Progress, clock time.Time) (Progress, error) {
		if err := allow(p); err != nil {
			return p, err
		}
		p.State, p.Attempts, p.DueAt, p.ClaimedUntil = Active, 0, clock, time.Time{}
		return p, nil
	})
	if err == nil {
		s.Nudge()
	}
	return p, err
}

const pollEvery = time.Second

// Run delivers until ctx ends, then waits for the requests in flight, at most StopGrace. Polling
// finds retries that have become due.
func (s *Service) Run(ctx context.Context) {
	if s.sender == nil {
		return
	}
	defer s.work.Wait()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	s.work.Go(func() { s.releaseLost(ctx) })
	for {
		if err := s.startDue(ctx); err != nil && ctx.Err() == nil {
			s.onError(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-poll.C:
		}
	}
}

// releaseLost makes due again what nodes that are gone had claimed, until ctx ends. It may have to
// wait for the store, which delays no delivery.
func (s *Service) releaseLost(ctx context.Context) {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		if err := s.store.Release(ctx); err != nil && ctx.Err() == nil {
			s.onError(err)
		}
		s.Nudge()
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		}
	}
}

// startDue starts due deliveries until there are no more, or no room for more. In the
// second case, the next delivery to finish nudges.
func (s *Service) startDue(ctx context.Context) error {
	for ctx.Err() == nil {
		// A claim that is committed while the server stops must be released, or nobody works on it
		// until it expires.
		claimed, err := s.inFlight.claim(context.WithoutCancel(ctx))
		for _, c := range claimed {
			s.work.Go(func() { s.run(ctx, c) })
		}
		if err != nil || len(claimed) == 0 {
			return err
		}
	}
	return nil
}

// run works on one claim. After an error the subscription is due again when the claim
// expires.
func (s *Service) run(ctx context.Context, c *claim) {
	var err error
	if c.fits {
		defer s.Nudge()
		defer s.inFlight.free(c)
		err = s.deliver(ctx, c)
	} else {
		err = s.release(context.WithoutCancel(ctx), &c.sub, c.sub.Cursor)
	}
	if err != nil && !over(err) {
		s.onError(err)
	}
}

// errClaimLost means that the claim expired, that another node released it, or that the subscription
// was replaced.
var errClaimLost = errors.New("the claim is over")

// over reports whether nothing is left to do for a claim.
func over(err error) bool { return errors.Is(err, errClaimLost) || errs.KindOf(err) == errs.NotFound }
