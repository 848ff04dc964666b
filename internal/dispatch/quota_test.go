package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// counted is a store that counts.
type counted struct {
	n, asked atomic.Int64
	fails    atomic.Bool
}

func (c *counted) count(_ context.Context, _ identity.Principal, most int64) (int64, error) {
	c.asked.Add(1)
	if c.fails.Load() {
		return 0, errors.New("away")
	}
	return min(c.n.Load(), most), nil
}

func newTestGauge(c *counted, limit int64, now func() time.Time) *gauge {
	return &gauge{
		limit: limit, refusal: errs.New(errs.RateLimited, task.CodeLiveTasks, "full"), count: c.count, now: now,
		onError: func(error) {}, levels: map[identity.Principal]*level{},
	}
}

// add takes one unit and writes it at once.
func (g *gauge) add(t *testing.T, owner identity.Principal) error {
	t.Helper()
	h, err := g.take(t.Context(), owner)
	h.settle(true)
	return err
}

// settled waits until no count is in progress.
func (g *gauge) settled(owner identity.Principal) {
	g.mu.Lock()
	l := g.level(owner)
	counting := l.counting
	g.mu.Unlock()
	if counting != nil {
		<-counting
	}
}

func TestAGaugeCountsSeldom(t *testing.T) {
	t.Parallel()
	ann := identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"}
	clock := time.Unix(0, 0)
	store := &counted{}
	g := newTestGauge(store, 1000, func() time.Time { return clock })
	// The tasks end as fast as they are sent: the estimate grows, the count does not.
	for i := range 100_000 {
		if err := g.add(t, ann); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if n := store.asked.Load(); n > 120 {
		t.Errorf("%d counts for 100,000 sends; want about one for each thousand", n)
	}
	g.settled(ann)
	// From now on they do not end.
	clock = clock.Add(time.Hour)
	sent, err := 0, error(nil)
	for ; err == nil && sent < 5000; sent++ {
		if err = g.add(t, ann); err == nil {
			g.settled(ann) // a task written during a count may be counted twice
			store.n.Add(1)
		}
	}
	if errs.As(err).Code != task.CodeLiveTasks || store.n.Load() < 1000 || store.n.Load() > 1050 {
		t.Fatalf("refused at %d: got %v, want %s at 1,000 to 1,050", store.n.Load(), err, task.CodeLiveTasks)
	}
	g.settled(ann)
	asked := store.asked.Load()
	for range 1000 {
		if err := g.add(t, ann); err == nil {
			t.Fatal("not refused")
		}
	}
	if n := store.asked.Load() - asked; n > 1 {
		t.Errorf("1,000 refusals at one moment cost %d counts", n)
	}
	// Other owners are not refused.
	if err := g.add(t, identity.Principal{Org: "other", Kind: identity.User, ID: "ann"}); err != nil {
		t.Error(err)
	}
	// Room that became free is found within seconds.
	store.n.Store(3)
	clock = clock.Add(3 * recountEvery)
	if err := g.add(t, ann); err != nil {
		t.Error(err)
	}
}

func TestAGaugeIsExactWhenSmall(t *testing.T) {
	t.Parallel()
	ann := identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"}
	store := &counted{}
	g := newTestGauge(store, 10, time.Now)
	for range 2 {
		if err := g.add(t, ann); err != nil {
			t.Fatal(err)
		}
		store.n.Add(1)
	}
	g.settled(ann) // counted from here on
	var wg sync.WaitGroup
	var taken atomic.Int64
	for range 100 {
		wg.Go(func() {
			if g.add(t, ann) == nil {
				taken.Add(1)
				store.n.Add(1)
			}
		})
	}
	wg.Wait()
	if n := store.n.Load(); n > 12 {
		t.Errorf("%d of 10 were taken", n)
	}
	off := newTestGauge(store, 0, time.Now)
	for range 100 {
		if err := off.add(t, ann); err != nil {
			t.Fatal(err)
		}
	}
}

// Otherwise the admins of an agent's org could use up the places of a sender of another org.
func TestOtherOrgsUseHalfOfTheLiveTasksOfASender(t *testing.T) {
	t.Parallel()
	const limit = 20
	eve := identity.Principal{Org: "other", Kind: identity.User, ID: "eve"}
	stock := &counted{}
	o := Options{Stores: noStores, Now: time.Now, OnError: func(err error) { t.Error(err) }}
	o.Quotas.LiveTasks = limit
	q := newQuotas(&o)
	q.live.count, q.again.count = stock.count, stock.count
	send := func(c Call) error {
		room, err := q.admit(t.Context(), &c, false)
		if room.end(err); err == nil {
			stock.n.Add(1)
		}
		q.live.settled(eve)
		q.again.settled(eve)
		return err
	}
	again := Call{target: Target{Org: "acme"}, onBehalf: eve}
	sent := 0
	for range 2 * limit {
		if send(again) == nil {
			sent++
		}
	}
	if sent < limit/2 || sent > limit/2+limit/10 {
		t.Errorf("sent %d tasks of another org again, want about half of %d", sent, limit)
	}
	if err := send(again); errs.As(err).Code != task.CodeLiveTasks {
		t.Errorf("the next one: %v, want %s", err, task.CodeLiveTasks)
	}
	own := Call{target: Target{Org: "other"}, onBehalf: eve}
	if err := send(own); err != nil {
		t.Errorf("sent again by the sender's own org: %v", err)
	}
}

// A task that the agent's own org sends again is not counted against the org that sent it first.
func TestRerunsByTheAgentsOrgUseNoQuotaOfCallers(t *testing.T) {
	t.Parallel()
	eve := identity.Principal{Org: "other", Kind: identity.User, ID: "eve"}
	target := Target{Org: "acme", Quota: agent.Quota{Tasks: 5, Per: agent.Day}}
	call := func(p identity.Principal) Call {
		access, err := identity.Authorize(&identity.Caller{Principal: p}, p.Org, identity.ReadSelf)
		if err != nil {
			t.Fatal(err)
		}
		return Call{target: target, access: access}
	}
	again := call(identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"})
	again.onBehalf = eve
	if again.charge(time.Now()) != nil {
		t.Error("a rerun by the agent's org is charged to the caller's org, want no charge")
	}
	own := call(eve)
	if own.charge(time.Now()) == nil {
		t.Error("a task of another org is not charged")
	}
}

func TestAGaugeForgetsWhatItCannotHold(t *testing.T) {
	t.Parallel()
	store := &counted{}
	store.fails.Store(true)
	g := newTestGauge(store, 10, time.Now)
	for i := range maxLevels + 100 {
		if err := g.add(t, identity.Principal{Org: "acme", Kind: identity.User, ID: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.levels); n > maxLevels+16 {
		t.Errorf("%d levels", n)
	}
}

func TestReplaysDrain(t *testing.T) {
	t.Parallel()
	r, now := newReplays(), time.Unix(1000, 0)
	user := func(i int) identity.Principal {
		return identity.Principal{Org: "acme", Kind: identity.User, ID: fmt.Sprint(i)}
	}
	if wait := r.take(user(1), replayPerSender, now); wait != 0 {
		t.Fatal(wait)
	}
	if wait := r.take(user(1), replayPerSender/2, now); wait != 30*time.Second {
		t.Errorf("wait %s; want 30s", wait)
	}
	if wait := r.take(user(1), replayPerSender/2, now.Add(30*time.Second)); wait != 0 {
		t.Errorf("wait %s after half a minute", wait)
	}
	// The senders of an org share its budget. Other orgs have their own.
	for i := range 4 {
		if wait := r.take(user(i+2), replayPerSender, now.Add(time.Minute)); wait != 0 {
			t.Fatalf("user %d waits %s", i+2, wait)
		}
	}
	if wait := r.take(user(9), replayPerSender, now.Add(time.Minute)); wait <= 0 {
		t.Error("the org's budget is not used up")
	}
	// A refusal by the org takes nothing from the sender.
	r.orgs.GiveBack("acme", replayPerSender, now.Add(time.Minute))
	if wait := r.take(user(9), replayPerSender, now.Add(time.Minute)); wait != 0 {
		t.Errorf("wait %s after the org's refusal was lifted; want 0", wait)
	}
	other := identity.Principal{Org: "other", Kind: identity.User, ID: "1"}
	if wait := r.take(other, replayPerSender, now.Add(time.Minute)); wait != 0 {
		t.Error(wait)
	}
	r.giveBack(other, replayPerSender, now.Add(time.Minute))
	if wait := r.take(other, replayPerSender, now.Add(time.Minute)); wait != 0 {
		t.Errorf("what is given back is not there: %s", wait)
	}
}

// A count is expensive. Owners that add little are not counted, and there is only one count at a
// time.
func TestAGaugeCountsOnlyWhoAddsMuch(t *testing.T) {
	t.Parallel()
	var running, most, asked atomic.Int64
	g := newTestGauge(&counted{}, 100, time.Now)
	g.count = func(context.Context, identity.Principal, int64) (int64, error) {
		asked.Add(1)
		most.Store(max(most.Load(), running.Add(1)))
		time.Sleep(time.Millisecond)
		running.Add(-1)
		return 0, nil
	}
	user := func(i int) identity.Principal {
		return identity.Principal{Org: "acme", Kind: identity.User, ID: fmt.Sprint(i)}
	}
	for i := range 1000 {
		for range 10 {
			if err := g.add(t, user(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d counts of senders that sent ten tasks each", n)
	}
	for i := range 20 {
		if err := g.add(t, user(i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		g.settled(user(i))
	}
	if asked.Load() != 20 || most.Load() != 1 {
		t.Errorf("%d counts, up to %d at a time; want 20, one at a time", asked.Load(), most.Load())
	}
}

func (g *gauge) estimate(owner identity.Principal) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.level(owner)
	return l.counted + l.added + l.flying
}

func TestWhatIsBeingWrittenIsNotLostByACount(t *testing.T) {
	t.Parallel()
	ann := identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"}
	store := &counted{}
	g := newTestGauge(store, 10, time.Now)
	if err := g.add(t, ann); err != nil {
		t.Fatal(err)
	}
	store.n.Add(1)
	var writing []held
	for range 9 {
		h, err := g.take(t.Context(), ann)
		if err != nil {
			t.Fatal(err)
		}
		writing = append(writing, h)
		g.settled(ann)
	}
	if n := store.asked.Load(); n == 0 {
		t.Fatal("the store was not asked")
	}
	if _, err := g.take(t.Context(), ann); err == nil {
		t.Error("one more than the limit was admitted beside nine that are being written")
	}
	for _, h := range writing[:4] {
		h.settle(false) // refused by the store
	}
	for _, h := range writing[4:] {
		h.settle(true)
	}
	if n := g.estimate(ann); n != 6 {
		t.Errorf("the estimate is %d; want 6", n)
	}
}

func TestARefusalLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	ann, org := identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"}, identity.Principal{Org: "home"}
	full := &counted{}
	full.n.Store(10)
	q := quotas{stored: newTestGauge(&counted{}, 1000, time.Now), live: newTestGauge(full, 10, time.Now)}
	c := callOf(t, ann, Target{Org: "home"})
	refused := 0
	for range 30 {
		if r, err := q.admit(t.Context(), &c, false); err != nil {
			refused++
		} else {
			r.end(nil)
		}
		q.live.settled(ann)
	}
	if n := q.stored.estimate(org); refused == 0 || n != int64(30-refused) {
		t.Errorf("%d of 30 were refused, and %d are estimated to be stored", refused, n)
	}
}

// pushSetter runs a decision and its push guard like a store.
type pushSetter struct {
	TaskWriter
	TaskReader
	set  task.PushSet
	same bool // the configuration is there as it is
	err  error

	known    bool // the task exists when it is looked up, and not only when it is inserted
	inserted int
}

func (s *pushSetter) Taken(context.Context, task.Key) bool { return s.known }

func (s *pushSetter) UpdateByKey(_ context.Context, _ task.Key, _ int64, decide Decision) (task.Change, error) {
	for range 2 { // a write may be run again
		c, err := decide(task.Current{Task: task.Task{State: task.InputRequired}})
		if err == nil && !s.same {
			err = c.PushGuard(s.set)
		}
		if err != nil {
			return c, err
		}
	}
	return task.Change{}, s.err
}

func TestOnlyNewPushConfigurationsCount(t *testing.T) {
	t.Parallel()
	ann := identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"}
	for name, c := range map[string]struct {
		store pushSetter
		want  int64
	}{
		"new":                   {pushSetter{set: task.PushSet{New: true}}, 1},
		"changed":               {pushSetter{}, 0},
		"the same":              {pushSetter{same: true}, 0},
		"refused":               {pushSetter{set: task.PushSet{New: true}, err: errs.ErrNotFound}, 0},
		"perhaps written":       {pushSetter{set: task.PushSet{New: true}, err: context.DeadlineExceeded}, 1},
		"failed, not a new one": {pushSetter{err: context.DeadlineExceeded}, 0},
	} {
		s := &Tasks{board: &board{write: &c.store, now: time.Now}, replays: newReplays()}
		s.quotas = &quotas{
			orgPushes:    newTestGauge(&counted{}, 1000, time.Now),
			senderPushes: newTestGauge(&counted{}, 1000, time.Now),
		}
		guard := s.newPushGuard(t.Context(), ann)
		_, err := s.board.write.UpdateByKey(t.Context(), task.Key{}, 0, func(cur task.Current) (task.Change, error) {
			return task.Change{PushGuard: guard.of(&cur.Task)}, nil
		})
		guard.end(err)
		mine, org := s.quotas.senderPushes.estimate(ann), s.quotas.orgPushes.estimate(identity.Principal{Org: "acme"})
		if mine != c.want || org != c.want {
			t.Errorf("%s: %d and %d are counted; want %d", name, mine, org, c.want)
		}
	}
}

func (s *pushSetter) Insert(context.Context, task.Change, time.Duration) error {
	s.inserted++
	return errs.New(errs.Conflict, errs.CodeExists, "it exists")
}

func (s *pushSetter) ByUID(context.Context, string, string, task.Content) (task.Task, error) {
	return task.Task{}, nil
}

// callOf returns the Call that Reach would return to a principal.
func callOf(t *testing.T, p identity.Principal, target Target) Call {
	t.Helper()
	a, err := identity.Authorize(&identity.Caller{Principal: p, Scopes: identity.AllScopes}, p.Org, identity.CallAgent)
	if err != nil {
		t.Fatal(err)
	}
	return Call{access: a, target: target}
}

// noStores are stores that must not be called.
var noStores = Stores{Stock: struct{ Stock }{}, Pushes: struct{ PushStore }{}}

func TestARepeatedSendCountsNothing(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{false, true} {
		store := &pushSetter{same: true, known: known}
		testRepeatedSend(t, store)
		if tried := store.inserted > 0; tried == known {
			t.Errorf("known %t: an insert was tried: %t", known, tried)
		}
	}
}

func testRepeatedSend(t *testing.T, store *pushSetter) {
	t.Helper()
	ann := identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"}
	stores := noStores
	stores.Write, stores.Read = store, store
	s := New(Options{
		Stores: stores, Now: time.Now, NewID: func(prefix string) string { return prefix + "1" },
		CheckPushURL: func(string) error { return nil }, Deliveries: delivery.New(delivery.Options{}),
		Quotas: task.Quotas{LiveTasks: 1000, StoredTasks: 1000, SenderPushes: 1000, OrgPushes: 1000},
	})
	_, err := s.send(t.Context(), callOf(t, ann, Target{ID: "bot", Org: "home"}), SendRequest{
		ID:      "t-1",
		Message: task.Message{ID: "m-1", Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: "hello"}}},
		Push:    &task.PushConfig{URL: "https://receiver.example/"},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int64{
		"live": s.quotas.live.estimate(ann), "stored": s.quotas.stored.estimate(identity.Principal{Org: "home"}),
		"pushes":            s.quotas.senderPushes.estimate(ann),
		"pushes of the org": s.quotas.orgPushes.estimate(identity.Principal{Org: "acme"}),
	} {
		if n != 0 {
			t.Errorf("%s: %d are counted; want none", name, n)
		}
	}
}
