package event

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A log is indexed from the first request by subject until an hour after the last one. Others are
// not.
func TestOnlyLogsThatAreAskedBySubjectAreIndexed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.Run(ctx, 0)
		}()
		indexed := func() (orgs []string) {
			synctest.Wait()
			w.store.mu.Lock()
			defer w.store.mu.Unlock()
			orgs, w.store.index = w.store.index, nil
			return orgs
		}
		list := func(org, subject string) {
			t.Helper()
			if _, err := w.List(t.Context(), reader(t, org), Request{Subject: subject}); err != nil {
				t.Fatal(err)
			}
		}
		list("acme", "")
		list("other", "")
		for _, err := range w.Follow(t.Context(), reader(t, "other"), Request{Subject: "proposal:p"}, time.Hour) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		time.Sleep(3 * indexEvery)
		if got := indexed(); len(got) != 0 {
			t.Errorf("indexed %v without a request for a page by subject", got)
		}

		w.store.pieces = 3
		list("acme", "proposal:p")
		if got := indexed(); !slices.Equal(got, []string{"acme", "acme", "acme"}) {
			t.Errorf("indexed %v at once, want all three pieces of acme", got)
		}
		time.Sleep(indexEvery)
		if got := indexed(); !slices.Equal(got, []string{"acme"}) {
			t.Errorf("indexed %v after an interval, want acme", got)
		}

		time.Sleep(askedFor + indexEvery)
		indexed()
		time.Sleep(indexEvery)
		if got := indexed(); len(got) != 0 {
			t.Errorf("indexed %v an hour after the last request", got)
		}

		if _, err := w.ListBack(t.Context(), reader(t, "other"), Request{Subject: "proposal:p"}, 0); err != nil {
			t.Fatal(err)
		}
		if got := indexed(); !slices.Equal(got, []string{"other"}) {
			t.Errorf("indexed %v after a request for the newest events, want other", got)
		}
		cancel()
		<-done
	})
}

func TestAskedOrgsAreBounded(t *testing.T) {
	t.Parallel()
	a := newAskedOrgs(time.Now)
	for i := range maxAsked + 10 {
		a.add(fmt.Sprint("org", i))
	}
	if n := len(a.list()); n != maxAsked {
		t.Errorf("%d orgs are remembered, want %d", n, maxAsked)
	}
}

// The first search for a subject does not end with an empty page if a later one has events.
func TestSearchesForASubjectSkipEmptyPages(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.store.window = 10
	for range 50 {
		w.store.add("acme", ProposalVoted, Admins, `{}`)
	}
	w.store.add("acme", ProposalVoted, Members, `{}`)
	for _, c := range []struct {
		subject string
		events  int
		last    int64
	}{{"proposal:p", 1, 51}, {"", 0, 10}, {"proposal:other", 0, 51}} {
		p, err := w.List(t.Context(), reader(t, "acme"), Request{Subject: c.subject})
		if err != nil || len(p.Events) != c.events || p.Last != c.last {
			t.Errorf("subject %q: %d events up to %d, %v; want %d up to %d", c.subject, len(p.Events), p.Last, err, c.events,
				c.last)
		}
	}
}

// The same holds for the newest events, which are read backwards. After a few empty pages the reader
// gets one, and goes on from there.
func TestSearchesBackwardsForASubjectSkipEmptyPages(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.store.window = 10
	w.store.add("acme", ProposalVoted, Members, `{}`)
	for range 50 {
		w.store.add("acme", ProposalVoted, Admins, `{}`)
	}
	for _, c := range []struct {
		subject string
		before  int64
		events  int
		first   int64
		more    bool
	}{
		{"proposal:p", 0, 1, 1, false},
		{"", 0, 0, 42, true},
		{"proposal:other", 0, 0, 1, false},
		{"proposal:p", 30, 1, 1, false},
	} {
		p, err := w.ListBack(t.Context(), reader(t, "acme"), Request{Subject: c.subject}, c.before)
		if err != nil || len(p.Events) != c.events || p.First != c.first || p.More() != c.more {
			t.Errorf("subject %q before %d: %d events from %d, more = %v, %v; want %d from %d, %v", c.subject, c.before,
				len(p.Events), p.First, p.More(), err, c.events, c.first, c.more)
		}
	}
	w.store.window = 5
	p, err := w.ListBack(t.Context(), reader(t, "acme"), Request{Subject: "proposal:p"}, 0)
	if err != nil || len(p.Events) != 0 || p.First != 22 || !p.More() {
		t.Errorf("a rare subject: %d events from %d, %v, want none from 22", len(p.Events), p.First, err)
	}
}
