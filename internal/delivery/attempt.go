package delivery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/trace"
)

// A turn is what one claim may do. A subscription with more to send is released when its turn is
// over and stays due, so that one that never catches up does not keep its slot from others.
const (
	turnEvents = 50              // requests
	turnTime   = 5 * time.Second // after which no other request begins; a quarter of the claim if that is shorter
)

// StopGrace is how long a request in flight may take when the server stops. Then it is canceled. It
// does not count as an attempt, and is sent again by another node or after the restart.
const StopGrace = 2 * time.Second

// deliver sends the events after the cursor, one by one, until the turn is over. When the server
// stops, the request in flight may finish within StopGrace, and no other follows.
func (s *Service) deliver(stopping context.Context, c *claim) error {
	sub := &c.sub
	source := s.sources[sub.Kind]
	if source == nil {
		return fmt.Errorf("no source for subscriptions of kind %q", sub.Kind)
	}
	ctx := context.WithoutCancel(stopping)
	requests, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(stopping, func() { time.AfterFunc(StopGrace, cancel) })()
	start, passed, sent := sub.Cursor, sub.Cursor, 0
	began, turn := time.Now(), min(turnTime, s.retry.Claim/4)
	for e, err := range source.Events(ctx, sub) {
		if err != nil {
			return err
		}
		// A long list of events that the receiver does not get must not outlast the claim either.
		if stopping.Err() != nil || sent == turnEvents || time.Since(began) > turn && passed > start {
			return s.release(ctx, sub, passed)
		}
		if e.Encode != nil {
			if more, err := s.send(ctx, requests, c, &e, passed); err != nil || !more {
				return err
			}
			sent++
		}
		passed = e.Seq
	}
	return s.settle(ctx, sub, func(p Progress, clock time.Time) Progress {
		if p = p.pass(passed); passed > start && passed < p.Head {
			p.DueAt = clock // the list has grown meanwhile
		}
		return p
	})
}

// pass moves the cursor over events that the receiver does not get. The failures were about an
// event that will not be sent any more.
func (p Progress) pass(to int64) Progress {
	if to > p.Cursor {
		p.Cursor, p.Attempts, p.LastError, p.FailingSince = to, 0, "", time.Time{}
	}
	return p
}

// send sends one event and records the outcome. passed is the number of the event before it; what
// was passed is kept also if the attempt fails. more reports whether the next event may be sent
// under the same claim. requests ends when the server does not wait for the attempt any longer.
func (s *Service) send(ctx, requests context.Context, c *claim, e *Event, passed int64) (more bool, err error) {
	sub := &c.sub
	if passed > sub.Cursor {
		sub.Cursor, sub.Attempts = passed, 0 // the attempts were for an event that was passed
	}
	cursor, attempts, began := sub.Cursor, sub.Attempts, time.Now()
	slow := time.AfterFunc(slowAfter, func() {
		s.inFlight.slow(c)
		s.Nudge() // there may be room in the fast lane now
	})
	response, failure := s.try(requests, sub, e)
	if slow.Stop() && failure == nil {
		s.inFlight.quick(sub.Key)
	}
	if failure != nil && requests.Err() != nil {
		return false, s.release(ctx, sub, passed)
	}
	tried := &Attempt{
		Seq: e.Seq, EventID: e.ID, Type: e.Type, Number: attempts + 1, Latency: time.Since(began), Response: response,
	}
	outcome := Delivered
	if failure != nil {
		outcome = Failed // also if the result cannot be recorded
	}
	err = s.settle(ctx, sub, func(p Progress, clock time.Time) Progress {
		p.Cursor, p.Attempts = cursor, attempts
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
		Header: header, Trace: e.Trace, Body: body, Sign: e.Sign,
	}
	if r.ID == "" {
		r.ID = requestID(sub.Key, e.Seq)
	}
	if s.tracer == nil {
		err = s.sender.Send(ctx, r)
	} else {
		err = s.sendTraced(ctx, r)
	}
	return r.Response, err
}

// sendTraced sends a request in a span of the event's trace. The receiver gets the span. Neither has
// the URL, which may be secret.
func (s *Service) sendTraced(ctx context.Context, r *Request) error {
	ctx, span := s.tracer.StartIn(ctx, r.Trace, trace.Client, string(r.Kind)+" delivery",
		trace.String("parley.org", r.Org), trace.String("parley.topic", r.Topic),
		trace.Int("parley.attempt", r.Attempt))
	defer span.End()
	r.Trace = span.Context()
	err := s.sender.Send(ctx, r)
	if r.Response.Status != 0 {
		span.Set(trace.Int("http.response.status_code", r.Response.Status))
	}
	if err != nil {
		span.Fail("the delivery failed")
	}
	return err
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

// release ends a claim early, so that others get their turn, or another node can continue at once.
// passed is the number of the last event that was sent or passed.
func (s *Service) release(ctx context.Context, sub *Subscription, passed int64) error {
	return s.settle(ctx, sub, func(p Progress, clock time.Time) Progress {
		p = p.pass(passed)
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
