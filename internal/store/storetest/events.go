package storetest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/event"
)

// everything selects all events of an org.
var everything = event.Filter{Viewer: event.Viewer{Admin: true}}

// happened returns an event that all members see.
func (w *world) happened(org string, t event.Type, subject string) event.Event {
	return event.New(org, t, w.now(), subject, "user:ann", event.Members, json.RawMessage(`{"a":1}`))
}

// appendEvents adds events in one transaction.
func (w *world) appendEvents(events ...event.Event) {
	w.Helper()
	w.must(w.store.Events().Append(w.Context(), events...))
}

func (w *world) eventPage(org string, q event.Query) event.Page {
	w.Helper()
	p, err := w.store.Events().Page(w.Context(), org, q)
	w.must(err)
	return p
}

// walkEvents reads the log to its end in pages, and checks that every page leads on.
func (w *world) walkEvents(org string, f event.Filter, after int64, limit int) (list []event.Event) {
	w.Helper()
	for {
		p := w.eventPage(org, event.Query{Filter: f, After: after, Limit: limit})
		if len(p.Events) > limit {
			w.Fatalf("a page of %d events, want at most %d", len(p.Events), limit)
		}
		for _, e := range p.Events {
			if e.Seq <= after || e.Seq > p.Last || e.Org != org {
				w.Fatalf("event %d of %s in a page of %s after %d that ends with %d", e.Seq, e.Org, org, after, p.Last)
			}
			after = e.Seq
		}
		list = append(list, p.Events...)
		if p.Last == p.Head {
			return list
		}
		if p.Last <= after && len(p.Events) == 0 {
			w.Fatalf("a page after %d leads to %d of %d, want progress", after, p.Last, p.Head)
		}
		after = p.Last
	}
}

// logs are the orgs with events.
var logs = []string{"acme", "other"}

// numberEvents reads the logs, because an event may get its number with the next read.
func (w *world) numberEvents() {
	w.Helper()
	for _, org := range logs {
		w.eventPage(org, event.Query{Filter: everything, Limit: 1})
	}
}

// indexEvents brings the index of subjects up to date.
func (w *world) indexEvents() {
	w.Helper()
	w.numberEvents()
	for _, org := range logs {
		for n := 1; n > 0; {
			var err error
			n, err = w.store.Events().IndexSubjects(w.Context(), org)
			w.must(err)
		}
	}
}

// expireEvents deletes all events before a time and returns how many.
func (w *world) expireEvents(before time.Time) (sum int) {
	w.Helper()
	w.numberEvents()
	for {
		n, err := w.store.Events().Expire(w.Context(), before)
		w.must(err)
		if sum += n; n == 0 {
			return sum
		}
	}
}

func testEventOrder(w *world) {
	if p := w.eventPage("acme", event.Query{Filter: everything, Limit: 10}); len(p.Events) > 0 || p.Last != 0 ||
		p.Head != 0 || p.Missed {
		w.Fatalf("page of an empty log = %+v", p)
	}
	want := map[string][]event.Event{}
	for round, n := range []int{1, 3, 250, 1, 120} {
		var batch []event.Event
		for i := range n {
			org := []string{"acme", "acme", "other"}[i%3]
			kind := event.Kinds[(round*7+i)%len(event.Kinds)]
			e := event.New(org, kind.Type, w.now(), fmt.Sprintf("%s:%d", kind.About, i%5), "agent:scout",
				[]event.Scope{event.Members, event.Admins, event.Draft("user:ann"), event.Only("user:bob")}[i%4], nil)
			e.Data = json.RawMessage(fmt.Sprintf(`{"round":%d,"text":"Zeile\nzwei\tä 日 \u0000"}`, round))
			batch = append(batch, e)
			want[org] = append(want[org], e)
		}
		w.appendEvents(batch...)
	}
	for org, list := range want {
		got := w.walkEvents(org, everything, 0, 100)
		if len(got) != len(list) {
			w.Fatalf("%s has %d events, want %d", org, len(got), len(list))
		}
		for i, e := range got {
			list[i].Seq = int64(i + 1)
			if fmt.Sprintf("%+v %s", e, e.Data) != fmt.Sprintf("%+v %s", list[i], list[i].Data) {
				w.Fatalf("event = %+v, want %+v", e, list[i])
			}
		}
	}
}

func testEventData(w *world) {
	for _, c := range []struct{ data, want string }{
		{"", "{}"},
		{"{\n\t\"a\": [1,\r\n 2]\n}\n", `{"a":[1,2]}`},
		{`{"a":"\n\t\u0000"}`, `{"a":"\n\t\u0000"}`},
		{`"` + strings.Repeat("large ", 100_000) + `"`, `"` + strings.Repeat("large ", 100_000) + `"`},
	} {
		e := w.happened("acme", event.AgentChanged, "agent:scout")
		e.Data = json.RawMessage(c.data)
		w.appendEvents(
			w.happened("acme", event.AgentChanged, "agent:a"), e, w.happened("acme", event.AgentChanged, "agent:b"),
		)
		head := w.eventPage("acme", event.Query{Filter: everything, Limit: 1}).Head
		got := w.walkEvents("acme", everything, head-3, 100)
		if len(got) != 3 || got[1].ID != e.ID || string(got[1].Data) != c.want || got[2].Seq != head {
			w.Errorf("data %.40q gave %d events, %.40q, want %.40q", c.data, len(got), got[1].Data, c.want)
		}
	}
	head := w.eventPage("acme", event.Query{Filter: everything, Limit: 1}).Head
	for name, edit := range map[string]func(e *event.Event){
		"an unknown type":         func(e *event.Event) { e.Type = "agent.unknown" },
		"a tab in the subject":    func(e *event.Event) { e.Subject = "agent:a\tb" },
		"a line in the actor":     func(e *event.Event) { e.Actor = "user:ann\n" },
		"a tab in the scope":      func(e *event.Event) { e.Scope = event.Only("user:\tann") },
		"a zero byte in the id":   func(e *event.Event) { e.ID = "evt-\x00" },
		"lines that are not JSON": func(e *event.Event) { e.Data = json.RawMessage("{\n") },
		"a long subject":          func(e *event.Event) { e.Subject = "agent:" + strings.Repeat("x", 2000) },
	} {
		bad := w.happened("acme", event.AgentChanged, "agent:scout")
		edit(&bad)
		if err := w.store.Events().Append(w.Context(), w.happened("acme", event.AgentChanged, "agent:a"), bad); err == nil {
			w.Errorf("%s was stored, want an error", name)
		}
	}
	if got := w.eventPage("acme", event.Query{Filter: everything, Limit: 1}).Head; got != head {
		w.Errorf("refused events moved the head from %d to %d", head, got)
	}
}

// testEventPages compares pages of random queries with a scan of all events, before, while and
// after the log is indexed.
func testEventPages(w *world) {
	r := rand.New(rand.NewPCG(1, 2))
	refs := []string{"user:ann", "user:bob", "agent:scout"}
	var all []event.Event
	more := func(n int) {
		for n > 0 {
			var batch []event.Event
			for range min(n, 1+r.IntN(150)) {
				kind := event.Kinds[r.IntN(len(event.Kinds))]
				e := w.happened("acme", kind.Type, fmt.Sprintf("%s:%d", kind.About, r.IntN(4)))
				ref := refs[r.IntN(3)]
				e.Scope = []event.Scope{event.Members, event.Admins, event.Draft(ref), event.Only(ref)}[r.IntN(4)]
				batch = append(batch, e)
			}
			n -= len(batch)
			w.appendEvents(batch...)
			for _, e := range batch {
				e.Seq = int64(len(all) + 1)
				all = append(all, e)
			}
		}
	}
	check := func(state string) {
		w.Helper()
		for range 40 {
			f := event.Filter{Viewer: event.Viewer{Ref: refs[r.IntN(3)], Admin: r.IntN(2) == 0, NoDrafts: r.IntN(4) == 0}}
			for range r.IntN(4) {
				f.Types = f.Types.With(event.Kinds[r.IntN(len(event.Kinds))].Type)
			}
			if r.IntN(2) == 0 {
				f.Subject = all[r.IntN(len(all))].Subject
			}
			after, limit := int64(r.IntN(len(all))), 1+r.IntN(100)
			var want []string
			for _, e := range all {
				if e.Seq > after && (f.Types == 0 || f.Types.Has(e.Type)) && (f.Subject == "" || f.Subject == e.Subject) &&
					f.Viewer.Sees(e.Scope) {
					want = append(want, fmt.Sprint(e.Seq, e.ID))
				}
			}
			var got []string
			for _, e := range w.walkEvents("acme", f, after, limit) {
				got = append(got, fmt.Sprint(e.Seq, e.ID))
			}
			if !slices.Equal(got, want) {
				w.Fatalf("%s: %+v after %d by %d: %v, want %v", state, f, after, limit, got, want)
			}
			w.checkEventsBack(state, all, f, int64(1+r.IntN(len(all)+1)), limit)
		}
	}
	more(1500)
	check("not indexed")
	w.indexEvents()
	check("indexed")
	more(700)
	check("indexed in part")
	w.indexEvents()
	check("indexed again")
}

func testEventsSeen(w *world) {
	draft, only := event.Draft("user:ann"), event.Only("user:ann")
	scopes := []event.Scope{event.Members, draft, event.Admins, only}
	for _, s := range scopes {
		e := w.happened("acme", event.ProposalEdited, "proposal:1")
		e.Scope = s
		w.appendEvents(e)
	}
	for _, c := range []struct {
		name   string
		viewer event.Viewer
		want   []event.Scope
	}{
		{"an admin", event.Viewer{Ref: "user:root", Admin: true}, scopes},
		{"the submitter and sender", event.Viewer{Ref: "user:ann"}, []event.Scope{event.Members, draft, only}},
		{"another member", event.Viewer{Ref: "user:bob"}, []event.Scope{event.Members}},
		{"an agent of the same id", event.Viewer{Ref: "agent:ann"}, []event.Scope{event.Members}},
		{"a ref that is part of another", event.Viewer{Ref: "user:an"}, []event.Scope{event.Members}},
		{"nobody", event.Viewer{}, []event.Scope{event.Members}},
		{"a webhook", event.Viewer{Admin: true, NoDrafts: true}, []event.Scope{event.Members, event.Admins, only}},
		{"a submitter without drafts", event.Viewer{Ref: "user:ann", NoDrafts: true}, []event.Scope{event.Members, only}},
	} {
		for _, subject := range []string{"", "proposal:1"} {
			var got []event.Scope
			for _, e := range w.walkEvents("acme", event.Filter{Viewer: c.viewer, Subject: subject}, 0, 2) {
				got = append(got, e.Scope)
			}
			if !slices.Equal(got, c.want) {
				w.Errorf("%s sees %q, want %q", c.name, got, c.want)
			}
		}
	}
}

func testEventsMissed(w *world) {
	for range 4 {
		w.appendEvents(w.happened("acme", event.AgentChanged, "agent:a"), w.happened("acme", event.AgentChanged, "agent:b"))
		w.advance(time.Hour)
	}
	// The clock says now+4h; the packs are 4, 3, 2 and 1 hours old.
	if n := w.expireEvents(w.now().Add(-150 * time.Minute)); n != 4 {
		w.Fatalf("%d events were deleted, want 4", n)
	}
	for _, c := range []struct {
		after, first int64
		missed       bool
	}{
		{0, 5, false},
		{1, 5, true},
		{3, 5, true},
		{4, 5, false},
		{5, 6, false},
		{8, 0, false},
		{9, 5, true},
		{1 << 40, 5, true},
	} {
		p := w.eventPage("acme", event.Query{Filter: everything, After: c.after, Limit: 100})
		first := int64(0)
		if len(p.Events) > 0 {
			first = p.Events[0].Seq
		}
		if first != c.first || p.Missed != c.missed || p.Kept != 5 || p.Head != 8 || p.Last != 8 {
			w.Errorf("page after %d starts with %d, missed = %t, %d to %d, last %d; want %d, %t, 5 to 8, 8",
				c.after, first, p.Missed, p.Kept, p.Head, p.Last, c.first, c.missed)
		}
	}
	// With a filter that selects none of the deleted ones, too: the reader cannot know.
	p := w.eventPage("acme", event.Query{Filter: event.Filter{Subject: "agent:c"}, After: 2, Limit: 100})
	if !p.Missed || len(p.Events) > 0 || p.Last != 8 {
		w.Errorf("page of another subject = %+v, want it missed", p)
	}
}

func testEventScans(w *world) {
	const batches, size = 9, 5000
	rare := func() { w.appendEvents(w.happened("acme", event.WebhookFailed, "webhook:rare")) }
	for range batches {
		batch := make([]event.Event, size)
		for i := range batch {
			batch[i] = w.happened("acme", event.AgentPresence, "agent:a")
		}
		w.appendEvents(batch...)
	}
	rare()
	const head = batches*size + 1
	for name, f := range map[string]event.Filter{
		"types":   {Types: event.WebhookFailed.Bit()},
		"subject": {Subject: "webhook:rare"},
		"both":    {Types: event.WebhookFailed.Bit(), Subject: "webhook:rare"},
	} {
		f.Viewer = everything.Viewer
		after, pages := int64(0), 0
		for {
			p := w.eventPage("acme", event.Query{Filter: f, After: after, Limit: 10})
			pages++
			if len(p.Events) > 0 {
				if p.Events[0].Seq != head || p.Last != head {
					w.Errorf("%s: found event %d, last %d, want %d", name, p.Events[0].Seq, p.Last, head)
				}
				break
			}
			if p.Last <= after || p.Last-after > 20_100 || p.Head != head || p.Missed {
				w.Fatalf("%s: page after %d leads to %d of %d, want progress of about 20,000 at most", name, after, p.Last, p.Head)
			}
			after = p.Last
		}
		if pages < 3 {
			w.Errorf("%s: found with %d pages, want the work of one page bounded", name, pages)
		}
	}
	w.indexEvents()
	p := w.eventPage("acme", event.Query{Filter: event.Filter{Subject: "webhook:rare"}, Limit: 10})
	if len(p.Events) != 1 || p.Events[0].Seq != head || p.Last != head {
		w.Errorf("page of an indexed subject = %d events, last %d, want %d at once", len(p.Events), p.Last, head)
	}
	// A viewer that sees nothing advances, too.
	for _, f := range []event.Filter{{Subject: "agent:none"}, {Subject: "agent:none", Types: event.AgentChanged.Bit()}} {
		if got := w.walkEvents("acme", f, 0, 100); len(got) != 0 {
			w.Errorf("%+v selects %d events, want none", f, len(got))
		}
	}
}

func testEventsExpire(w *world) {
	var old, kept []string
	add := func(list *[]string) {
		for i := range 130 {
			a := w.happened("acme", event.AgentChanged, fmt.Sprintf("agent:%d", i%3))
			b := w.happened("other", event.AgentChanged, fmt.Sprintf("agent:%d", i%3))
			w.appendEvents(a, b)
			*list = append(*list, a.ID)
		}
	}
	add(&old)
	w.indexEvents()
	w.advance(48 * time.Hour)
	add(&kept)
	if n := w.expireEvents(w.now().Add(-24 * time.Hour)); n != 2*len(old) {
		w.Fatalf("%d events were deleted, want %d", n, 2*len(old))
	}
	for _, indexed := range []bool{false, true} {
		if indexed {
			w.indexEvents()
		}
		for _, org := range []string{"acme", "other"} {
			got := w.walkEvents(org, everything, 0, 100)
			if len(got) != len(kept) || got[0].Seq != int64(len(old)+1) {
				w.Fatalf("%s has %d events from %d, want %d", org, len(got), got[0].Seq, len(kept))
			}
			for i, e := range got {
				if (e.ID == kept[i]) != (org == "acme") {
					w.Fatalf("%s has event %d = %s; acme has %s", org, e.Seq, e.ID, kept[i])
				}
			}
			f := everything
			f.Subject = "agent:1"
			if about := w.walkEvents(org, f, 0, 7); len(about) != 43 || about[0].Seq != int64(len(old)+2) {
				w.Errorf("%s: %d events about agent:1 from %d, want 43", org, len(about), about[0].Seq)
			}
		}
	}
	w.advance(48 * time.Hour)
	w.expireEvents(w.now())
	p := w.eventPage("acme", event.Query{Filter: everything, After: 5, Limit: 10})
	if head := int64(len(old) + len(kept)); len(p.Events) != 0 || !p.Missed || p.Head != head || p.Last != head ||
		p.Kept != head+1 {
		w.Errorf("page of an expired log = %+v, want only its head %d", p, head)
	}
	w.indexEvents()
	w.appendEvents(w.happened("acme", event.AgentChanged, "agent:1"))
	if got := w.walkEvents("acme", everything, 0, 10); len(got) != 1 || got[0].Seq != p.Head+1 {
		w.Errorf("after an expired log: %+v, want event %d", got, p.Head+1)
	}
}

// testEventOrgs: two orgs with the same subjects see only their own events, with and without an
// index.
func testEventOrgs(w *world) {
	own := map[string][]string{}
	for i := range 60 {
		org := []string{"acme", "other"}[i%2]
		e := w.happened(org, event.AgentChanged, "agent:scout")
		if i%3 == 0 {
			w.appendEvents(w.happened("third", event.AgentChanged, "agent:scout"), e)
		} else {
			w.appendEvents(e)
		}
		own[org] = append(own[org], e.ID)
	}
	for range 2 {
		for org, want := range own {
			for _, subject := range []string{"", "agent:scout"} {
				f := everything
				f.Subject = subject
				var got []string
				for _, e := range w.walkEvents(org, f, 0, 9) {
					got = append(got, e.ID)
				}
				if !slices.Equal(got, want) {
					w.Errorf("%s, subject %q: %v, want %v", org, subject, got, want)
				}
			}
		}
		w.indexEvents()
	}
	if p := w.eventPage("nowhere", event.Query{Filter: everything, Limit: 10}); p.Head != 0 || len(p.Events) > 0 {
		w.Errorf("an org without events has %+v", p)
	}
}

// testEventsExpireBesideReaders: a reader that falls behind is told so, and otherwise misses
// nothing, while events are written and deleted.
func testEventsExpireBesideReaders(w *world) {
	const writes = 300
	var newest atomic.Int64 // time of the last event
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		for range writes {
			e := w.happened("acme", event.AgentChanged, "agent:a")
			if err := w.store.Events().Append(w.Context(), e, w.happened("acme", event.KeyCreated, "key:a")); err != nil {
				w.Error(err)
				return
			}
			newest.Store(e.At.UnixMicro())
			w.advance(time.Minute)
		}
	})
	wg.Go(func() {
		for ended := false; !ended; {
			select {
			case <-done:
				ended = true
			default:
			}
			before := time.UnixMicro(newest.Load()).Add(-10 * time.Minute)
			if _, err := w.store.Events().Expire(w.Context(), before); err != nil {
				w.Error(err)
			}
		}
	})
	for limit, f := range map[int]event.Filter{
		1: everything, 3: everything, 50: {Types: event.AgentChanged.Bit()}, 7: {Types: event.KeyCreated.Bit()},
	} {
		wg.Go(func() {
			step := int64(1) // between numbers that the filter selects
			if f.Types != 0 {
				step = 2
			}
			last, next := int64(0), int64(0) // next: the event to come; 0: any
			for {
				ended := false
				select {
				case <-done:
					ended = true
				default:
				}
				p, err := w.store.Events().Page(w.Context(), "acme", event.Query{Filter: f, After: last, Limit: limit})
				if err != nil {
					w.Error(err)
					return
				}
				if p.Missed || last == 0 {
					next = 0
				}
				for _, e := range p.Events {
					if next != 0 && e.Seq != next {
						w.Errorf("limit %d: event %d after %d, want %d, or to be told", limit, e.Seq, last, next)
						return
					}
					next = e.Seq + step
				}
				last = p.Last
				if ended && last == p.Head {
					return
				}
			}
		})
	}
	wg.Wait()
}
