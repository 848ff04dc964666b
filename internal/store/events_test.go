package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/cache"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/pgtest"
)

var everything = event.Filter{Viewer: event.Viewer{Admin: true}}

// noted returns an event of an org.
func noted(org, subject string) event.Event {
	return event.New(org, event.AgentChanged, time.Now(), subject, "user:ann", event.Members, json.RawMessage(`{"a":1}`))
}

// logOf returns the ids of all events of an org, and fails the test if their numbers have gaps.
func logOf(t *testing.T, s *Store, org string) (ids []string) {
	t.Helper()
	for after := int64(0); ; {
		p, err := s.Events().Page(t.Context(), org, event.Query{Filter: everything, After: after, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Events {
			if e.Seq != after+1 {
				t.Fatalf("event %d of %s follows %d", e.Seq, org, after)
			}
			ids, after = append(ids, e.ID), e.Seq
		}
		if after = p.Last; after == p.Head {
			return ids
		}
	}
}

func countRows(t *testing.T, s *Store, table, org string) (n int) {
	t.Helper()
	if _, err := one(t.Context(), s.eng, []any{&n}, `SELECT count(*) FROM `+table+` WHERE org_id = $1`, org); err != nil {
		t.Fatal(err)
	}
	return n
}

// A write that fails leaves no event, however it fails and with whomever it shares a commit. A
// write that succeeds leaves its events once, also if it had to be repeated.
func TestAFailedWriteLeavesNoEvent(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		failures := []func(x *tx) error{
			func(*tx) error { return errors.New("refused") },
			func(*tx) error { panic("boom") },
			func(x *tx) error {
				x.exec(`INSERT INTO no_such_table (a) VALUES (1)`)
				return nil
			},
			func(x *tx) error { // the key is taken
				x.exec(`INSERT INTO event_heads (org_id) VALUES ('taken')`)
				return nil
			},
			func(x *tx) error {
				x.statements = append(x.statements, statement{
					sql:    x.d.orFail(`UPDATE event_heads SET kept = kept WHERE org_id = 'nowhere'`),
					unless: errors.New("moved"),
				})
				return nil
			},
			func(x *tx) error {
				x.emit(event.Event{Org: "acme", Type: "unknown"})
				return nil
			},
		}
		if err := s.eng.write(t.Context(), func(x *tx) error {
			x.exec(`INSERT INTO event_heads (org_id) VALUES ('taken')`)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for name, write := range map[string]func(context.Context, func(*tx) error) error{
			"write": s.eng.write, "add": s.eng.add, "wide": s.eng.writeWide,
		} {
			var mu sync.Mutex
			var written []string
			var wg sync.WaitGroup
			for i := range 20 * len(failures) {
				wg.Go(func() {
					e := noted("acme", "agent:"+name)
					fails := i%3 == 0
					err := write(t.Context(), func(x *tx) error {
						if fails {
							// The refused statement must be the first one of a write.
							err := failures[i/3%len(failures)](x)
							x.emit(e)
							return err
						}
						x.emit(e)
						return nil
					})
					if (err != nil) != fails {
						t.Errorf("%s %d: %v, want an error: %t", name, i, err, fails)
					}
					if err == nil {
						mu.Lock()
						written = append(written, e.ID)
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			var got []string
			for _, e := range about(t, s, "acme", "agent:"+name) {
				got = append(got, e.ID)
			}
			slices.Sort(got)
			slices.Sort(written)
			if !slices.Equal(got, written) {
				t.Errorf("%s: %d events, want %d", name, len(got), len(written))
			}
		}
		logOf(t, s, "acme")
	})
}

func about(t *testing.T, s *Store, org, subject string) (list []event.Event) {
	t.Helper()
	f := everything
	f.Subject = subject
	for after := int64(0); ; {
		p, err := s.Events().Page(t.Context(), org, event.Query{Filter: f, After: after, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p.Events...)
		if after = p.Last; after == p.Head {
			return list
		}
	}
}

// Expired packs leave nothing behind, and what expired before it was indexed is not sought again.
func TestExpiryDeletesTheIndex(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		ev := s.Events()
		repeat := func(work func() (int, error)) {
			t.Helper()
			for n := 1; n > 0; {
				var err error
				if n, err = work(); err != nil {
					t.Fatal(err)
				}
			}
		}
		expire := func() { repeat(func() (int, error) { return ev.Expire(t.Context(), time.Now().Add(time.Hour)) }) }
		index := func() { repeat(func() (int, error) { return ev.IndexSubjects(t.Context(), "acme") }) }
		for round, indexed := range []bool{true, false} {
			for i := range 700 {
				if err := ev.Append(t.Context(), noted("acme", fmt.Sprint("agent:", i%9)), noted("acme", "agent:x")); err != nil {
					t.Fatal(err)
				}
			}
			if n := len(about(t, s, "acme", "agent:x")); n != 700 {
				t.Fatalf("%d events, want 700", n)
			}
			if indexed {
				index()
				if n := countRows(t, s, "event_subjects", "acme"); n != 1400 {
					t.Errorf("%d entries in the index, want 1400", n)
				}
			}
			expire()
			for _, table := range []string{"events", "event_subjects"} {
				if n := countRows(t, s, table, "acme"); n != 0 {
					t.Errorf("%d rows are left in %s, want none", n, table)
				}
			}
			last := int64(1400 * (round + 1))
			h, err := ev.head(t.Context(), "acme")
			if err != nil || h != (head{last, last + 1, last}) {
				t.Errorf("head = %+v, %v, want %d, all expired and indexed", h, err, last)
			}
			if n, err := ev.Head(t.Context(), "acme"); err != nil || n != last {
				t.Errorf("Head = %d, %v, want %d", n, err, last)
			}
		}
	})
}

// between is an engine that runs a function before a query with a text.
type between struct {
	engine
	text string
	run  func()
}

func (b *between) query(ctx context.Context, sql string, args ...any) (rows, error) {
	if run := b.run; run != nil && strings.Contains(sql, b.text) {
		b.run = nil
		run()
	}
	return b.engine.query(ctx, sql, args...)
}

// Events that are deleted while a page is read are not missed silently.
func TestEventsAreDeletedWhileAPageIsRead(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		for i, c := range []struct {
			name   string
			filter event.Filter
			limit  int
		}{
			{"all", everything, 5},
			{"types", event.Filter{Types: event.AgentChanged.Bit()}, 5},
			{"types without a match", event.Filter{Types: event.KeyCreated.Bit()}, 5},
			{"subject", event.Filter{Subject: "agent:a"}, 5},
			{"indexed subject", event.Filter{Subject: "agent:a"}, 5},
		} {
			org := fmt.Sprint("acme", i)
			ev := s.Events()
			for range 3 {
				if err := ev.Append(t.Context(), noted(org, "agent:a"), noted(org, "agent:b")); err != nil {
					t.Fatal(err)
				}
			}
			if strings.HasPrefix(c.name, "indexed") {
				if _, err := ev.head(t.Context(), org); err != nil {
					t.Fatal(err)
				}
				if _, err := ev.IndexSubjects(t.Context(), org); err != nil {
					t.Fatal(err)
				}
			}
			b := &between{engine: s.eng, text: "data FROM event", run: func() {
				if err := s.Events().Append(t.Context(), noted(org, "agent:a")); err != nil {
					t.Error(err)
				}
				if _, err := (Events{&db{eng: s.eng.(*between).engine, d: s.d, now: s.now}}).Expire(
					t.Context(), time.Now().Add(time.Hour)); err != nil {
					t.Error(err)
				}
			}}
			s.eng = b
			p, err := s.Events().Page(t.Context(), org, event.Query{Filter: c.filter, After: 1, Limit: c.limit})
			s.eng = b.engine
			if err != nil || b.run != nil || !p.Missed {
				t.Errorf("%s: %+v, %v, want it missed", c.name, p, err)
			}
		}
	})
}

// An org without a head gets one with its first event. Only tests and repairs have such orgs.
func TestAnOrgWithoutAHead(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		if ids := logOf(t, s, "nowhere"); len(ids) != 0 {
			t.Errorf("an org without events has %q", ids)
		}
		if n := countRows(t, s, "event_heads", "nowhere"); n != 0 {
			t.Errorf("%d heads, want none", n)
		}
		for range 3 {
			if err := s.Events().Append(t.Context(), noted("new", "agent:a"), noted("new", "agent:b")); err != nil {
				t.Fatal(err)
			}
		}
		if ids := logOf(t, s, "new"); len(ids) != 6 {
			t.Errorf("%d events, want 6", len(ids))
		}
	})
}

// Listeners are told of an org after its events can be read.
func TestListenersHearOfEvents(t *testing.T) {
	t.Parallel()
	for name, where := range map[string]func(t *testing.T) Options{
		"sqlite":   func(t *testing.T) Options { return Options{Dir: t.TempDir()} },
		"postgres": func(t *testing.T) Options { return Options{URL: pgtest.URL(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openFor(t, where(t))
			heard := make(chan string, 100)
			s.OnEvents(func(org string) { heard <- org })
			events := []event.Event{noted("a", "agent:a"), noted("b", "agent:a"), noted("a", "agent:b")}
			if err := s.Events().Append(t.Context(), events...); err != nil {
				t.Fatal(err)
			}
			for want := map[string]bool{"a": true, "b": true}; len(want) > 0; {
				delete(want, <-heard)
			}
			for org, want := range map[string]int{"a": 2, "b": 1} {
				n := 0
				_, err := one(t.Context(), s.eng, []any{&n}, `SELECT seq FROM event_heads WHERE org_id = $1`, org)
				if err != nil || n != want {
					t.Errorf("head of %s = %d, %v, want %d", org, n, err, want)
				}
			}
		})
	}
}

// openFor opens a store until the test ends.
func openFor(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestPacks(t *testing.T) {
	t.Parallel()
	x := &tx{}
	for i := range 250 {
		x.emit(noted([]string{"a", "a", "b"}[i%3], "agent:a"))
	}
	large := noted("a", "agent:large")
	large.Data = json.RawMessage(`"` + strings.Repeat("x", maxPackSize) + `"`)
	x.emit(large, noted("a", "agent:a"))
	var got []string
	events := map[string]int64{}
	for _, p := range packs(x.events) {
		got = append(got, fmt.Sprint(p.org, p.n))
		events[p.org] += p.n
		stored := storedPack{last: p.n, n: p.n, data: p.data()}
		n := int64(0)
		if err := unpack(p.org, &stored, 0, func(*event.Event) bool { n++; return true }); err != nil || n != p.n {
			t.Errorf("pack of %d has %d, %v", p.n, n, err)
		}
	}
	if want := []string{"a100", "b83", "a67", "a1", "a1"}; !slices.Equal(got, want) {
		t.Errorf("packs = %q, want %q", got, want)
	}
	for _, bad := range []storedPack{
		{last: 2, n: 2, data: "1\tagent.changed\t1\tevt\tagent:a\tuser:a\t\t{}\n"},
		{last: 1, n: 1, data: "1\tagent.changed\t1\tevt\tagent:a\tuser:a\t\n"},
		{last: 1, n: 1, data: "x\tagent.changed\t1\tevt\tagent:a\tuser:a\t\t{}\n"},
		{last: 1, n: 1},
	} {
		if err := unpack("a", &bad, 0, func(*event.Event) bool { return true }); err == nil {
			t.Errorf("pack %q is read, want an error", bad.data)
		}
	}
}

// An event costs its line and little more.
func TestAnEventIsPackedCheaply(t *testing.T) { // not parallel: it counts allocations
	e := noted("acme", "agent:scout")
	if n := testing.AllocsPerRun(100, func() {
		x := tx{}
		x.emit(e)
		for _, p := range packs(x.events) {
			_ = p.data()
		}
	}); n > 5 {
		t.Errorf("an event takes %.0f allocations, want at most 5", n)
	}
}

func BenchmarkEmit(b *testing.B) {
	e := noted("acme", "agent:scout")
	e.Data = json.RawMessage(`"` + strings.Repeat("x", 1000) + `"`)
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x := tx{}
				for range n {
					x.emit(e)
				}
				for _, p := range packs(x.events) {
					_ = p.data()
				}
			}
		})
	}
}

// SQLite stores packs compressed, and a damaged one is an error.
func TestPacksAreCompressed(t *testing.T) {
	t.Parallel()
	var p packer
	for _, text := range []string{"", "a", strings.Repeat("b", 2*maxPackerBuffer), "c", strings.Repeat("1\tagent.changed\t1\tevt\x00\n", 5000), strings.Repeat("ä", 99)} {
		stored := p.compress([]string{text})
		if got, err := expandPack(stored); err != nil || got != text {
			t.Errorf("%d bytes became %d, %v", len(text), len(got), err)
		}
		if len(text) > 1000 && len(stored) > len(text)/10 {
			t.Errorf("%d repeated bytes are stored as %d", len(text), len(stored))
		}
	}
	whole := string(p.compress([]string{strings.Repeat("agent.changed", 50)}))
	for _, damaged := range []string{"", whole[:len(whole)/2], "\xff\xff\xff\xff\x0f", "\xff" + whole[1:]} {
		if got, err := expandPack([]byte(damaged)); err == nil {
			t.Errorf("damaged pack %q is read as %q", damaged, got)
		}
	}
}

// The cache returns a text only for the bytes that it was made of.
func TestPackCache(t *testing.T) {
	t.Parallel()
	c, p := newPackCache(), packer{}
	text, other := strings.Repeat("agent.changed", 50), strings.Repeat("agent.created", 50)
	for range 3 {
		stored := p.compress([]string{text})
		if got, err := c.text(stored); err != nil || got != text {
			t.Errorf("a pack of %q became %q, %v", text, got, err)
		}
	}
	if got, want := c.texts.Stats(), (cache.Stats{Hits: 2, Misses: 1}); got != want {
		t.Errorf("three readers of a pack: %+v, want %+v", got, want)
	}

	// Another pack with the same hash.
	stored := p.compress([]string{other})
	c.texts.Set(maphash.Bytes(c.seed, stored), cachedPack{p.compress([]string{text}), text})
	if got, err := c.text(stored); err != nil || got != other {
		t.Errorf("a pack of %q became %q, %v", other, got, err)
	}

	damaged := []byte("\xff\xff\xff\xff\x0f")
	for range 2 {
		if got, err := c.text(damaged); err == nil {
			t.Errorf("a damaged pack is read as %q", got)
		}
	}
	for i := range 500 {
		if _, err := c.text(p.compress([]string{fmt.Sprint(i), strings.Repeat("x", maxPackSize)})); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.texts.Len(); n == 0 || n*maxPackSize > maxPackCache {
		t.Errorf("%d packs of 64 KiB are kept, want at most %d bytes", n, maxPackCache)
	}
}
