package delivery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// shelf is a store of many subscriptions, each with one event.
type shelf struct {
	mu   sync.Mutex
	subs map[Key]*Subscription
	keys []Key // in order of creation
}

// add adds a subscription that is due.
func (s *shelf) add(owner, host, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := Key{Kind: testKind, Org: owner, Topic: "u", ID: id}
	if s.subs[k] == nil {
		s.keys = append(s.keys, k)
	}
	s.subs[k] = &Subscription{
		Key: k, Owner: owner, Receiver: "https://" + host, URL: "https://" + host + "/" + id,
		Progress: Progress{State: Active, Head: 1, DueAt: time.Now()},
	}
}

func (s *shelf) get(owner, id string) Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subs[Key{Kind: testKind, Org: owner, Topic: "u", ID: id}].Progress
}

// Claim shares the room between the owners, as a store must.
func (s *shelf) Claim(_ context.Context, r Room) (out []Subscription, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var owners []string
	due := map[string][]*Subscription{}
	for _, k := range s.keys {
		if sub := s.subs[k]; !sub.DueAt.IsZero() && !sub.DueAt.After(time.Now()) {
			if due[k.Org] == nil {
				owners = append(owners, k.Org)
			}
			due[k.Org] = append(due[k.Org], sub)
		}
	}
	slices.SortStableFunc(owners, func(a, b string) int { return r.InUse(a) - r.InUse(b) })
	each := r.Share(len(owners))
	for _, owner := range owners {
		share := each
		slices.SortStableFunc(due[owner], func(a, b *Subscription) int {
			return suspicion(&r, a) - suspicion(&r, b)
		})
		for _, sub := range due[owner] {
			if pace := r.Pace(sub.Key, sub.Attempts); share[pace] > 0 && fits(&r, sub) {
				share[pace]--
				sub.DueAt = time.Now().Add(r.Claim)
				sub.ClaimedUntil = sub.DueAt
				out = append(out, *sub)
			}
		}
	}
	return out, nil
}

func (s *shelf) Release(context.Context) error { return nil }

func (s *shelf) Update(
	_ context.Context, k Key, decide func(Progress, time.Time) (Progress, error),
) (Progress, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subs[k] == nil {
		return Progress{}, errs.ErrNotFound
	}
	out, err := decide(s.subs[k].Progress, time.Now())
	if err == nil {
		s.subs[k].Progress = out
	}
	return out, err
}

// site is a receiver with URLs that stall, that take a time and that work.
type site struct {
	mu   sync.Mutex
	held int            // requests that stall at the moment
	got  map[string]int // finished requests, by id
	take time.Duration  // of ids that begin with "slow"
}

func (s *site) Send(ctx context.Context, r *Request) error {
	if strings.HasPrefix(r.Subscription.ID, "stall") {
		s.mu.Lock()
		s.held++
		s.mu.Unlock()
		<-ctx.Done()
		s.mu.Lock()
		s.held--
		s.mu.Unlock()
		return ctx.Err()
	}
	if strings.HasPrefix(r.Subscription.ID, "slow") {
		time.Sleep(s.take)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got[r.Subscription.ID]++
	return nil
}

func (s *site) count(id string) (done, held int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got[id], s.held
}

// start runs a service in a bubble until the test ends.
func start(t *testing.T, store *shelf, to *site) *Service {
	t.Helper()
	one := list{{Seq: 1, Last: true, Encode: func() (map[string]string, []byte) { return nil, nil }}}
	s := New(Options{Store: store, Sources: from(one), Sender: to, OnError: func(err error) { t.Error(err) }})
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { s.Run(ctx) })
	t.Cleanup(func() {
		stop()
		done.Wait()
	})
	return s
}

func suspicion(r *Room, s *Subscription) int {
	if r.Suspect(Target{s.Owner, s.Receiver}) {
		return 1
	}
	return 0
}

func newShelf() *shelf { return &shelf{subs: map[Key]*Subscription{}} }
func newSite() *site   { return &site{got: map[string]int{}} }

// However many orgs stall, on hosts of their own and on one that all use, another org's delivery to
// that host begins at once. If more orgs begin to stall at the same time than there are slots, it
// begins within three seconds.
func TestOrgsThatStallDelayNoOther(t *testing.T) {
	t.Parallel()
	// Of 8 orgs, six fill their shares of the fast lane. For the seventh 16 slots are free: it takes 5,
	// because it may hold as many as half of those that are free then. The last one takes 4 of 11.
	const filled = 6*fastPerOrg + 5 + 4
	for _, c := range []struct {
		orgs        int
		after, wait time.Duration
	}{
		{8, 0, 0},
		{12, 0, 0},
		{12, 500 * time.Millisecond, 0},
		{12, 1500 * time.Millisecond, 0},
		{12, time.Minute, 0},
		{40, 0, 0},
		{40, 2 * slowAfter, 0},
		{40, 5 * time.Second, 0},
		{40, time.Minute, 0},
		{150, 0, 3 * slowAfter},
		{150, 5 * slowAfter, 0},
		{150, time.Minute, 0},
	} {
		t.Run(fmt.Sprintf("%d orgs after %s", c.orgs, c.after), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, to := newShelf(), newSite()
				for i := range c.orgs {
					owner := fmt.Sprint("bad", i)
					for n := range 100 {
						store.add(owner, fmt.Sprintf("h%d.%s.example", n, owner), fmt.Sprint("stall-", n))
					}
					for n := range 10 {
						store.add(owner, "all.example", fmt.Sprint("stall-all-", n))
					}
				}
				s := start(t, store, to)
				time.Sleep(c.after)
				synctest.Wait()
				_, held := to.count("")
				if held < filled || held > fastSlots+slowSlots+lateSlots {
					t.Errorf("%d requests stall, want that they fill the lanes", held)
				}
				for i := range 3 {
					store.add(fmt.Sprint("good", i), "all.example", "quick")
				}
				s.Nudge()
				time.Sleep(c.wait)
				synctest.Wait()
				if done, now := to.count("quick"); done != 3 || now < held {
					t.Errorf("%d deliveries of other orgs while %d of %d requests stall, want 3", done, now, held)
				}
			})
		})
	}
}

// However many orgs send to receivers that stall, the retries of others are not delayed.
func TestStallingReceiversDelayNoRetryOfOthers(t *testing.T) {
	t.Parallel()
	for _, orgs := range []int{1, 3, 8} {
		t.Run(fmt.Sprint(orgs), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, to := newShelf(), newSite()
				s := start(t, store, to)
				for second := range 30 { // each subscription is new, as those of tasks are
					for i := range orgs {
						owner := fmt.Sprint("bad", i)
						for n := range 20 {
							store.add(owner, fmt.Sprintf("h%d-%d.%s.example", second, n, owner), fmt.Sprintf("stall-%d-%d", second, n))
						}
					}
					s.Nudge()
					time.Sleep(slowAfter)
				}
				synctest.Wait()
				if r := s.inFlight.left(); r.Late.Orgs["bad0"] == 0 || r.Late.Orgs["bad0"] > latePerOrg {
					t.Errorf("%d attempts of one org are late, want 1 to %d", r.Late.Orgs["bad0"], latePerOrg)
				}
				store.add("good", "ok.example", "again")
				store.subs[store.keys[len(store.keys)-1]].Attempts = 1
				s.Nudge()
				synctest.Wait()
				if done, held := to.count("again"); done != 1 {
					t.Errorf("the retry of another org waits beside %d requests that stall", held)
				}
			})
		})
	}
}

// A receiver that stalls leaves the fast lane after a second, and is tried in the slow lane from then
// on, so that other subscriptions of the same org go on.
func TestAStallingReceiverDelaysItsOwnOrgForASecond(t *testing.T) {
	t.Parallel()
	for name, host := range map[string]string{"other hosts": "ok.example", "the same host": "h0.example"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, to := newShelf(), newSite()
				for n := range 8 {
					store.add("acme", fmt.Sprintf("h%d.example", n/4), fmt.Sprint("stall-", n))
				}
				s := start(t, store, to)
				synctest.Wait()
				store.add("acme", host, "first")
				s.Nudge()
				synctest.Wait()
				if done, held := to.count("first"); done != 0 || held != 8 {
					t.Errorf("%d deliveries beside %d that stall, want them to hold all 8 slots", done, held)
				}
				time.Sleep(slowAfter)
				synctest.Wait()
				if done, held := to.count("first"); done != 1 || held != 8 {
					t.Errorf("%d deliveries after a second, %d stall; want 1 and 8", done, held)
				}
				for i := range 10 { // the others fail again and again
					time.Sleep(7 * time.Second)
					id := fmt.Sprint("later-", i)
					store.add("acme", host, id)
					s.Nudge()
					synctest.Wait()
					if done, _ := to.count(id); done != 1 {
						t.Errorf("%s was not delivered at once", id)
					}
				}
			})
		})
	}
}

// Receivers that stall for every subscription leave room to the others of their org, though each
// subscription is new, as those of tasks are.
func TestStallingHostsLeaveRoomToTheirOrg(t *testing.T) {
	t.Parallel()
	for _, hosts := range []int{1, 2, 6, 20} {
		t.Run(fmt.Sprint(hosts), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, to := newShelf(), newSite()
				for n := range 40 {
					for h := range hosts {
						store.add("acme", fmt.Sprintf("h%d.example", h), fmt.Sprintf("stall-%d-%d", h, n))
					}
				}
				s := start(t, store, to)
				for i := range 20 {
					time.Sleep(3 * slowAfter)
					id := fmt.Sprint("good-", i)
					store.add("acme", "good.example", id)
					s.Nudge()
					time.Sleep(2 * slowAfter)
					synctest.Wait()
					if done, _ := to.count(id); done != 1 {
						t.Errorf("%s was not delivered within two seconds", id)
					}
				}
			})
		})
	}
}

// A receiver that responds, but slowly, is remembered.
func TestASlowReceiverBeginsInTheSlowLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, to := newShelf(), newSite()
		to.take = 5 * time.Second
		store.add("acme", "a.example", "slow")
		s := start(t, store, to)
		pace := func() Pace {
			r := s.inFlight.left()
			return r.Pace(Key{Kind: testKind, Org: "acme", Topic: "u", ID: "slow"}, 0)
		}
		inUse := func(want [3]int) {
			t.Helper()
			synctest.Wait()
			r := s.inFlight.left()
			if got := [3]int{r.Lanes[Fast].Orgs["acme"], r.Lanes[Slow].Orgs["acme"], r.Late.Orgs["acme"]}; got != want {
				t.Errorf("slots in use = %v, want %v", got, want)
			}
		}
		inUse([3]int{Fast: 1})
		time.Sleep(slowAfter)
		inUse([3]int{late: 1})
		time.Sleep(time.Minute)
		inUse([3]int{})
		if done, _ := to.count("slow"); done != 1 || pace() != Slow {
			t.Errorf("%d deliveries, then in lane %d; want 1 and the slow lane", done, pace())
		}
		to.take = 0
		store.add("acme", "a.example", "slow")
		s.Nudge()
		synctest.Wait()
		if done, _ := to.count("slow"); done != 2 || pace() != Fast {
			t.Errorf("%d deliveries, then in lane %d; want 2 and the fast lane", done, pace())
		}
		for i := range 2 * maxSlowBefore {
			s.inFlight.slow(&claim{sub: Subscription{Key: Key{ID: fmt.Sprint(i)}}})
		}
		if r := s.inFlight.left(); len(r.SlowBefore) != maxSlowBefore {
			t.Errorf("%d subscriptions are remembered, want %d", len(r.SlowBefore), maxSlowBefore)
		}
	})
}

// All room comes back: after success, failure, a move to the late lane and a stop.
func TestAllRoomIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, to := newShelf(), newSite()
		to.take = 3 * time.Second
		for i := range 30 {
			store.add("acme", fmt.Sprint("a", i/5, ".example"), fmt.Sprint("slow-", i))
			store.add("other", "b.example", fmt.Sprint("ok-", i))
		}
		store.add("other", "c.example", "stall")
		store.subs[store.keys[0]].Size = 1 << 20
		s := start(t, store, to)
		time.Sleep(time.Minute)
		store.mu.Lock()
		delete(store.subs, store.keys[len(store.keys)-1]) // the one that stalls
		store.keys = store.keys[:len(store.keys)-1]
		store.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		r, fresh := s.inFlight.left(), newInFlight(nil, 0).left()
		for _, p := range []Pace{Fast, Slow, late} {
			l := r.lane(p)
			if l.Free != fresh.lane(p).Free || len(l.Orgs) != 0 || len(l.Receivers) != 0 {
				t.Errorf("lane %d = %+v, want all of it", p, l)
			}
		}
		if r.Bytes != roomBytes || len(r.Held) != 0 {
			t.Errorf("%d bytes left, %v held; want all", r.Bytes, r.Held)
		}
	})
}

// The last slots of a lane, and the last bytes, are for orgs that have none.
func TestNoOrgTakesTheLastRoom(t *testing.T) {
	t.Parallel()
	r := newInFlight(nil, 0).left()
	taken := map[string]int{}
	for round := range 10 {
		for i := range 20 {
			owner := fmt.Sprint("org", i)
			if _, fits := r.Take(Fast, Target{owner, fmt.Sprint("r", round)}, 0); fits {
				taken[owner]++
			}
		}
	}
	l := r.Lanes[Fast]
	if l.Free < 3 || taken["org0"] < 2 || taken["org19"] < 2 {
		t.Errorf("%d slots left, taken %v; want some left, and two for each", l.Free, taken)
	}
	for i := range l.Free {
		if _, fits := r.Take(Fast, Target{fmt.Sprint("new", i), "r"}, 0); !fits {
			t.Errorf("no slot for new org %d", i)
		}
	}
	const large = 5 << 20
	for i := range 7 {
		owner := fmt.Sprint("large", i)
		for n := range 8 {
			_, fits := r.Take(Slow, Target{owner, fmt.Sprint("r", n)}, large)
			if n == 0 && !fits {
				t.Errorf("no room for the first bytes of %s; %v held", owner, r.Held)
			}
		}
	}
	if r.Bytes < 0 {
		t.Errorf("%d bytes left", r.Bytes)
	}
}

// A stop waits for requests in flight, but not long. One that is canceled was not an attempt, and is
// due at once.
func TestAStopCancelsWhatStalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, to := newShelf(), newSite()
		to.take = 1500 * time.Millisecond
		store.add("acme", "a.example", "stall")
		store.add("acme", "b.example", "slow")
		one := list{{Seq: 1, Last: true, Encode: func() (map[string]string, []byte) { return nil, nil }}}
		var outcomes []Outcome
		s := New(Options{
			Store: store, Sources: from(one), Sender: to, OnError: func(err error) { t.Error(err) },
			OnAttempt: func(o Outcome) { outcomes = append(outcomes, o) },
		})
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			synctest.Wait()
			stop()
		}()
		began := time.Now()
		s.Run(ctx)
		if d := time.Since(began); d > StopGrace {
			t.Errorf("the stop took %s, want at most %s", d, StopGrace)
		}
		stalled, slow := store.get("acme", "stall"), store.get("acme", "slow")
		if stalled.State != Active || stalled.Attempts != 0 || stalled.LastError != "" ||
			!stalled.ClaimedUntil.IsZero() || stalled.DueAt.IsZero() || stalled.DueAt.After(time.Now()) {
			t.Errorf("the stalled one = %+v; want it due at once, without a failure", stalled)
		}
		if slow.State != Done || len(outcomes) != 1 || outcomes[0] != Delivered {
			t.Errorf("the slow one = %+v, outcomes %v; want it delivered", slow, outcomes)
		}
	})
}

// The status of a response decides. A body that never comes is not waited for.
func TestABodyThatStallsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for name, length := range map[string]string{"trickles": "", "is shorter than it says": "100000"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if length != "" {
					w.Header().Set("Content-Length", length)
				}
				_, _ = w.Write([]byte("begins"))
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(30 * time.Second):
					t.Error("the sender waits for the body")
				}
			}))
			t.Cleanup(srv.Close)
			s := newClient(t, func(o *ClientOptions) { o.Timeout = time.Minute })
			r := request(srv.URL)
			if err := s.Send(t.Context(), r); err != nil || r.Response.Status != 200 || r.Response.Text != "begins" {
				t.Errorf("response %+v, %v; want 200 and the first bytes", r.Response, err)
			}
		})
	}
}

// An error of the store when claims are released is reported, and deliveries go on.
func TestLostClaimsAreReleasedFromTimeToTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &releasing{shelf: newShelf()}
		var failures int
		s := New(Options{Store: store, Sender: newSite(), OnError: func(error) { failures++ }})
		ctx, stop := context.WithTimeout(t.Context(), 3*pollEvery+pollEvery/2)
		defer stop()
		s.Run(ctx)
		if store.times != 4 || failures != 1 {
			t.Errorf("released %d times with %d errors, want at the start and after each second, and 1 error",
				store.times, failures)
		}
	})
}

// releasing counts the calls of Release. The second one fails.
type releasing struct {
	*shelf
	times int
}

func (r *releasing) Release(context.Context) error {
	if r.times++; r.times == 2 {
		return errors.New("not now")
	}
	return nil
}
