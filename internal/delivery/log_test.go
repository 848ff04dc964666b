package delivery

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// With For, a subscription is given up after a time of failures, however many attempts it were.
func TestFailuresAreGivenUpAfterATime(t *testing.T) {
	t.Parallel()
	r := Retry{For: 72 * time.Hour}.orDefault()
	start, e := time.Unix(1000, 0), &Event{Seq: 5}
	p, outcome := r.settled(Progress{State: Active, Cursor: 4, Attempts: 500}, e, io.EOF, start)
	if outcome != Failed || !p.FailingSince.Equal(start) {
		t.Errorf("first failure: %s, %+v; want the time of it", outcome, p)
	}
	for at := start; at.Before(start.Add(72 * time.Hour)); at = at.Add(10 * time.Minute) {
		p, outcome = r.settled(p, e, io.EOF, at)
	}
	if outcome != Failed || !p.FailingSince.Equal(start) || p.State != Active {
		t.Errorf("before the time is up: %s, %+v", outcome, p)
	}
	dead, outcome := r.settled(p, e, io.EOF, start.Add(72*time.Hour))
	if outcome != GivenUp || dead.State != Dead || dead.Cursor != 4 {
		t.Errorf("when the time is up: %s, %+v; want it dead", outcome, dead)
	}
	p, outcome = r.settled(p, e, nil, start.Add(73*time.Hour))
	if outcome != Delivered || !p.FailingSince.IsZero() || p.Attempts != 0 || p.Cursor != 5 {
		t.Errorf("success: %s, %+v; want no failures", outcome, p)
	}
}

// answering is a sender that says what the receiver responded.
type answering struct{ requests []Request }

func (a *answering) Send(_ context.Context, r *Request) error {
	time.Sleep(3 * time.Second)
	a.requests = append(a.requests, *r)
	r.Response = Response{Status: 500, Text: "no"}
	return io.EOF
}

// The store gets the record of an attempt together with the progress. An event may have its own id
// and signatures.
func TestAttemptsAreRecorded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		until := time.Unix(2030, 0)
		store := &kept{Subscription{
			Key:      Key{Kind: testKind, Org: "acme", Topic: "u", ID: "p"},
			Progress: Progress{State: Active, Head: 1, Attempts: 2, DueAt: until, ClaimedUntil: until},
		}}
		to := &answering{}
		events := list{{
			Seq: 1, ID: "evt-1", Type: "a.b", Encode: func() (map[string]string, []byte) { return nil, []byte("x") },
			Sign: func(id string, _ time.Time, body []byte) string { return id + string(body) },
		}}
		s := New(Options{Store: store, Sources: from(events), Sender: to})
		claimed := store.Subscription
		if err := s.deliver(t.Context(), &claim{sub: claimed}); err != nil {
			t.Fatal(err)
		}
		if r := to.requests[0]; r.ID != "evt-1" || r.Attempt != 3 || r.Sign("a", time.Time{}, []byte("b")) != "ab" {
			t.Errorf("request %+v, want the id and the signatures of the event", r)
		}
		want := Attempt{
			Seq: 1, EventID: "evt-1", Type: "a.b", At: time.Unix(2000, 0), Number: 3, Latency: 3 * time.Second,
			Response: Response{500, "no"}, Error: "EOF", Outcome: Failed,
		}
		if got := store.Tried; got == nil || *got != want {
			t.Errorf("recorded %+v, want %+v", got, want)
		}
		if claimed.Tried != nil {
			t.Error("the attempt stays with the claim, and would be recorded twice")
		}
	})
}

// slowly is a source that takes its time for events that nobody gets.
type slowly struct {
	n     int64
	each  time.Duration
	after func(seq int64)
}

func (s slowly) Events(_ context.Context, sub *Subscription) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for i := sub.Cursor + 1; i <= s.n; i++ {
			time.Sleep(s.each)
			if !yield(Event{Seq: i}, nil) {
				return
			}
			s.after(i)
		}
	}
}

// A long list of events that nobody gets does not outlast the claim, and costs few writes.
func TestPassedEventsAreWrittenFromTimeToTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		until := time.Unix(2030, 0)
		store := &kept{Subscription{
			Key:      Key{Kind: testKind, Org: "acme"},
			Progress: Progress{State: Active, Head: 100, DueAt: until, ClaimedUntil: until},
		}}
		source := slowly{n: 100, each: time.Second, after: func(seq int64) {
			if seq-store.Cursor > 7 {
				t.Errorf("event %d is read, but the cursor is %d", seq, store.Cursor)
			}
		}}
		s := New(Options{Store: store, Sources: from(source), Sender: &answering{}, Retry: Retry{Claim: 30 * time.Second}})
		turns := 0
		for ; store.Cursor < 100 && turns < 100; turns++ {
			store.DueAt, store.ClaimedUntil = until, until
			claimed := store.Subscription
			if err := s.deliver(t.Context(), &claim{sub: claimed}); err != nil {
				t.Fatal(err)
			}
		}
		if store.Cursor != 100 || !store.ClaimedUntil.IsZero() || !store.DueAt.IsZero() || turns > 25 {
			t.Errorf("progress %+v after %d turns, want all passed in at most 25", store.Progress, turns)
		}
	})
}

// delay is a receiver that takes its time.
type delay time.Duration

func (d delay) Send(context.Context, *Request) error {
	time.Sleep(time.Duration(d))
	return nil
}

// A subscription with much to send is released after some events or some time, and stays due.
func TestATurnEnds(t *testing.T) {
	t.Parallel()
	var events list
	for i := range int64(120) {
		events = append(events, Event{Seq: i + 1, Encode: func() (map[string]string, []byte) { return nil, nil }})
	}
	for name, c := range map[string]struct {
		each  time.Duration
		turns []int64 // the cursor after each one
	}{
		"many events":   {time.Millisecond, []int64{50, 100, 120}},
		"slow receiver": {3 * time.Second, []int64{2, 4, 6}},
		"very slow":     {9 * time.Second, []int64{1, 2, 3}},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &kept{Subscription{Key: Key{Kind: testKind}, Progress: Progress{State: Active, Head: 120}}}
			s := New(Options{Store: store, Sources: from(events), Sender: delay(c.each)})
			for i, want := range c.turns {
				store.DueAt, store.ClaimedUntil = time.Unix(2030, 0), time.Unix(2030, 0)
				claimed := store.Subscription
				if err := s.deliver(t.Context(), &claim{sub: claimed}); err != nil {
					t.Fatal(err)
				}
				p := store.Progress
				if p.Cursor != want || !p.ClaimedUntil.IsZero() || p.DueAt.Equal(time.Unix(2000, 0)) != (want < 120) {
					t.Errorf("%s: progress %+v after turn %d, want %d sent, not claimed, and due if there is more",
						name, p, i+1, want)
				}
			}
		})
	}
}

// Failures were about one event. When it is passed because nobody gets it any more, they are over.
func TestPassedEventsEndFailures(t *testing.T) {
	t.Parallel()
	failing := Progress{
		State: Active, Cursor: 4, Attempts: 9, LastError: "no", FailingSince: time.Unix(10, 0),
		LastAttemptAt: time.Unix(1990, 0), DueAt: time.Unix(2030, 0), ClaimedUntil: time.Unix(2030, 0),
	}
	deliver := func(head int64, events list, to Sender) Progress {
		store := &kept{Subscription{Key: Key{Kind: testKind}, Progress: failing}}
		store.Head = head
		s := New(Options{Store: store, Sources: from(events), Sender: to, Retry: Retry{For: time.Hour}})
		claimed := store.Subscription
		if err := s.deliver(t.Context(), &claim{sub: claimed}); err != nil {
			t.Fatal(err)
		}
		return store.Progress
	}
	p := deliver(6, list{{Seq: 5}, {Seq: 6}}, &recorder{})
	if p.Cursor != 6 || p.Attempts != 0 || p.LastError != "" || !p.FailingSince.IsZero() || !p.DueAt.IsZero() {
		t.Errorf("after the failing event was passed: %+v, want no failures", p)
	}
	// The next event fails, too: it is another event, but the receiver has been away all the time.
	to := &recorder{fail: map[int64]error{7: io.EOF}}
	next := Event{Seq: 7, Encode: func() (map[string]string, []byte) { return nil, nil }}
	failing.FailingSince = time.Unix(1980, 0)
	p = deliver(7, list{{Seq: 5}, {Seq: 6}, next}, to)
	if p.Cursor != 6 || p.Attempts != 1 || p.Tried.Number != 1 || !p.FailingSince.Equal(time.Unix(1980, 0)) {
		t.Errorf("after a failure behind passed events: %+v, want these passed and the first attempt", p)
	}
}

// A time in which nothing was tried does not count, because no node was running, for example.
func TestOnlyTimeWithAttemptsCounts(t *testing.T) {
	t.Parallel()
	r := Retry{For: 72 * time.Hour}.orDefault()
	start := time.Unix(1000, 0)
	for pause, want := range map[time.Duration]Outcome{20 * time.Minute: GivenUp, 21 * time.Minute: Failed} {
		p := Progress{State: Active, FailingSince: start, LastAttemptAt: start.Add(80*time.Hour - pause), Attempts: 400}
		p, got := r.settled(p, &Event{Seq: 1}, io.EOF, start.Add(80*time.Hour))
		if began := start.Add(80 * time.Hour); got != want || p.FailingSince.Equal(began) != (want == Failed) {
			t.Errorf("%s after the attempt before: %s, failing since %s; want %s", pause, got, p.FailingSince, want)
		}
	}
}

// If events were added after the list was read, the subscription is due at once, not when the claim
// would end.
func TestAListThatGrowsIsReadAgain(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]Event{
		"passed":    {Seq: 1},
		"delivered": {Seq: 1, Encode: func() (map[string]string, []byte) { return nil, nil }},
	} {
		until := time.Unix(2030, 0)
		store := &kept{Subscription{
			Key:      Key{Kind: testKind, Org: "acme"},
			Progress: Progress{State: Active, Head: 2, DueAt: until, ClaimedUntil: until},
		}}
		s := New(Options{Store: store, Sources: from(list{e}), Sender: &recorder{}})
		claimed := store.Subscription
		if err := s.deliver(t.Context(), &claim{sub: claimed}); err != nil {
			t.Fatal(err)
		}
		if p := store.Progress; p.Cursor != 1 || !p.ClaimedUntil.IsZero() || !p.DueAt.Equal(time.Unix(2000, 0)) {
			t.Errorf("%s: progress %+v, want it due at once and not claimed", name, p)
		}
	}
}

// The beginning of a response is kept as one line of valid text.
func TestTheFirstBytesOfAResponseAreKept(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, " a\x00\r\n\x1b[31m\xff"+strings.Repeat("ä", 1000))
		if got := r.Header.Get("webhook-signature"); got != "signed" {
			t.Errorf("signature %q, want that of the request", got)
		}
	}))
	t.Cleanup(srv.Close)
	text, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(ClientOptions{Allow: []string{"127.0.0.1"}, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	r := &Request{
		Subscription: Subscription{URL: srv.URL}, ID: "x",
		Sign: func(string, time.Time, []byte) string { return "signed" },
	}
	if err := c.Send(t.Context(), r); err == nil {
		t.Error("418 is no failure")
	}
	if got := r.Response; got.Status != http.StatusTeapot || !strings.HasPrefix(got.Text, "a    [31mää") ||
		len(got.Text) > 200 || !strings.HasSuffix(got.Text, "ä") {
		t.Errorf("response %+v, want the status and the first bytes", got)
	}
}
