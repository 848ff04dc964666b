package event

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-dev/parley/internal/errs/errstest"
	"github.com/parley-dev/parley/internal/identity"
)

func TestRequestsAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for name, c := range map[string]struct {
		request Request
		field   string
	}{
		"after":                {Request{After: -1}, "after"},
		"limit too small":      {Request{Limit: -1}, "limit"},
		"limit too large":      {Request{Limit: 101}, "limit"},
		"type":                 {Request{Types: []Type{ProposalVoted, "proposal.eaten"}}, "types"},
		"empty type":           {Request{Types: []Type{""}}, "types"},
		"subject without kind": {Request{Subject: "prop-1"}, "subject"},
		"subject without id":   {Request{Subject: "proposal:"}, "subject"},
		"subject of no kind":   {Request{Subject: "animal:cow"}, "subject"},
		"subject with NUL":     {Request{Subject: "proposal:\x00"}, "subject"},
		"subject that is long": {Request{Subject: "friction:" + strings.Repeat("é", MaxSubject)}, "subject"},
	} {
		_, err := w.List(t.Context(), reader(t, "acme"), c.request)
		if got := errstest.Fields(err); !slices.Equal(got, []string{c.field}) {
			t.Errorf("%s: errors in %v, want %s", name, got, c.field)
		}
	}
	other, err := identity.Authorize(reader(t, "acme").Caller(), "acme", identity.ListProposals)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.List(t.Context(), other, Request{}); err == nil {
		t.Error("List took the Access of another action")
	}
	for _, err := range w.Follow(t.Context(), other, Request{}, time.Second) {
		if err == nil {
			t.Error("Follow took the Access of another action")
		}
	}
}

// TestEveryReaderSeesEveryEventOnce lets readers join at any time and place while events are
// written and hints come in any order.
func TestEveryReaderSeesEveryEventOnce(t *testing.T) {
	t.Parallel()
	const writers, each, readers = 4, 1500, 40 // more than a topic keeps
	w := newWorld()
	for range 100 {
		w.emit("acme")
	}
	var writing, reading sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for range each {
				w.emit("acme")
			}
		})
	}
	const last = 100 + writers*each
	follow := func(after int64) {
		want := after
		for item, err := range w.Follow(t.Context(), reader(t, "acme"), Request{After: after}, time.Minute) {
			if err != nil || item.Reset {
				t.Errorf("got %v %v, want events", item, err)
				return
			}
			if item.Event != nil {
				if want++; item.Event.Seq != want {
					t.Errorf("got event %d, want %d", item.Event.Seq, want)
					return
				}
			}
			if item.Last != want {
				t.Errorf("the position is %d after event %d", item.Last, want)
			}
			if want == last {
				return
			}
		}
	}
	for i := range readers {
		reading.Go(func() {
			if i%2 == 0 { // others join when all is quiet again
				w.store.mu.Lock()
				after := rand.Int64N(int64(len(w.store.logs["acme"])))
				w.store.mu.Unlock()
				follow(after)
				return
			}
			writing.Wait()
			follow(rand.Int64N(last))
		})
	}
	reading.Wait()
	writing.Wait()
	if n := w.hub.kept.Load(); n != 0 || len(w.hub.orgs()) != 0 {
		t.Errorf("%d bytes and %v are kept without readers", n, w.hub.orgs())
	}
}

func TestFiltersOfStreams(t *testing.T) {
	t.Parallel()
	w := newWorld()
	follow := func(a identity.Access, r Request, last int64) (got []int64) {
		for item, err := range w.Follow(t.Context(), a, r, time.Minute) {
			if err != nil {
				t.Fatal(err)
			}
			if item.Event != nil {
				got = append(got, item.Event.Seq)
			}
			if item.Last == last {
				break
			}
		}
		return got
	}
	for _, scope := range []Scope{Members, Draft("user:ada"), Draft("user:bob"), Only("user:ada"), Admins} {
		w.store.add("acme", ProposalVoted, scope, `{}`)
	}
	w.store.add("acme", ProposalEdited, Members, `{}`)
	w.store.add("acme", ProposalVoted, Members, `{}`)
	w.store.add("acme", ProposalVoted, Admins, `{}`)
	for _, c := range []struct {
		access  identity.Access
		request Request
		want    []int64
	}{
		{reader(t, "acme"), Request{}, []int64{1, 2, 4, 6, 7}},
		{reader(t, "acme", identity.Admin), Request{}, []int64{1, 2, 3, 4, 5, 6, 7, 8}},
		{reader(t, "acme"), Request{After: 1, Types: []Type{ProposalEdited}}, []int64{6}},
		{reader(t, "acme"), Request{Subject: "proposal:other"}, nil},
		{reader(t, "globex"), Request{}, nil},
	} {
		last := int64(8)
		if c.access.Org() == "globex" {
			last = 0
		}
		if got := follow(c.access, c.request, last); !slices.Equal(got, c.want) {
			t.Errorf("%+v: got %v, want %v", c.request, got, c.want)
		}
	}
}

// TestAReaderMayBeAheadOfTheNode: the reader got its number from another node, whose hint has not
// arrived.
func TestAReaderMayBeAheadOfTheNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for range 3 {
			w.emit("acme")
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { // starts the topic
			for range w.Follow(ctx, reader(t, "acme"), Request{After: 3}, time.Hour) {
			}
		}()
		synctest.Wait()
		for range 2 {
			w.store.add("acme", ProposalVoted, Members, `{}`) // without a hint
		}
		got := make(chan Item, 100)
		go func() {
			for item := range w.Follow(ctx, reader(t, "acme"), Request{After: 5}, time.Hour) {
				got <- item
			}
		}()
		synctest.Wait()
		if last := w.hub.topics["acme"].newest(); last != 5 {
			t.Errorf("the node has read the log to %d, want 5: the reader knows of it", last)
		}
		w.emit("acme")
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(got)
		var seqs []int64
		for item := range got {
			if item.Reset {
				t.Error("the reader was reset")
			}
			if item.Event != nil {
				seqs = append(seqs, item.Event.Seq)
			}
		}
		if !slices.Equal(seqs, []int64{6}) {
			t.Errorf("got events %v, want 6", seqs)
		}
	})
}

// TestAHintDuringARead: the event is written after the log was read.
func TestAHintDuringARead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		last := int64(0)
		go func() {
			for item := range w.Follow(ctx, reader(t, "acme"), Request{}, time.Hour) {
				last = item.Last
			}
		}()
		synctest.Wait()
		w.store.read = func() { w.emit("acme") }
		w.emit("acme")
		synctest.Wait()
		if last != 2 {
			t.Errorf("the stream is at %d, want 2", last)
		}
		cancel()
		synctest.Wait()
	})
}

func TestANumberThatIsNotInTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for range 9 {
		w.emit("acme")
	}
	w.store.kept = 5
	for after, reset := range map[int64]bool{0: true, 1: true, 3: true, 4: false, 8: false, 9: false, 10: true, 99: true} {
		page, err := w.List(t.Context(), reader(t, "acme"), Request{After: after})
		if err != nil || page.Missed != reset {
			t.Errorf("after %d: missed %v %v, want %v", after, page.Missed, err, reset)
		}
		first := Item{}
		var seqs []int64
		for item, err := range w.Follow(t.Context(), reader(t, "acme"), Request{After: after}, time.Minute) {
			if err != nil {
				t.Fatal(err)
			}
			if first.Last == 0 {
				first = item
			}
			if item.Event != nil {
				seqs = append(seqs, item.Event.Seq)
			}
			if item.Last == 9 {
				break
			}
		}
		if first.Reset != reset || reset && first.Last != 4 {
			t.Errorf("after %d: first %+v, want a reset to 4: %v", after, first, reset)
		}
		want := []int64{5, 6, 7, 8, 9}
		if !reset {
			want = want[after-4:]
		}
		if !slices.Equal(seqs, want) {
			t.Errorf("after %d: got %v, want %v", after, seqs, want)
		}
	}
}

// A request starts after a number, with the oldest event, with the first one since a time, or with
// the next one. 0 is a number like others: a reader of an empty log has it, and may have missed
// events since.
func TestWhereARequestStarts(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for range 9 {
		w.emit("acme")
	}
	w.store.kept = 4
	log := w.store.logs["acme"]
	for i := range log {
		log[i].At = time.Unix(int64(100+i), 0) // event 9 at 108
	}
	for name, c := range map[string]struct {
		request Request
		want    string
	}{
		"number":             {Request{After: 7}, "8 9 to 9"},
		"deleted number":     {Request{After: 2}, "reset 4 5 6 7 8 9 to 9"},
		"0":                  {Request{After: 0}, "reset 4 5 6 7 8 9 to 9"},
		"last deleted":       {Request{After: 3}, "4 5 6 7 8 9 to 9"},
		"oldest":             {Request{Start: FromOldest}, "4 5 6 7 8 9 to 9"},
		"now":                {Request{Start: FromNow}, "to 9"},
		"time of an event":   {Request{Start: FromTime, Since: time.Unix(107, 0)}, "8 9 to 9"},
		"time between two":   {Request{Start: FromTime, Since: time.Unix(107, 1)}, "9 to 9"},
		"time of a deletion": {Request{Start: FromTime, Since: time.Unix(1, 0)}, "4 5 6 7 8 9 to 9"},
		"time after all":     {Request{Start: FromTime, Since: time.Unix(109, 0)}, "to 9"},
	} {
		page, err := w.List(t.Context(), reader(t, "acme"), c.request)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if page.Missed {
			got = "reset "
		}
		for _, e := range page.Events {
			got += fmt.Sprint(e.Seq, " ")
		}
		if got += fmt.Sprint("to ", page.Last); got != c.want {
			t.Errorf("page, %s: %s, want %s", name, got, c.want)
		}
		got = ""
		for item, err := range w.Follow(t.Context(), reader(t, "acme"), c.request, time.Minute) {
			if err != nil {
				t.Fatal(err)
			}
			if item.Event == nil && !item.Reset {
				got += fmt.Sprint("to ", item.Last)
				break
			}
			if item.Reset {
				got += "reset "
			} else {
				got += fmt.Sprint(item.Event.Seq, " ")
			}
		}
		if got != c.want {
			t.Errorf("stream, %s: %s, want %s", name, got, c.want)
		}
	}
	// An event that happens while the reader waits is not lost.
	for name, r := range map[string]Request{
		"now": {Start: FromNow}, "time": {Start: FromTime, Since: time.Now()},
	} {
		waiting := make(chan struct{})
		w.store.read = func() { close(waiting) }
		go func() {
			<-waiting
			w.emit("acme")
		}()
		page, err := w.Wait(t.Context(), reader(t, "acme"), r, time.Minute)
		if err != nil || len(page.Events) != 1 {
			t.Errorf("%s: %d events, %v, want the new one", name, len(page.Events), err)
		}
	}
}

// TestALogThatWasRestored: the log is shorter than what the readers know.
func TestALogThatWasRestored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for range 9 {
			w.emit("acme")
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got []string
		go func() {
			for item := range w.Follow(ctx, reader(t, "acme"), Request{After: 9}, time.Hour) {
				switch {
				case item.Reset:
					got = append(got, "reset")
				case item.Event != nil:
					got = append(got, fmt.Sprint(item.Event.Seq))
				}
			}
		}()
		synctest.Wait()
		w.store.mu.Lock()
		w.store.logs["acme"] = w.store.logs["acme"][:2:2]
		w.store.mu.Unlock()
		w.Changed("acme")
		synctest.Wait()
		w.emit("acme")
		synctest.Wait()
		cancel()
		synctest.Wait()
		if want := "reset 1 2 3"; strings.Join(got, " ") != want {
			t.Errorf("got %v, want %s", got, want)
		}
	})
}

// TestLostHintsAreFoundByPolling writes an event that nobody tells the service about.
func TestLostHintsAreFoundByPolling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.Run(ctx, 0)
		began := time.Now()
		go func() {
			time.Sleep(time.Minute)
			w.store.add("acme", ProposalVoted, Members, `{}`)
		}()
		for item, err := range w.Follow(ctx, reader(t, "acme"), Request{}, time.Hour) {
			if err != nil {
				t.Fatal(err)
			}
			if item.Event != nil {
				break
			}
		}
		if took := time.Since(began); took > time.Minute+pollEvery {
			t.Errorf("the event came after %s, want a minute and at most %s", took, pollEvery)
		}
		cancel()
		synctest.Wait()
	})
}

// TestASlowReaderDelaysNobody stops in the middle of an event.
func TestASlowReaderDelaysNobody(t *testing.T) {
	t.Parallel()
	w := newWorld()
	stuck, release := make(chan struct{}), make(chan struct{})
	var slow sync.WaitGroup
	last := int64(0)
	slow.Go(func() {
		for item, err := range w.Follow(t.Context(), reader(t, "acme"), Request{}, time.Minute) {
			if err != nil {
				t.Error(err)
			}
			if item.Event != nil && item.Last == 1 {
				close(stuck)
				<-release
			}
			if item.Event != nil && item.Last != last+1 {
				t.Errorf("event %d follows %d", item.Last, last)
			}
			if last = item.Last; last == 5001 {
				return
			}
		}
	})
	w.emit("acme")
	<-stuck
	for range 5000 {
		w.emit("acme")
	}
	n := 0
	for item, err := range w.Follow(t.Context(), reader(t, "acme"), Request{After: 1}, time.Minute) {
		if err != nil {
			t.Fatal(err)
		}
		if item.Event != nil {
			n++
		}
		if n == 5000 {
			break
		}
	}
	close(release)
	slow.Wait()
}

// TestTopicsShareTheirMemory: large events of many orgs exceed the limit. Readers that are behind
// read the log.
func TestTopicsShareTheirMemory(t *testing.T) {
	t.Parallel()
	const orgs, each, limit = 20, 100, 100_000
	const batch, size = 10, 3000 // events of an org that are added at a time, and the most that one takes
	w := newWorld()
	w.hub.limit = limit
	data := `"` + strings.Repeat("x", 2000) + `"`
	seen := make(chan struct{}, orgs*each)
	var reading sync.WaitGroup
	for i := range orgs {
		org := fmt.Sprint("org", i)
		began := make(chan struct{})
		reading.Go(func() {
			want := int64(0)
			for item, err := range w.Follow(t.Context(), reader(t, org), Request{}, time.Minute) {
				if err != nil {
					t.Error(err)
					return
				}
				if want == 0 && item.Event == nil {
					close(began)
				}
				if item.Event != nil {
					if want++; item.Event.Seq != want || string(item.Event.Data) != data {
						t.Errorf("got event %d, want %d", item.Event.Seq, want)
						return
					}
					seen <- struct{}{}
				}
				// What was added by reads at the same time is dropped by the one that comes last.
				if kept := w.hub.kept.Load(); kept > limit+orgs*batch*size {
					t.Errorf("%d bytes are kept", kept)
				}
				if want == each {
					return
				}
			}
		})
		<-began
	}
	late := time.After(time.Minute)
	for n := range each {
		for i := range orgs {
			w.store.add(fmt.Sprint("org", i), ProposalVoted, Members, data)
			w.Changed(fmt.Sprint("org", i))
		}
		for (n+1)%batch == 0 && len(seen) < (n+1)*orgs {
			select {
			case <-late:
				t.Fatalf("the readers have seen %d events, want %d", len(seen), (n+1)*orgs)
			case <-time.After(time.Millisecond):
			}
		}
	}
	reading.Wait()
	if n := w.hub.kept.Load(); n != 0 {
		t.Errorf("%d bytes are kept without readers", n)
	}
}

// TestATopicIsBounded checks the limits of one topic and of all.
func TestATopicIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld()
	large, small := w.hub.join("large"), w.hub.join("small")
	for _, topic := range []*topic{large, small} {
		topic.start(0, 0)
		for i := range 5000 {
			size := 10
			if topic == large {
				size = 10_000
			}
			e := Event{Seq: int64(i) + 1, Data: []byte(strings.Repeat("x", size))}
			topic.append(&Page{Events: []Event{e}, Last: e.Seq, Head: e.Seq})
			if len(topic.recent) > 2*maxRecent || topic.size.Load() > 2*maxRecentSize {
				t.Fatalf("the topic keeps %d events with %d bytes", len(topic.recent), topic.size.Load())
			}
		}
	}
	if got := large.size.Load() + small.size.Load(); got != w.hub.kept.Load() {
		t.Errorf("the topics keep %d bytes, and the hub counts %d", got, w.hub.kept.Load())
	}
	w.hub.limit = small.size.Load() + maxRecentSize/2
	w.hub.makeRoom()
	if w.hub.kept.Load() > w.hub.limit {
		t.Errorf("%d bytes are kept, want at most %d", w.hub.kept.Load(), w.hub.limit)
	}
	if len(small.recent) < maxRecent {
		t.Errorf("the small topic has %d events left, want %d", len(small.recent), maxRecent)
	}
	if tail := large.after(4999); len(large.recent) > 0 && (!tail.known || len(tail.events) != 1) {
		t.Errorf("the newest event of the large topic is gone: %+v", tail)
	}
	if tail := small.after(4000); len(tail.events) != maxTaken || tail.events[0].Seq != 4001 {
		t.Errorf("a reader takes %d events, want %d", len(tail.events), maxTaken)
	}
}

func TestStreamsEndWhenTheServerStops(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.emit("acme")
	for item, err := range w.Follow(t.Context(), reader(t, "acme"), Request{}, time.Minute) {
		if err != nil {
			t.Fatal(err)
		}
		if item.Event == nil {
			close(w.stopping)
		}
	}
	page, err := w.Wait(t.Context(), reader(t, "acme"), Request{After: 1}, time.Minute)
	if err != nil || page.Last != 1 {
		t.Errorf("got %+v %v, want an empty page", page, err)
	}
}

func TestAStreamReportsTheErrorOfTheStore(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.store.fails = errors.New("disk full")
	var got error
	for _, err := range w.Follow(t.Context(), reader(t, "acme"), Request{}, time.Minute) {
		got = err
	}
	if !errors.Is(got, w.store.fails) {
		t.Errorf("got %v, want %v", got, w.store.fails)
	}
	if _, err := w.Wait(t.Context(), reader(t, "acme"), Request{}, time.Minute); !errors.Is(err, w.store.fails) {
		t.Errorf("got %v, want %v", err, w.store.fails)
	}
}

// TestReadersShareReads: a reader joins a topic without reading the log.
func TestReadersShareReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 100 {
			go func() {
				for range w.Follow(ctx, reader(t, "acme"), Request{}, time.Hour) {
				}
			}()
			synctest.Wait()
		}
		for range 10 {
			w.emit("acme")
			synctest.Wait()
		}
		if w.store.reads > 20 {
			t.Errorf("100 readers of 10 events read the log %d times, want at most twice for an event", w.store.reads)
		}
		cancel()
		synctest.Wait()
	})
}

func TestWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		a := reader(t, "acme")
		wait := func(r Request, most time.Duration, want string) {
			t.Helper()
			began := time.Now()
			page, err := w.Wait(t.Context(), a, r, most)
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("%d events to %d after %s", len(page.Events), page.Last, time.Since(began))
			if page.Missed {
				got += ", reset"
			}
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		later := func(types ...Type) {
			go func() {
				time.Sleep(10 * time.Second)
				for _, typ := range types {
					w.store.add("acme", typ, Members, `{}`)
				}
				w.Changed("acme")
			}()
		}
		wait(Request{}, 0, "0 events to 0 after 0s")
		wait(Request{}, 5*time.Second, "0 events to 0 after 5s")
		wait(Request{}, time.Hour, "0 events to 0 after 1m0s")
		later(ProposalVoted, ProposalVoted)
		wait(Request{}, time.Minute, "2 events to 2 after 10s")
		wait(Request{}, time.Minute, "2 events to 2 after 0s")
		later(ProposalVoted) // is not selected, but moves the position
		wait(Request{After: 2, Types: []Type{ProposalEdited}}, time.Minute, "0 events to 3 after 1m0s")
		wait(Request{After: 9}, time.Minute, "3 events to 3 after 0s, reset")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.Wait(ctx, a, Request{After: 3}, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the context", err)
		}
	})
}
