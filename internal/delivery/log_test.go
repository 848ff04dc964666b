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
	p, outcome = r.settled(p, e, io.EOF, start.Add(72*time.Hour-1))
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
		if err := s.deliver(t.Context(), &claimed); err != nil {
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

func (s slowly) Events(context.Context, *Subscription) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for i := int64(1); i <= s.n; i++ {
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
		written, last := 0, int64(0)
		source := slowly{n: 100, each: time.Second, after: func(seq int64) {
			if store.Cursor != last {
				written, last = written+1, store.Cursor
			}
			if seq-store.Cursor > 11 {
				t.Errorf("event %d is read, but the cursor is %d", seq, store.Cursor)
			}
		}}
		s := New(Options{Store: store, Sources: from(source), Sender: &answering{}, Retry: Retry{Claim: 30 * time.Second}})
		claimed := store.Subscription
		if err := s.deliver(t.Context(), &claimed); err != nil {
			t.Fatal(err)
		}
		if store.Cursor != 100 || !store.ClaimedUntil.IsZero() || !store.DueAt.IsZero() || written > 10 {
			t.Errorf("progress %+v after %d writes, want all passed with at most 10", store.Progress, written)
		}
	})
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
		if err := s.deliver(t.Context(), &claimed); err != nil {
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
