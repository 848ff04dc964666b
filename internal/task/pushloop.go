package task

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// Delivery is one event on its way to a receiver.
type Delivery struct {
	Config PushConfig
	// Task is the event's. In form 0.3, which sends it, it is folded up to the event;
	// in form 1.0 it has its names and no messages or artifacts, so that a delivery
	// costs what it sends and not what the task holds.
	Task    Task
	Event   Event
	Seq     int64
	ID      string // the same for every attempt
	Attempt int    // from 1
}

// Pusher brings events to receivers. An error whose Permanent method answers true
// is not tried again; one with a RetryAfter not before that.
type Pusher interface {
	Push(ctx context.Context, d Delivery) error
}

// PushRetry says how often and when a delivery that failed is tried again. Zero
// fields mean the default.
type PushRetry struct {
	First    time.Duration // after the first failure; doubles with each; 1 s
	Most     time.Duration // 10 min
	Attempts int           // to push one event; 12
	Claim    time.Duration // how long a node may take for one event; 30 s
}

func (r PushRetry) orDefault() PushRetry {
	return PushRetry{
		First: cmp.Or(r.First, time.Second), Most: cmp.Or(r.Most, 10*time.Minute),
		Attempts: cmp.Or(r.Attempts, 12), Claim: cmp.Or(r.Claim.Truncate(time.Microsecond), 30*time.Second),
	}
}

// after is how long to wait after so many failures: between three quarters and all
// of the time, so that what failed together does not come back together.
func (r PushRetry) after(failures int) time.Duration {
	d := r.Most
	if n := failures - 1; n < 40 {
		d = min(r.First<<n, r.Most)
	}
	return d - time.Duration(rand.Int64N(int64(d)/4+1)) // jitter
}

// next is after, or what the receiver asks for if that is longer, up to Most: who
// says 429 knows better, and who asks for a day would only keep the events.
func (r PushRetry) next(failures int, cause error) time.Duration {
	var asks interface{ RetryAfter() time.Duration }
	d := r.after(failures)
	if errors.As(cause, &asks) {
		d = max(d, min(asks.RetryAfter(), r.Most))
	}
	return d
}

// PushOutcome is what became of one attempt.
type PushOutcome string

// The outcomes of attempts.
const (
	PushDelivered PushOutcome = "delivered"
	PushFailed    PushOutcome = "failed"
	PushGivenUp   PushOutcome = "dead" // failed, and was the last
)

// PushOutcomes lists every outcome.
var PushOutcomes = []PushOutcome{PushDelivered, PushFailed, PushGivenUp}

const (
	pushPoll     = time.Second
	maxPushError = 500
)

// pushLoop pushes what is due.
type pushLoop struct {
	s     *Tasks
	retry PushRetry
	wake  chan struct{}
	work  sync.WaitGroup

	mu   sync.Mutex
	room PushClaim // what still fits
}

func newPushLoop(s *Tasks) *pushLoop {
	retry := s.PushRetry.orDefault()
	return &pushLoop{s: s, retry: retry, wake: make(chan struct{}, 1), room: newPushClaim(retry.Claim)}
}

// nudge says that something may be due.
func (l *pushLoop) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run pushes until ctx ends, then waits for what is on its way. The poll finds
// retries, and what other nodes could not finish.
func (l *pushLoop) run(ctx context.Context) {
	if l.s.Pusher == nil {
		return
	}
	defer l.work.Wait()
	poll := time.NewTicker(pushPoll)
	defer poll.Stop()
	for {
		if err := l.claim(ctx); err != nil && ctx.Err() == nil {
			l.s.OnError(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		case <-poll.C:
		}
	}
}

// claim takes what is due as long as there is room for it.
func (l *pushLoop) claim(ctx context.Context) error {
	for ctx.Err() == nil {
		l.mu.Lock()
		c := l.room.clone()
		l.mu.Unlock()
		if c.Most <= 0 {
			return nil // whatever ends nudges
		}
		claimed, err := l.s.Store.ClaimPushes(ctx, c)
		for _, p := range claimed {
			l.start(ctx, p)
		}
		if err != nil || len(claimed) == 0 {
			return err
		}
	}
	return nil
}

func (l *pushLoop) start(ctx context.Context, p Push) {
	l.mu.Lock()
	fits := l.room.Take(&p)
	l.mu.Unlock()
	l.work.Go(func() {
		if !fits {
			// It was changed after it was chosen, to a receiver that is being pushed to as often
			// as it may be. The next look chooses by the new receiver.
			if err := l.release(context.WithoutCancel(ctx), p); err != nil && !over(err) {
				l.s.OnError(err)
			}
			return
		}
		defer func() {
			l.mu.Lock()
			l.room.free(&p)
			l.mu.Unlock()
			l.nudge()
		}()
		if err := l.deliver(ctx, p); err != nil && !over(err) {
			l.s.OnError(err) // the claim's end makes it due again
		}
	})
}

// errClaimLost says that somebody else is at it, or that it was replaced.
var errClaimLost = errors.New("the claim is over")

// over reports whether there is nothing left to do for a claim.
func over(err error) bool { return errors.Is(err, errClaimLost) || errs.KindOf(err) == errs.NotFound }

// deliver pushes what the receiver does not have yet, one event after the other.
// An event on its way is not cut off when the server stops, but it is the last.
func (l *pushLoop) deliver(stopping context.Context, p Push) error {
	ctx := context.WithoutCancel(stopping)
	t, err := l.s.Store.TaskRow(ctx, p.Org, p.UID)
	if err != nil {
		return err
	}
	p.TaskID = t.ID
	t.State, t.UpdatedAt, t.Seq = Submitted, t.CreatedAt, 0
	after := p.Cursor
	if p.Form == PushV03 {
		after = 0
	}
	for {
		events, err := l.s.Store.TaskEvents(ctx, p.Org, p.UID, after, 100)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			_, err := l.settle(ctx, p, func(now *Push, _ time.Time) { now.Cursor = after })
			return err
		}
		for i := range events {
			e := &events[i]
			t.Apply(e)
			after = e.Seq
			if e.Seq <= p.Cursor || e.Kind == TurnEvent { // the sender knows what it said
				continue
			}
			if stopping.Err() != nil {
				return l.release(ctx, p)
			}
			more, err := l.push(ctx, &p, t, e)
			if err != nil || !more {
				return err
			}
		}
	}
}

// push pushes one event and writes down what came of it; more: the next one may
// follow at once.
func (l *pushLoop) push(ctx context.Context, p *Push, t Task, e *Event) (more bool, err error) {
	if p.Form != PushV03 {
		t.History, t.Artifacts = nil, nil
	}
	d := Delivery{Config: p.PushConfig, Task: t, Event: *e, Seq: e.Seq, ID: deliveryID(p, e.Seq), Attempt: p.Attempts + 1}
	failure := l.try(ctx, d)
	outcome := PushDelivered
	next, err := l.settle(ctx, *p, func(now *Push, clock time.Time) {
		now.LastAttemptAt = clock
		if failure == nil {
			now.Cursor, now.Attempts, now.LastError = e.Seq, 0, ""
			if e.Kind == StatusEvent && e.State.Terminal() {
				now.State = PushDone
			}
			return
		}
		outcome = PushFailed
		now.Attempts++
		now.LastError = shorten(failure.Error(), maxPushError)
		now.DueAt = clock.Add(l.retry.next(now.Attempts, failure))
		if permanent(failure) || now.Attempts >= l.retry.Attempts {
			outcome, now.State = PushGivenUp, PushDead
		}
	})
	if l.s.OnPush != nil {
		l.s.OnPush(outcome)
	}
	*p = next
	return err == nil && failure == nil && next.DueAt.Equal(next.ClaimedUntil) && !next.DueAt.IsZero(), err
}

// try calls the pusher, in less time than the claim lasts.
func (l *pushLoop) try(ctx context.Context, d Delivery) (err error) {
	ctx, cancel := context.WithTimeout(ctx, l.retry.Claim*2/3)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the pusher panicked: %v", p)
		}
	}()
	return l.s.Pusher.Push(ctx, d)
}

// settle writes what an attempt led to, if the claim still is ours. Unless that
// ended it, the claim goes on while there is more, and ends with the last event.
func (l *pushLoop) settle(ctx context.Context, p Push, change func(now *Push, clock time.Time)) (Push, error) {
	out, err := l.s.Store.UpdatePush(ctx, p.Org, p.UID, p.ID, func(now Push, clock time.Time) (Push, error) {
		if !now.ClaimedUntil.Equal(p.ClaimedUntil) {
			return now, errClaimLost
		}
		now.DueAt = time.Time{}
		change(&now, clock)
		switch {
		case now.State != PushActive:
			now.DueAt, now.ClaimedUntil = time.Time{}, time.Time{}
		case !now.DueAt.IsZero():
			now.ClaimedUntil = time.Time{}
		case now.Cursor < now.Head:
			now.DueAt = clock.Add(l.retry.Claim)
			now.ClaimedUntil = now.DueAt
		default:
			now.ClaimedUntil = time.Time{}
		}
		return now, nil
	})
	out.PushConfig.TaskID = p.TaskID
	return out, err
}

// release gives a claim up, so that another node can go on at once.
func (l *pushLoop) release(ctx context.Context, p Push) error {
	_, err := l.settle(ctx, p, func(now *Push, clock time.Time) { now.DueAt = clock })
	return err
}

func permanent(err error) bool {
	var p interface{ Permanent() bool }
	return errors.As(err, &p) && p.Permanent()
}

// deliveryID names a delivery; a receiver that sees it again has had it before.
func deliveryID(p *Push, seq int64) string {
	id := p.ID
	if len(id) > 64 || strings.ContainsFunc(id, func(r rune) bool { return r == '.' || notHTTPToken(r) }) {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:12])
	}
	return fmt.Sprintf("%s-%s-%d", p.UID, id, seq)
}

// shorten cuts a text for people.
func shorten(s string, most int) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
