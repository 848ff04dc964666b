package delivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

func TestRetriesBackOff(t *testing.T) {
	t.Parallel()
	r := Retry{}.orDefault()
	for failures, most := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 10: 512 * time.Second,
		11: 10 * time.Minute, 12: 10 * time.Minute, 1000: 10 * time.Minute,
	} {
		for range 100 {
			if got := r.after(failures); got > most || got < most*3/4 {
				t.Fatalf("after %d failures: %s; want at most %s", failures, got, most)
			}
		}
	}
	if r.Attempts != 12 || r.Claim != 30*time.Second {
		t.Errorf("%+v", r)
	}
}

// The id of a request is sent in a header, and signed with a trailing dot.
func TestRequestIDsAreSafeAndTellSubscriptionsApart(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, id := range []string{"push-1", "a.b", "a b", "ä", "a/b", strings.Repeat("x", 65), strings.Repeat("x", 66), "a\"b"} {
		k := Key{Topic: "01k", ID: id}
		got := requestID(k, 7)
		if strings.ContainsAny(got, ". /\"ä") || len(got) > 80 || !strings.HasPrefix(got, "01k-") || !strings.HasSuffix(got, "-7") {
			t.Errorf("%q: %s", id, got)
		}
		if other, taken := seen[got]; taken {
			t.Errorf("%q and %q are both %s", id, other, got)
		}
		seen[got] = id
		if again := requestID(k, 7); again != got {
			t.Errorf("%q: %s, then %s", id, got, again)
		}
	}
}

func TestALongErrorIsCut(t *testing.T) {
	t.Parallel()
	if got := shorten("a\x00b", 10); got != "ab" {
		t.Errorf("%q", got)
	}
	if got := shorten(strings.Repeat("ä", 300), 501); got != strings.Repeat("ä", 250)+"…" {
		t.Errorf("%q", got)
	}
}

type busy time.Duration

func (b busy) Error() string             { return "busy" }
func (b busy) RetryAfter() time.Duration { return time.Duration(b) }

func TestAReceiverMayAskForLongerNotForShorter(t *testing.T) {
	t.Parallel()
	r := Retry{}.orDefault()
	if got := r.next(1, fmt.Errorf("push: %w", busy(time.Minute))); got != time.Minute {
		t.Error(got)
	}
	if got := r.next(1, busy(24*time.Hour)); got != r.Most {
		t.Error(got)
	}
	if got := r.next(8, busy(time.Second)); got < time.Minute {
		t.Error(got)
	}
	if got := r.next(1, io.EOF); got > r.First {
		t.Error(got)
	}
}

// kept is a store of one subscription. Claim ignores the room.
type kept struct{ Subscription }

func (s *kept) Claim(context.Context, Room) ([]Subscription, error) {
	return []Subscription{s.Subscription}, nil
}

func (s *kept) Release(context.Context) error { return nil }

func (s *kept) Update(_ context.Context, _ Key, decide func(Progress, time.Time) (Progress, error)) (Progress, error) {
	out, err := decide(s.Progress, time.Unix(2000, 0))
	if err == nil {
		s.Progress = out
	}
	return out, err
}

const testKind Kind = "test"

// from returns the sources of a service for testKind.
func from(s Source) map[Kind]Source { return map[Kind]Source{testKind: s} }

// gone is a source whose events were deleted.
type gone struct{}

func (gone) Events(context.Context, *Subscription) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) { yield(Event{}, errs.ErrNotFound) }
}

// A subscription may change between the choice and the claim.
func TestAClaimThatNoLongerFitsIsReleased(t *testing.T) {
	t.Parallel()
	const stalls = "https://stalls.example"
	until := time.Unix(2030, 0)
	store := &kept{Subscription{
		Key: Key{Kind: testKind, Org: "acme", Topic: "1", ID: "p"}, Owner: "acme", Receiver: stalls, URL: stalls + "/x",
		Progress: Progress{State: Active, Head: 1, DueAt: until, ClaimedUntil: until},
	}}
	s := New(Options{Store: store, Sources: from(gone{}), OnError: func(err error) { t.Error(err) }})
	room := &s.inFlight.room
	target := Target{"acme", stalls}
	room.Lanes[Fast].Receivers[target] = perReceiver
	claimed, err := s.inFlight.claim(t.Context())
	if err != nil || len(claimed) != 1 {
		t.Fatalf("claimed %+v, %v; want one", claimed, err)
	}
	s.run(t.Context(), claimed[0])
	if l := room.Lanes[Fast]; l.Free != fastSlots || len(l.Orgs) != 0 || l.Receivers[target] != perReceiver {
		t.Errorf("room = %+v; want it unchanged", l)
	}
	if p := store.Progress; !p.ClaimedUntil.IsZero() || !p.DueAt.Equal(time.Unix(2000, 0)) {
		t.Errorf("claimed until %s, due at %s; want it due at once and not claimed", p.ClaimedUntil, p.DueAt)
	}
}

// list is a source with fixed events.
type list []Event

func (l list) Events(_ context.Context, s *Subscription) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for _, e := range l {
			if e.Seq > s.Cursor && !yield(e, nil) {
				return
			}
		}
	}
}

// recorder is a receiver that records its requests and fails those in fail.
type recorder struct {
	fail map[int64]error
	got  []string
}

func (a *recorder) Send(_ context.Context, r *Request) error {
	a.got = append(a.got, fmt.Sprintf("%s %s %s", r.ID, r.Header["Content-Type"], r.Body))
	return a.fail[r.Seq]
}

func TestASubscriptionGetsItsEventsInOrderUntilTheLast(t *testing.T) {
	t.Parallel()
	body := func(text string) func() (map[string]string, []byte) {
		return func() (map[string]string, []byte) {
			return map[string]string{"Content-Type": "text/plain"}, []byte(text)
		}
	}
	broken := list{{Seq: 4, Encode: func() (map[string]string, []byte) { panic("no") }}}
	events := list{{Seq: 1}, {Seq: 2, Encode: body("two")}, {Seq: 3}, {Seq: 4, Encode: body("four"), Last: true}}
	first, last := "u-p-2 text/plain two", "u-p-4 text/plain four"
	for name, c := range map[string]struct {
		from   Progress
		events list
		fail   map[int64]error
		want   Progress
		got    []string
		ended  Outcome // of the last attempt; empty: there was none
	}{
		"all":             {Progress{Head: 4}, events, nil, Progress{State: Done, Cursor: 4}, []string{first, last}, Delivered},
		"from the middle": {Progress{Cursor: 2, Head: 4}, events, nil, Progress{State: Done, Cursor: 4}, []string{last}, Delivered},
		"not over":        {Progress{Head: 2}, events[:2], nil, Progress{State: Active, Cursor: 2}, []string{first}, Delivered},
		"nothing to tell": {Progress{Cursor: 2, Head: 3}, events[2:3], nil, Progress{State: Active, Cursor: 3}, nil, ""},
		"refused for good": {
			Progress{Head: 4},
			events,
			map[int64]error{2: never{}},
			Progress{State: Dead, Cursor: 1, Attempts: 1, LastError: "never"},
			[]string{first},
			GivenUp,
		},
		"refused for now": {
			Progress{Head: 4},
			events,
			map[int64]error{2: io.EOF},
			Progress{State: Active, Cursor: 1, Attempts: 1, LastError: "EOF"},
			[]string{first},
			Failed,
		},
		"the last attempt": {
			Progress{Cursor: 1, Head: 4, Attempts: 11},
			events,
			map[int64]error{2: io.EOF},
			Progress{State: Dead, Cursor: 1, Attempts: 12, LastError: "EOF"},
			[]string{first},
			GivenUp,
		},
		"an encoder that panics": {
			Progress{Head: 4}, broken, nil, Progress{State: Active, Attempts: 1, LastError: "the sender panicked: no"}, nil, Failed,
		},
	} {
		until := time.Unix(2030, 0)
		c.from.State, c.from.DueAt, c.from.ClaimedUntil = Active, until, until
		store := &kept{Subscription{Key: Key{Kind: testKind, Org: "acme", Topic: "u", ID: "p"}, Owner: "acme", Progress: c.from}}
		to, ended := &recorder{fail: c.fail}, Outcome("")
		s := New(Options{
			Store: store, Sources: from(c.events), Sender: to,
			OnError: func(err error) { t.Error(err) }, OnAttempt: func(o Outcome) { ended = o },
		})
		claimed := store.Subscription
		if err := s.deliver(t.Context(), &claim{sub: claimed}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		p := store.Progress
		if p.State != c.want.State || p.Cursor != c.want.Cursor || p.Attempts != c.want.Attempts || p.LastError != c.want.LastError {
			t.Errorf("%s: got %+v; want %+v", name, p, c.want)
		}
		if due := !p.DueAt.IsZero(); due != (ended == Failed) || !p.ClaimedUntil.IsZero() {
			t.Errorf("%s: due %v, claimed until %s; want it due after a failure only, and not claimed", name, due, p.ClaimedUntil)
		}
		if !slices.Equal(to.got, c.got) || ended != c.ended {
			t.Errorf("%s: got %q, %q; want %q, %q", name, to.got, ended, c.got, c.ended)
		}
	}
}

// Each kind of subscription gets the events of its own source.
func TestTheKindSelectsTheSource(t *testing.T) {
	t.Parallel()
	says := func(text string) list {
		return list{{Seq: 1, Last: true, Encode: func() (map[string]string, []byte) { return nil, []byte(text) }}}
	}
	sources := map[Kind]Source{"push": says("a push"), "webhook": says("a webhook")}
	for _, c := range []struct {
		kind Kind
		got  []string
		fail bool
	}{
		{"push", []string{"u-p-1  a push"}, false},
		{"webhook", []string{"u-p-1  a webhook"}, false},
		{"other", nil, true},
	} {
		until := time.Unix(2030, 0)
		store := &kept{Subscription{
			Key:      Key{Kind: c.kind, Org: "acme", Topic: "u", ID: "p"},
			Progress: Progress{State: Active, Head: 1, DueAt: until, ClaimedUntil: until},
		}}
		to := &recorder{}
		s := New(Options{Store: store, Sources: sources, Sender: to})
		claimed := store.Subscription
		err := s.deliver(t.Context(), &claim{sub: claimed})
		if (err != nil) != c.fail || !slices.Equal(to.got, c.got) {
			t.Errorf("kind %q: got %q, %v; want %q, an error: %v", c.kind, to.got, err, c.got, c.fail)
		}
		if done := store.State == Done; done == c.fail {
			t.Errorf("kind %q: state %s", c.kind, store.State)
		}
	}
}

type never struct{}

func (never) Error() string   { return "never" }
func (never) Permanent() bool { return true }

// A subscription that another node claimed meanwhile is not changed.
func TestALostClaimChangesNothing(t *testing.T) {
	t.Parallel()
	store := &kept{Subscription{Progress: Progress{State: Active, Head: 1, ClaimedUntil: time.Unix(2030, 0)}}}
	before := store.Progress
	claimed := store.Subscription
	claimed.ClaimedUntil = time.Unix(2029, 0)
	s := New(Options{Store: store})
	if err := s.release(t.Context(), &claimed, 0); !over(err) {
		t.Errorf("got %v; want that the claim is over", err)
	}
	if store.Progress != before {
		t.Errorf("got %+v; want %+v", store.Progress, before)
	}
}

// A failed attempt counts as failed, also if another node has the claim by then.
func TestALostClaimCountsTheAttempt(t *testing.T) {
	t.Parallel()
	event := Event{Seq: 1, Encode: func() (map[string]string, []byte) { return nil, nil }}
	for want, failure := range map[Outcome]error{Delivered: nil, Failed: io.EOF} {
		store := &kept{Subscription{
			Key: Key{Kind: testKind}, Progress: Progress{State: Active, Head: 1, ClaimedUntil: time.Unix(2030, 0)},
		}}
		claimed := store.Subscription
		claimed.ClaimedUntil = time.Unix(2029, 0)
		var got Outcome
		s := New(Options{
			Store: store, Sources: from(list{event}), Sender: &recorder{fail: map[int64]error{1: failure}},
			OnAttempt: func(o Outcome) { got = o },
		})
		if err := s.deliver(t.Context(), &claim{sub: claimed}); !over(err) || got != want {
			t.Errorf("outcome = %q, %v; want %q and a lost claim", got, err, want)
		}
	}
}

func TestRetryTakesUpWhatIsDead(t *testing.T) {
	t.Parallel()
	store := &kept{Subscription{Progress: Progress{State: Dead, Cursor: 3, Head: 5, Attempts: 12, LastError: "no"}}}
	s := New(Options{Store: store})
	refuse := func(Progress) error { return io.EOF }
	if _, err := s.Retry(t.Context(), Key{}, refuse); !errors.Is(err, io.EOF) || store.State != Dead {
		t.Errorf("refused: got %v, %s; want EOF, dead", err, store.State)
	}
	p, err := s.Retry(t.Context(), Key{}, func(Progress) error { return nil })
	want := Progress{State: Active, Cursor: 3, Head: 5, DueAt: time.Unix(2000, 0), LastError: "no"}
	if err != nil || p != want || len(s.wake) != 1 {
		t.Errorf("got %+v, %v, %d nudges; want %+v and one", p, err, len(s.wake), want)
	}
}

// dueAt is a store whose subscription can be claimed when it is due.
type dueAt struct {
	mu sync.Mutex
	Subscription
}

func (s *dueAt) Claim(_ context.Context, r Room) ([]Subscription, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.DueAt.IsZero() || s.DueAt.After(time.Now()) || !fits(&r, &s.Subscription) {
		return nil, nil
	}
	s.DueAt = time.Now().Add(r.Claim)
	s.ClaimedUntil = s.DueAt
	return []Subscription{s.Subscription}, nil
}

func fits(r *Room, s *Subscription) bool {
	_, ok := r.Take(r.Pace(s.Key, s.Attempts), Target{s.Owner, s.Receiver}, s.Size)
	return ok
}

func (s *dueAt) Release(context.Context) error { return nil }

func (s *dueAt) Update(_ context.Context, _ Key, decide func(Progress, time.Time) (Progress, error)) (Progress, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, err := decide(s.Progress, time.Now())
	if err == nil {
		s.Progress = out
	}
	return out, err
}

// failing is a receiver that fails for a while and records the times of its requests.
type failing struct {
	until time.Time
	asked []time.Time
}

func (f *failing) Send(context.Context, *Request) error {
	f.asked = append(f.asked, time.Now())
	if time.Now().Before(f.until) {
		return io.EOF
	}
	return nil
}

func TestAReceiverThatWasAwayGetsItsEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		store := &dueAt{Subscription: Subscription{
			Key: Key{Kind: testKind}, Owner: "acme", Progress: Progress{State: Active, Head: 1, DueAt: start},
		}}
		to := &failing{until: start.Add(time.Minute)}
		event := Event{Seq: 1, Encode: func() (map[string]string, []byte) { return nil, nil }}
		s := New(Options{Store: store, Sources: from(list{event}), Sender: to, OnError: func(err error) { t.Error(err) }})
		ctx, stop := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { s.Run(ctx) })
		time.Sleep(3 * time.Minute)
		stop()
		run.Wait()
		if store.Cursor != 1 || store.Attempts != 0 || !store.DueAt.IsZero() {
			t.Errorf("got %+v; want the event delivered", store.Progress)
		}
		// The delays are at most 1, 2, 4, … seconds, and a second until the next poll.
		if n := len(to.asked); n < 6 || n > 9 {
			t.Fatalf("asked %d times; want a few: %v", n, to.asked)
		}
		for i := 1; i < len(to.asked); i++ {
			most := time.Second << (i - 1)
			if wait := to.asked[i].Sub(to.asked[i-1]); wait < most*3/4 || wait > most+pollEvery {
				t.Errorf("attempt %d came after %s; want about %s", i+1, wait, most)
			}
		}
	})
}
