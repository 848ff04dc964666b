package delivery

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"strings"
	"time"
)

// Retry is the policy for failed deliveries. Zero fields mean the default.
type Retry struct {
	First    time.Duration // the first delay; doubles with each failure; default 1 s
	Most     time.Duration // the longest delay; default 10 min
	Attempts int           // to deliver one event; default 12
	For      time.Duration // if set, the length of a series of failures after which it gives up, instead of Attempts
	Claim    time.Duration // how long a node may take for one event; default 30 s
}

func (r Retry) orDefault() Retry {
	return Retry{
		First: cmp.Or(r.First, time.Second), Most: cmp.Or(r.Most, 10*time.Minute),
		Attempts: cmp.Or(r.Attempts, 12), For: r.For, Claim: cmp.Or(r.Claim.Truncate(time.Microsecond), 30*time.Second),
	}
}

// after returns the delay after a number of failures. It is shortened by up to a quarter at
// random, so that deliveries that failed together are not retried together.
func (r Retry) after(failures int) time.Duration {
	d := r.Most
	if n := failures - 1; n < 40 {
		d = min(r.First<<n, r.Most)
	}
	return d - time.Duration(rand.Int64N(int64(d)/4+1))
}

// next returns the delay before the next attempt: that of after, or the one that the receiver
// asks for if it is longer, but at most Most.
func (r Retry) next(failures int, cause error) time.Duration {
	var asks interface{ RetryAfter() time.Duration }
	d := r.after(failures)
	if errors.As(cause, &asks) {
		d = max(d, min(asks.RetryAfter(), r.Most))
	}
	return d
}

// settled returns the progress after an attempt, and the outcome of the attempt.
func (r Retry) settled(p Progress, e *Event, failure error, clock time.Time) (Progress, Outcome) {
	before := p.LastAttemptAt
	p.LastAttemptAt = clock
	if failure == nil {
		p.Cursor, p.Attempts, p.LastError, p.FailingSince = e.Seq, 0, "", time.Time{}
		if e.Last {
			p.State = Done
		}
		return p, Delivered
	}
	p.Attempts++
	p.LastError = ErrorText(failure)
	p.DueAt = clock.Add(r.next(p.Attempts, failure))
	if p.FailingSince.IsZero() || r.interrupted(before, clock) {
		p.FailingSince = clock
	}
	if permanent(failure) || r.exhausted(&p, clock) {
		p.State = Dead
		return p, GivenUp
	}
	return p, Failed
}

// interrupted reports whether a failure begins a new series, because the attempt before it was
// long ago. A series has an attempt at least every Most, a little later if the node was busy or had
// crashed. A longer pause means that there was nothing to send or that no node was running, and does
// not count against the receiver.
func (r Retry) interrupted(before, clock time.Time) bool { return clock.Sub(before) > 2*r.Most+r.Claim }

// exhausted reports whether a failing subscription is given up.
func (r Retry) exhausted(p *Progress, clock time.Time) bool {
	if r.For > 0 {
		return clock.Sub(p.FailingSince) >= r.For
	}
	return p.Attempts >= r.Attempts
}

const maxError = 500 // bytes of an error text that are stored

func permanent(err error) bool {
	var p interface{ Permanent() bool }
	return errors.As(err, &p) && p.Permanent()
}

// ErrorText returns the text of a failure as it is stored.
func ErrorText(failure error) string { return shorten(failure.Error(), maxError) }

// shorten cuts a text to a length and makes it storable.
func shorten(s string, most int) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
