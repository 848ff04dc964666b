package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/store"
	"github.com/parley-dev/parley/sdk/client"
)

// emitter returns a function that appends events about the subject to the log of the server.
func emitter(t *testing.T, subject string) func(...event.Type) {
	t.Helper()
	st, err := store.Open(context.Background(), store.Options{Dir: server.Store.Data})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return func(types ...event.Type) {
		for _, typ := range types {
			e := event.New("main", typ, time.Now(), subject, "user:ada", event.Members, json.RawMessage(`{"n":1}`))
			if err := st.Events().Append(context.Background(), e); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), admin(t)
	subject := "proposal:" + unique("events")
	emit := emitter(t, subject)
	emit(event.ProposalSubmitted, event.ProposalVoted, event.ProposalVoted)
	page := must(c.Events(ctx, client.EventsOptions{Subject: subject, Limit: 2}))
	if len(page.Events) != 2 || page.LastSeq != page.Events[1].Seq {
		t.Fatalf("got %+v, want two events", page)
	}
	e := page.Events[0]
	if e.Type != "proposal.submitted" || e.Subject != subject || e.Actor != "user:ada" || string(e.Data) != `{"n":1}` ||
		e.Version != 1 || e.ID == "" || e.Time.IsZero() {
		t.Errorf("got %+v", e)
	}
	votes := client.EventsOptions{Subject: subject, After: &e.Seq, Types: []string{"proposal.voted", "proposal.edited"}}
	if page = must(c.Events(ctx, votes)); len(page.Events) != 2 {
		t.Errorf("got %+v, want two votes", page)
	}
	votes.After, votes.Wait = &page.LastSeq, time.Minute
	go emit(event.ProposalEdited)
	if page = must(c.Events(ctx, votes)); len(page.Events) != 1 || page.Events[0].Type != "proposal.edited" {
		t.Errorf("got %+v, want the new event", page)
	}
	var refused *client.Error
	_, err := c.Events(ctx, client.EventsOptions{Types: []string{"proposal.eaten"}})
	if !errors.As(err, &refused) || refused.Status != 422 {
		t.Errorf("got %v, want a refusal of the type", err)
	}
	for _, err := range c.FollowEvents(ctx, client.EventsOptions{Types: []string{"proposal.eaten"}}) {
		if !errors.As(err, &refused) || refused.Status != 422 {
			t.Errorf("got %v, want a refusal of the type", err)
		}
	}
}

// TestEventsFromNowOn: what happened before is not returned, and a connection that breaks before
// the first event costs none.
func TestEventsFromNowOn(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a lost event never comes
	defer cancel()
	subject := "proposal:" + unique("now")
	emit := emitter(t, subject)
	began := time.Now()
	emit(event.ProposalSubmitted)
	page := must(admin(t).Events(ctx, client.EventsOptions{Subject: subject, FromNow: true}))
	if len(page.Events) != 0 || page.LastSeq == 0 {
		t.Errorf("got %+v, want no event and the end of the log", page)
	}
	page = must(admin(t).Events(ctx, client.EventsOptions{Subject: subject, Since: began}))
	if len(page.Events) != 1 {
		t.Errorf("since the start of the test: got %+v, want one event", page)
	}
	page = must(admin(t).Events(ctx, client.EventsOptions{Subject: subject, Since: time.Now().Add(time.Hour)}))
	if len(page.Events) != 0 {
		t.Errorf("since an hour from now: got %+v, want no event", page)
	}
	var mu sync.Mutex
	var asked []string
	proxy := server.Proxy(t, func(res *http.Response) error {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, res.Request.Header.Get("Last-Event-ID"))
		if len(asked) == 1 {
			res.Body = &cut{ReadCloser: res.Body} // in the middle of the first event
			emit(event.ProposalVoted)
		}
		return nil
	})
	c := newClient(t, client.Config{URL: proxy, Key: server.Key, Org: "main"})
	for e, err := range c.FollowEvents(ctx, client.EventsOptions{Subject: subject, FromNow: true}) {
		if err != nil || e.Type != "proposal.voted" {
			t.Errorf("got %+v, %v, want the vote", e, err)
		}
		break
	}
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 2 || asked[0] != "" || asked[1] == "" {
		t.Errorf("Last-Event-ID = %q, want none and then a position", asked)
	}
}

// TestFollowEventsSurvivesBrokenConnections breaks every connection after a few events.
func TestFollowEventsSurvivesBrokenConnections(t *testing.T) {
	t.Parallel()
	const events = 10
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	subject := "proposal:" + unique("follow")
	emit := emitter(t, subject)
	var connections atomic.Int32
	proxy := server.Proxy(t, func(res *http.Response) error {
		if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
			connections.Add(1)
			res.Body = &cut{ReadCloser: res.Body, left: 2}
		}
		return nil
	})
	c := newClient(t, client.Config{URL: proxy, Key: server.Key})
	emit(event.ProposalSubmitted)
	go func() {
		for range events - 1 {
			emit(event.ProposalVoted)
		}
	}()
	n, last := 0, int64(0)
	var end error
	for e, err := range c.FollowEvents(ctx, client.EventsOptions{Subject: subject}) {
		if end = err; err != nil {
			break
		}
		if n++; e.Seq <= last || (e.Type == "proposal.submitted") != (n == 1) {
			t.Errorf("event %d, %s, follows %d", e.Seq, e.Type, last)
		}
		if last = e.Seq; n == events {
			cancel()
		}
	}
	if n != events || !errors.Is(end, context.Canceled) {
		t.Errorf("%d events and %v, want %d and the end of the context", n, end, events)
	}
	if got := connections.Load(); got < 3 {
		t.Errorf("%d connections, want more: nothing was tested", got)
	}
}

// TestFollowEventsSurvivesAServerError: a stream that ends with an error of the server is continued.
func TestFollowEventsSurvivesAServerError(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Header.Get("Last-Event-ID"))
		w.Header().Set("Content-Type", "text/event-stream")
		n := len(asked)
		fmt.Fprintf(w, "id: %d\nevent: proposal.voted\ndata: {\"seq\":%d}\n\n", n, n)
		status := []int{500, 503, 403}[n-1]
		fmt.Fprintf(w, "id: %d\nevent: error\ndata: {\"status\":%d,\"code\":\"internal\"}\n\n", n, status)
	}))
	defer fake.Close()
	c := newClient(t, client.Config{URL: fake.URL, Key: "k", Org: "main"})
	last := int64(0)
	var refused *client.Error
	for e, err := range c.FollowEvents(t.Context(), client.EventsOptions{}) {
		if err == nil {
			last = e.Seq
		} else if !errors.As(err, &refused) || refused.Status != 403 {
			t.Errorf("got %v, want the refusal", err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if last != 3 || refused == nil || strings.Join(asked, " ") != " 1 2" {
		t.Errorf("the last event is %d, asked after %q; want 3, and a stream after each error", last, asked)
	}
}

func TestFollowEventsGoesOnAfterAReset(t *testing.T) {
	t.Parallel()
	subject := "proposal:" + unique("reset")
	emitter(t, subject)(event.ProposalSubmitted)
	beyond := int64(1 << 50)
	var got []string
	for e, err := range admin(t).FollowEvents(t.Context(), client.EventsOptions{Subject: subject, After: &beyond}) {
		switch {
		case errors.Is(err, client.ErrEventsReset):
			got = append(got, "reset")
			continue
		case err != nil:
			t.Fatal(err)
		}
		got = append(got, e.Type)
		break
	}
	if want := "reset proposal.submitted"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
