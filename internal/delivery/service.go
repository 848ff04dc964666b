package delivery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// Options are what the service is made of.
type Options struct {
	Store     Store
	Source    Source
	Sender    Sender // nil: nothing is delivered from here
	Retry     Retry
	OnAttempt func(Outcome) // nil: nobody counts them
	OnError   func(error)
}

// Service delivers what is due.
type Service struct {
	store     Store
	source    Source
	sender    Sender
	retry     Retry
	onAttempt func(Outcome)
	onError   func(error)

	wake chan struct{} // buffered
	work sync.WaitGroup

	mu   sync.Mutex
	room Room // what still fits
}

// New makes the service; Run must be running for anything to be delivered.
func New(o Options) *Service {
	retry := o.Retry.orDefault()
	return &Service{
		store: o.Store, source: o.Source, sender: o.Sender, retry: retry, onAttempt: o.OnAttempt, onError: o.OnError,
		wake: make(chan struct{}, 1), room: newRoom(retry.Claim),
	}
}

// Nudge says that something may be due.
func (s *Service) Nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Retry makes a dead subscription due again. allow may refuse it; it is asked inside of
// the write, and may be asked again.
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

// Run delivers until ctx ends, then waits for what is on its way. The poll finds
// retries, and what other nodes could not finish.
func (s *Service) Run(ctx context.Context) {
	if s.sender == nil {
		return
	}
	defer s.work.Wait()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		if err := s.claim(ctx); err != nil && ctx.Err() == nil {
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

// claim takes what is due as long as there is room for it.
func (s *Service) claim(ctx context.Context) error {
	for ctx.Err() == nil {
		s.mu.Lock()
		r := s.room.clone()
		s.mu.Unlock()
		if r.Most <= 0 {
			return nil // whatever ends nudges
		}
		claimed, err := s.store.Claim(ctx, r)
		for i := range claimed {
			s.start(ctx, &claimed[i])
		}
		if err != nil || len(claimed) == 0 {
			return err
		}
	}
	return nil
}

func (s *Service) start(ctx context.Context, sub *Subscription) {
	s.mu.Lock()
	fits := s.room.Take(sub.Owner, sub.Receiver, sub.Size)
	s.mu.Unlock()
	s.work.Go(func() {
		if !fits {
			// It was changed after it was chosen, to a receiver that is being sent to as often
			// as it may be. The next look chooses by the new receiver.
			if err := s.release(context.WithoutCancel(ctx), sub); err != nil && !over(err) {
				s.onError(err)
			}
			return
		}
		defer func() {
			s.mu.Lock()
			s.room.free(sub.Owner, sub.Receiver, sub.Size)
			s.mu.Unlock()
			s.Nudge()
		}()
		if err := s.deliver(ctx, sub); err != nil && !over(err) {
			s.onError(err) // the claim's end makes it due again
		}
	})
}

// errClaimLost says that somebody else is at it, or that it was replaced.
var errClaimLost = errors.New("the claim is over")

// over reports whether there is nothing left to do for a claim.
func over(err error) bool { return errors.Is(err, errClaimLost) || errs.KindOf(err) == errs.NotFound }

// deliver sends what the receiver does not have yet, one event after the other.
// An event on its way is not cut off when the server stops, but it is the last.
func (s *Service) deliver(stopping context.Context, sub *Subscription) error {
	ctx := context.WithoutCancel(stopping)
	passed := sub.Cursor
	for e, err := range s.source.Events(ctx, sub) {
		if err != nil {
			return err
		}
		passed = e.Seq
		if e.Encode == nil {
			continue
		}
		if stopping.Err() != nil {
			return s.release(ctx, sub)
		}
		if more, err := s.send(ctx, sub, &e); err != nil || !more {
			return err
		}
	}
	return s.settle(ctx, sub, func(p Progress, _ time.Time) Progress {
		p.Cursor = passed
		return p
	})
}

// send sends one event and writes down what came of it; more: the next one may
// follow at once.
func (s *Service) send(ctx context.Context, sub *Subscription, e *Event) (more bool, err error) {
	failure := s.try(ctx, sub, e)
	outcome := Delivered
	err = s.settle(ctx, sub, func(p Progress, clock time.Time) Progress {
		p, outcome = s.retry.settled(p, e, failure, clock)
		return p
	})
	if s.onAttempt != nil {
		s.onAttempt(outcome)
	}
	return err == nil && failure == nil && sub.DueAt.Equal(sub.ClaimedUntil) && !sub.DueAt.IsZero(), err
}

// try makes one attempt, in less time than the claim lasts.
func (s *Service) try(ctx context.Context, sub *Subscription, e *Event) (err error) {
	ctx, cancel := context.WithTimeout(ctx, s.retry.Claim*2/3)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the sender panicked: %v", p)
		}
	}()
	header, body := e.Encode()
	return s.sender.Send(ctx, &Request{
		Subscription: *sub, Seq: e.Seq, ID: requestID(sub.Key, e.Seq), Attempt: sub.Attempts + 1,
		Header: header, Body: body,
	})
}

// settle writes what an attempt led to, if the claim still is ours. Unless that
// ended it, the claim goes on while there is more, and ends with the last event.
func (s *Service) settle(
	ctx context.Context, sub *Subscription, change func(p Progress, clock time.Time) Progress,
) error {
	out, err := s.store.Update(ctx, sub.Key, func(p Progress, clock time.Time) (Progress, error) {
		if !p.ClaimedUntil.Equal(sub.ClaimedUntil) {
			return p, errClaimLost
		}
		p.DueAt = time.Time{}
		p = change(p, clock)
		switch {
		case p.State != Active:
			p.DueAt, p.ClaimedUntil = time.Time{}, time.Time{}
		case !p.DueAt.IsZero():
			p.ClaimedUntil = time.Time{}
		case p.Cursor < p.Head:
			p.DueAt = clock.Add(s.retry.Claim)
			p.ClaimedUntil = p.DueAt
		default:
			p.ClaimedUntil = time.Time{}
		}
		return p, nil
	})
	if err == nil {
		sub.Progress = out
	}
	return err
}

// release gives a claim up, so that another node can go on at once.
func (s *Service) release(ctx context.Context, sub *Subscription) error {
	return s.settle(ctx, sub, func(p Progress, clock time.Time) Progress {
		p.DueAt = clock
		return p
	})
}

// requestID names a request; a receiver that sees it again has had it before. It travels in
// a header, and is signed with a dot behind it.
func requestID(k Key, seq int64) string {
	id := k.ID
	if len(id) > 64 || strings.ContainsFunc(id, notPlain) {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:12])
	}
	return fmt.Sprintf("%s-%s-%d", k.Topic, id, seq)
}

// notPlain reports whether a header could not have the character, or a dot could be
// mistaken for the end of the id.
func notPlain(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') &&
		!strings.ContainsRune("!#$%&'*+-^_`|~", r)
}
