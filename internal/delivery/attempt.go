package delivery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// deliver sends the events after the cursor, one by one. When the server stops, the request
// in flight is finished, and no other follows.
func (s *Service) deliver(stopping context.Context, sub *Subscription) error {
	source := s.sources[sub.Kind]
	if source == nil {
		return fmt.Errorf("no source for subscriptions of kind %q", sub.Kind)
	}
	ctx := context.WithoutCancel(stopping)
	start, passed, written := sub.Cursor, sub.Cursor, time.Now()
	for e, err := range source.Events(ctx, sub) {
		if err != nil {
			return err
		}
		passed = e.Seq
		if e.Encode == nil {
			// A long list of events that the receiver does not get must not outlast the claim.
			if time.Since(written) > s.retry.Claim/3 {
				if err := s.pass(ctx, sub, passed); err != nil || sub.ClaimedUntil.IsZero() {
					return err
				}
				written = time.Now()
			}
			continue
		}
		if stopping.Err() != nil {
			return s.release(ctx, sub)
		}
		if more, err := s.send(ctx, sub, &e); err != nil || !more {
			return err
		}
		written = time.Now()
	}
	return s.settle(ctx, sub, func(p Progress, clock time.Time) Progress {
		if p.Cursor = passed; passed > start && passed < p.Head {
			p.DueAt = clock // the list has grown meanwhile
		}
		return p
	})
}

// pass moves the cursor over events that the receiver does not get.
func (s *Service) pass(ctx context.Context, sub *Subscription, to int64) error {
	return s.settle(ctx, sub, func(p Progress, _ time.Time) Progress {
		p.Cursor = to
		return p
	})
}

// send sends one event and records the outcome. more reports whether the next event may be
// sent under the same claim.
func (s *Service) send(ctx context.Context, sub *Subscription, e *Event) (more bool, err error) {
	began := time.Now()
	response, failure := s.try(ctx, sub, e)
	tried := &Attempt{
		Seq: e.Seq, EventID: e.ID, Type: e.Type, Number: sub.Attempts + 1, Latency: time.Since(began), Response: response,
	}
	outcome := Delivered
	if failure != nil {
		outcome = Failed // also if the result cannot be recorded
	}
	err = s.settle(ctx, sub, func(p Progress, clock time.Time) Progress {
		p, outcome = s.retry.settled(p, e, failure, clock)
		tried.At, tried.Outcome, tried.Error = clock, outcome, p.LastError
		p.Tried = tried
		return p
	})
	if s.onAttempt != nil {
		s.onAttempt(outcome)
	}
	return err == nil && failure == nil && sub.DueAt.Equal(sub.ClaimedUntil) && !sub.DueAt.IsZero(), err
}

// try makes one attempt. Its timeout is shorter than the claim.
func (s *Service) try(ctx context.Context, sub *Subscription, e *Event) (_ Response, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.retry.Claim*2/3)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the sender panicked: %v", p)
		}
	}()
	header, body := e.Encode()
	r := &Request{
		Subscription: *sub, Seq: e.Seq, ID: e.ID, Attempt: sub.Attempts + 1,
		Header: header, Body: body, Sign: e.Sign,
	}
	if r.ID == "" {
		r.ID = requestID(sub.Key, e.Seq)
	}
	err = s.sender.Send(ctx, r)
	return r.Response, err
}

// settle writes the result of an attempt if this node still holds the claim. If the
// subscription stays active and has more events, the claim is extended; otherwise it ends.
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
		sub.Tried = nil
	}
	return err
}

// release ends a claim early, so that another node can continue at once.
func (s *Service) release(ctx context.Context, sub *Subscription) error {
	return s.settle(ctx, sub, func(p Progress, clock time.Time) Progress {
		p.DueAt = clock
		return p
	})
}

// requestID returns the id of a request, by which a receiver recognizes repeated attempts.
// It is sent in a header, and the signature covers it with a trailing dot.
func requestID(k Key, seq int64) string {
	id := k.ID
	if len(id) > 64 || strings.ContainsFunc(id, notPlain) {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:12])
	}
	return fmt.Sprintf("%s-%s-%d", k.Topic, id, seq)
}

// notPlain reports whether a character is not allowed in a header token. A dot is excluded
// too, because it ends the id in the signed text.
func notPlain(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') &&
		!strings.ContainsRune("!#$%&'*+-^_`|~", r)
}
