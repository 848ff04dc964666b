package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/pgtest"
)

// crowd is a test of the order of events: nodes that write and read one log at the same time.
type crowd struct {
	*testing.T
	nodes []*Store
	orgs  []string

	mu      sync.Mutex
	written map[string]int      // acknowledged events → how many came before them in their transaction
	undone  map[string]struct{} // events that must never be seen
}

// eventRounds is how many times as many writes as usual the test of the order of events makes.
func eventRounds(t *testing.T) int {
	v := os.Getenv("PARLEY_EVENT_ROUNDS")
	if v == "" {
		return 1
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("PARLEY_EVENT_ROUNDS is %q, want a number", v)
	}
	return n
}

func newCrowd(t *testing.T, nodes ...*Store) *crowd {
	return &crowd{
		T: t, nodes: nodes, orgs: []string{"acme", "other"}, written: map[string]int{}, undone: map[string]struct{}{},
	}
}

// batch returns the events of one transaction.
func (c *crowd) batch(r *rand.Rand) []event.Event {
	list := make([]event.Event, []int{1, 1, 1, 2, 5}[r.IntN(5)])
	for i := range list {
		list[i] = noted(c.orgs[0], "agent:a")
		if r.IntN(10) == 0 {
			list[i].Org = c.orgs[1]
		}
	}
	return list
}

// acknowledge notes the events of a write that returned.
func (c *crowd) acknowledge(list []event.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := map[string]int{}
	for _, e := range list {
		c.written[e.ID] = before[e.Org]
		before[e.Org]++
	}
}

var errUndo = errors.New("undone")

// write makes a write of some kind. It returns its events if they were acknowledged.
func (c *crowd) write(ctx context.Context, node *Store, r *rand.Rand) ([]event.Event, error) {
	list := c.batch(r)
	var err error
	switch kind := r.IntN(10); {
	case kind < 4:
		err = node.Events().Append(ctx, list...) // shares its transaction with others
	case kind < 8:
		wait := r.IntN(3) == 0
		err = node.eng.write(ctx, func(t *tx) error {
			var n int
			if _, err := one(ctx, t, []any{&n}, `SELECT 1`); err != nil { // begins the transaction
				return err
			}
			t.emit(list...)
			if wait {
				t.stayOpen(r)
			}
			return nil
		})
	default: // fails after its events were inserted
		err = node.eng.write(ctx, func(t *tx) error {
			t.emit(list...)
			if t.d == &postgresDialect {
				t.stayOpen(r)
			}
			if r.IntN(2) == 0 {
				return errUndo
			}
			t.exec(`INSERT INTO no_such_table (a) VALUES (1)`)
			return nil
		})
		if err == nil {
			return nil, errors.New("a write that must fail was acknowledged")
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, e := range list {
			c.undone[e.ID] = struct{}{}
		}
		return nil, nil
	}
	if err == nil {
		c.acknowledge(list)
	}
	return list, err
}

// stayOpen inserts the packs on PostgreSQL and then keeps the transaction open for some time. This
// node does not notice them after the commit.
func (t *tx) stayOpen(r *rand.Rand) {
	if t.d != &postgresDialect {
		return
	}
	t.statements = append(t.statements, insertPacks(packs(t.events))...)
	t.events = nil
	t.exec(`SELECT pg_sleep($1)`, float64(r.IntN(30))/1000)
}

// contains reads on from a number to the end, as it is now, and wants the events there.
func (c *crowd) contains(ctx context.Context, node *Store, after map[string]int64, list []event.Event) error {
	missing := map[string]string{}
	for _, e := range list {
		missing[e.ID] = e.Org
	}
	for _, org := range c.orgs {
		for last, end := after[org], false; !end; {
			p, err := node.Events().Page(ctx, org, event.Query{Filter: everything, After: last, Limit: 100})
			if err != nil {
				return err
			}
			for _, e := range p.Events {
				delete(missing, e.ID)
			}
			last, end = p.Last, p.Last == p.Head
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("a read after the write was acknowledged lacks %v", missing)
	}
	return nil
}

// reader keeps its last number and reads pages until the end, and sees every number.
func (c *crowd) reader(ctx context.Context, node *Store, org string, limit int, done <-chan struct{}) (ids []string) {
	for last := int64(0); ; {
		ended := false
		select {
		case <-done:
			ended = true
		default:
		}
		p, err := node.Events().Page(ctx, org, event.Query{Filter: everything, After: last, Limit: limit})
		if err != nil {
			c.Errorf("reader: %v", err)
			return ids
		}
		for _, e := range p.Events {
			if last++; e.Seq != last {
				c.Errorf("a reader of %s saw event %d, want %d", org, e.Seq, last)
				return ids
			}
			ids = append(ids, e.ID)
		}
		if p.Last != last || p.Missed {
			c.Errorf("a page of %s ends with %d after event %d", org, p.Last, last)
			return ids
		}
		if ended && p.Last == p.Head {
			return ids
		}
	}
}

// run has writers and readers on every node, and then compares what the readers saw.
func (c *crowd) run(writes int) {
	ctx := c.Context()
	const writers = 8
	done := make(chan struct{})
	var writing, reading sync.WaitGroup
	var mu sync.Mutex
	seen := map[string][][]string{} // by org: what each reader saw
	for n, node := range c.nodes {
		for i := range writers {
			r := rand.New(rand.NewPCG(uint64(n), uint64(i)))
			writing.Go(func() {
				for range writes {
					other := c.nodes[r.IntN(len(c.nodes))]
					heads, check := map[string]int64{}, r.IntN(4) == 0
					for _, org := range c.orgs {
						if h, err := other.Events().head(ctx, org); check && err == nil {
							heads[org] = h.seq
						}
					}
					list, err := c.write(ctx, node, r)
					if err == nil && check {
						err = c.contains(ctx, other, heads, list)
					}
					if err != nil {
						c.Error(err)
						return
					}
				}
			})
		}
		for _, org := range c.orgs {
			for _, limit := range []int{3, 100} {
				reading.Go(func() {
					ids := c.reader(ctx, node, org, limit, done)
					mu.Lock()
					defer mu.Unlock()
					seen[org] = append(seen[org], ids)
				})
			}
		}
	}
	writing.Wait()
	close(done)
	reading.Wait()
	c.compare(seen)
}

// compare wants every reader of an org to have seen the same, and all readers together what was
// acknowledged, each event once.
func (c *crowd) compare(seen map[string][][]string) {
	times := map[string]int{}
	for _, org := range c.orgs {
		for _, ids := range seen[org] {
			if !slices.Equal(ids, seen[org][0]) {
				c.Errorf("readers of %s saw %d and %d events, or in another order", org, len(ids), len(seen[org][0]))
			}
		}
		for i, id := range seen[org][0] {
			times[id]++
			if at := c.written[id]; at > 0 && (i == 0 || c.written[seen[org][0][i-1]] != at-1) {
				c.Errorf("event %d of %s does not follow the one before it in its transaction", i+1, org)
			}
		}
	}
	for id := range c.written {
		if times[id] != 1 {
			c.Errorf("acknowledged event %s was seen %d times", id, times[id])
		}
	}
	for id := range c.undone {
		if times[id] != 0 {
			c.Errorf("event %s of a failed write was seen", id)
		}
	}
	c.Logf("%d events of %d readers, %d undone", len(times), len(seen[c.orgs[0]]), len(c.undone))
}

// TestEveryReaderSeesEveryEventOnce has nodes that write overlapping transactions beside readers
// that hurry. PARLEY_EVENT_ROUNDS=20 makes it long.
func TestEveryReaderSeesEveryEventOnce(t *testing.T) {
	t.Parallel()
	writes := 60 * eventRounds(t)
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		newCrowd(t, openFor(t, Options{Dir: t.TempDir()})).run(writes)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := pgtest.URL(t)
		var nodes []*Store
		for range 3 {
			nodes = append(nodes, openFor(t, Options{URL: url, ReadConns: 12, LockTimeout: time.Minute}))
		}
		// This node does not number what it commits, as if it had died after each commit.
		nodes[2].eng.(*pg).numberer.close()
		c := newCrowd(t, nodes...)
		// A transaction that has inserted its event first, and commits last.
		first := noted("acme", "agent:first")
		finish := insertAndStayOpen(t, url, &first)
		c.run(writes)
		n := len(logOf(t, nodes[0], "acme"))
		finish()
		if ids := logOf(t, nodes[1], "acme"); len(ids) != n+1 || ids[n] != first.ID {
			t.Errorf("the transaction that was committed last has not the last of %d events", len(ids))
		}
	})
}

// insertAndStayOpen leaves an event in a transaction of its own. The function that it returns
// commits it.
func insertAndStayOpen(t *testing.T, url string, e *event.Event) (commit func()) {
	t.Helper()
	conn := connectTo(t, url)
	x := &tx{}
	x.emit(*e)
	x.statements = append(x.statements, insertPacks(packs(x.events))...)
	if _, err := conn.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	for _, s := range x.statements {
		if _, err := conn.Exec(t.Context(), s.sql, s.args...); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		t.Helper()
		if _, err := conn.Exec(t.Context(), "COMMIT"); err != nil {
			t.Fatal(err)
		}
	}
}

func connectTo(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeSoon(conn) })
	return conn
}

// What a node has committed before it died has its number as soon as somebody reads, or another
// node looks for it.
func TestADeadNodeLosesNoEvent(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	dead := openFor(t, Options{URL: url})
	dead.eng.(*pg).numberer.close() // the process has no time to number
	open := noted("acme", "agent:open")
	insertAndStayOpen(t, url, &open) // never commits
	var want []string
	leave := func(n int) {
		t.Helper()
		for range n {
			e := noted("acme", "agent:a")
			want = append(want, e.ID)
			if err := dead.Events().Append(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
	}
	leave(maxNumbered + 10) // more than one run numbers
	if n := countRows(t, dead, "events", "acme"); n != 0 {
		t.Fatalf("%d packs have numbers, want none before the first read", n)
	}
	reader, err := Open(t.Context(), Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	if got := logOf(t, reader, "acme"); !slices.Equal(got, want) {
		t.Errorf("a reader sees %d events, want %d in their order", len(got), len(want))
	}
	leave(3)
	heard := make(chan string, 100)
	other := openFor(t, Options{URL: url})
	other.OnEvents(func(org string) { heard <- org })
	if err := reader.Close(); err != nil { // else it might be faster
		t.Fatal(err)
	}
	leave(2)
	late := time.After(time.Minute)
	select {
	case <-heard: // without any read
	case <-late:
		t.Fatal("the other node heard of no event")
	}
	for n := 0; n < len(want); {
		_, err := one(t.Context(), other.eng, []any{&n}, `SELECT seq FROM event_heads WHERE org_id = 'acme'`)
		if err != nil {
			t.Fatal(err)
		}
		if n > len(want) {
			t.Fatalf("the head is %d, want %d", n, len(want))
		}
		select {
		case <-late:
			t.Fatalf("the head is %d after a minute, want %d", n, len(want))
		case <-time.After(10 * time.Millisecond):
		}
	}
	if got := logOf(t, other, "acme"); !slices.Equal(got, want) {
		t.Errorf("another node sees %d events, want %d in their order", len(got), len(want))
	}
}

// A read that begins after a write was acknowledged contains its event, while a transaction that
// began before stays open.
func TestAnOpenTransactionHidesNoEvent(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	a, b := openFor(t, Options{URL: url}), openFor(t, Options{URL: url})
	first := noted("acme", "agent:first")
	finish := insertAndStayOpen(t, url, &first)
	var want []string
	for i := range 50 {
		e := noted("acme", "agent:a")
		want = append(want, e.ID)
		writer, reader := a, b
		if i%2 == 0 {
			writer, reader = b, a
		}
		if err := writer.Events().Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		p, err := reader.Events().Page(t.Context(), "acme", event.Query{Filter: everything, After: int64(i), Limit: 100})
		if err != nil || len(p.Events) != 1 || p.Events[0].ID != e.ID || p.Events[0].Seq != int64(i+1) {
			t.Fatalf("page after write %d = %+v, %v, want its event", i+1, p.Events, err)
		}
	}
	finish()
	if got := logOf(t, a, "acme"); !slices.Equal(got, append(want, first.ID)) {
		t.Errorf("%d events, want the open one last of %d", len(got), len(want)+1)
	}
}

// Nodes that number a long backlog at the same time leave nothing of it to a later read.
func TestNodesNumberABacklogTogether(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	var nodes []*Store
	for range 4 {
		s := openFor(t, Options{URL: url})
		s.eng.(*pg).numberer.close()
		nodes = append(nodes, s)
	}
	const packs = 2*maxNumbered + 500
	for round := range int64(3) {
		if err := nodes[0].eng.write(t.Context(), func(x *tx) error {
			x.exec(fillPacks, packs)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for _, s := range nodes {
			wg.Go(func() {
				if h, err := s.Events().head(t.Context(), "acme"); err != nil || h.seq != (round+1)*packs {
					t.Errorf("the log ends with %d, %v, want %d", h.seq, err, (round+1)*packs)
				}
			})
		}
		wg.Wait()
	}
	logOf(t, nodes[0], "acme")
}

// A node that is frozen or cut off while it numbers keeps no other node from reading the log.
func TestAFrozenNodeHoldsNoLog(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	proxy := pgtest.NewProxy(t, url)
	a := openFor(t, Options{URL: url})
	b := openFor(t, Options{URL: proxy.URL(t, url)})
	for i := range 20 {
		if err := a.eng.write(t.Context(), func(x *tx) error {
			x.exec(fillPacks, 10)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = b.eng.number(context.Background(), "acme") // may fail: it is cut off
		}()
		time.Sleep(time.Duration(i) * 200 * time.Microsecond) // hits another moment each time
		proxy.Silence()
		h, err := a.Events().head(t.Context(), "acme")
		proxy.Resume()
		if want := int64(i+1) * 10; err != nil || h.seq != want {
			t.Fatalf("round %d: the log ends with %d, %v, want %d", i, h.seq, err, want)
		}
		<-done
	}
}

// fillPacks leaves so many packs of one event.
const fillPacks = `INSERT INTO events_new (org_id, n, at, types, data)
	SELECT 'acme', 1, 1, 1, '1' || chr(9) || 'agent.changed' || repeat(chr(9) || '1', 6) || chr(10)
	FROM generate_series(1, $1)`
