package delivery

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"strings"
	"time"
)

// Retry says how often and when a delivery that failed is tried again. Zero
// fields mean the default.
type Retry struct {
	First    time.Duration // after the first failure; doubles with each; 1 s
	Most     time.Duration // 10 min
	Attempts int           // to deliver one event; 12
	Claim    time.Duration // how long a node may take for one event; 30 s
}

func (r Retry) orDefault() Retry {
	return Retry{
		First: cmp.Or(r.First, time.Second), Most: cmp.Or(r.Most, 10*time.Minute),
		Attempts: cmp.Or(r.Attempts, 12), Claim: cmp.Or(r.Claim.Truncate(time.Microsecond), 30*time.Second),
	}
}

// after is how long to wait after so many failures: between three quarters and all
// of the time, so that what failed together does not come back together.
func (r Retry) after(failures int) time.Duration {
	d := r.Most
	if n := failures - 1; n < 40 {
		d = min(r.First<<n, r.Most)
	}
	return d - time.Duration(rand.Int64N(int64(d)/4+1)) // jitter
}

// next is after, or what the receiver asks for if that is longer, up to Most: who
// says 429 knows better, and who asks for a day would only keep the events.
func (r Retry) next(failures int, cause error) time.Duration {
	var asks interface{ RetryAfter() time.Duration }
	d := r.after(failures)
	if errors.As(cause, &asks) {
		d = max(d, min(asks.RetryAfter(), r.Most))
	}
	return d
}

// settled is the progress after an attempt to deliver an event, and what became of it.
func (r Retry) settled(p Progress, e *Event, failure error, clock time.Time) (Progress, Outcome) {
	p.LastAttemptAt = clock
	if failure == nil {
		p.Cursor, p.Attempts, p.LastError = e.Seq, 0, ""
		if e.Last {
			p.State = Done
		}
		return p, Delivered
	}
	p.Attempts++
	p.LastError = shorten(failure.Error(), maxError)
	p.DueAt = clock.Add(r.next(p.Attempts, failure))
	if permanent(failure) || p.Attempts >= r.Attempts {
		p.State = Dead
		return p, GivenUp
	}
	return p, Failed
}

const maxError = 500 // bytes of an error that are kept

func permanent(err error) bool {
	var p interface{ Permanent() bool }
	return errors.As(err, &p) && p.Permanent()
}

// shorten cuts a text for people.
func shorten(s string, most int) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
