package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/pgtest"
)

// TestChaos runs three nodes behind haproxy on a PostgreSQL with a replica, and makes nodes and
// the database fail in turn under load. Everything acknowledged is there in the end, exactly once.
// Clients see only 503, the balancer's 502 and 504, or a closed connection.
func TestChaos(t *testing.T) {
	rounds := fromEnv(t, "PARLEY_CHAOS_ROUNDS", 1)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := newChaos(t, rand.New(rand.NewPCG(seed, 0)))
	stop := c.work(t)
	for range rounds {
		c.killNode(t)
		c.freezeNode(t)
		c.stopDatabase(t)
		c.freezeDatabase(t)
		c.makeReadOnly(t)
	}
	c.promote(t) // last of all: the old primary must not come back
	stop()
	t.Logf("failures that clients saw, by status (0: closed connection): %v; the slowest took %v", c.seen(), c.slowest)
	c.check(t)
}

// chaos is the set-up of TestChaos and its clients.
type chaos struct {
	db    *pgtest.Pair
	e     engine
	rng   *rand.Rand
	ports []int
	nodes []*server
	base  string // URL of the balancer
	fleet *fleet
	tasks *taskFleet

	endWorkers func()

	pushes *receiver
	probes []string // acknowledged tasks whose end is pushed

	mu      sync.Mutex
	failed  map[int]int // by status
	slowest time.Duration
}

var chaosFlags = []string{"--rate-limit", "0", "--shutdown-delay", "0s", "--push-allow", "127.0.0.1"}

func newChaos(t *testing.T, rng *rand.Rand) *chaos {
	t.Helper()
	c := &chaos{db: pgtest.StartPair(t), rng: rng, failed: map[int]int{}, pushes: newReceiver(t)}
	c.e = engine{"postgres", []string{"--database", c.db.URL()}}
	for i := range 3 {
		c.ports = append(c.ports, freePort(t))
		c.nodes = append(c.nodes, nil)
		c.startNode(t, i)
	}
	c.base = startBalancer(t, c.ports)
	front := *c.nodes[0]
	front.base = c.base
	c.fleet = newFleet(t, &front, 8)
	c.fleet.http = &http.Client{Timeout: 20 * time.Second, Transport: passingTransport{c, c.fleet.http.Transport}}
	c.tasks = newTaskFleetIn(t, &front, "crew", 6)
	passingHosts.Store(must(url.Parse(c.base))(t).Host, c)
	return c
}

func (c *chaos) startNode(t *testing.T, i int) {
	t.Helper()
	c.nodes[i] = serve(t, c.e, append([]string{"--listen", fmt.Sprintf("127.0.0.1:%d", c.ports[i])}, chaosFlags...)...)
}

// passingTransport turns the responses that are allowed during a fault into errors, like a closed
// connection: the request may or may not have been carried out.
type passingTransport struct {
	c    *chaos
	base http.RoundTripper
}

// errPassing is such a response.
var errPassing = errors.New("a fault that passes")

// RoundTrip implements http.RoundTripper.
func (p passingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	start := time.Now()
	res, err := p.base.RoundTrip(r)
	status := 0
	switch {
	case err == nil && (res.StatusCode == 502 || res.StatusCode == 503 || res.StatusCode == 504):
		if status = res.StatusCode; status == 503 && res.Header.Get("X-Request-Id") != "" &&
			res.Header.Get("Retry-After") == "" {
			return res, nil // a response of Parley's own that lacks something: report it
		}
		_ = res.Body.Close()
		res, err = nil, fmt.Errorf("%w: %d", errPassing, status)
	case err == nil || r.Context().Err() != nil:
		return res, err
	}
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	p.c.failed[status]++
	p.c.slowest = max(p.c.slowest, time.Since(start))
	return res, err
}

func (c *chaos) seen() map[int]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// work runs all clients through all faults until stop is called. Workers go on, to finish what was
// sent.
func (c *chaos) work(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	forever := func(rng *rand.Rand, do func(*rand.Rand) error) {
		wg.Go(func() {
			pause := time.NewTicker(20 * time.Millisecond)
			defer pause.Stop()
			for ctx.Err() == nil {
				err := do(rng)
				if u := (unexpected{}); errors.As(err, &u) && ctx.Err() == nil {
					t.Errorf("a client got: %v", u)
				}
				if err != nil {
					<-pause.C
				}
			}
		})
	}
	own := func() *rand.Rand { return rand.New(rand.NewPCG(c.rng.Uint64(), 0)) }
	for voter := range c.fleet.voters {
		forever(own(), func(rng *rand.Rand) error {
			switch n := rng.IntN(100); {
			case n < 40:
				return c.fleet.submit(voter, rng)
			case n < 85:
				return c.fleet.vote(voter, rng)
			case n < 95:
				return c.fleet.approve(rng)
			}
			_, err := c.fleet.call(c.fleet.keys[voter], "GET", "/proposals", nil, 200)
			return err
		})
	}
	for sender := range c.tasks.peers {
		forever(own(), func(rng *rand.Rand) error { return c.tasks.sendOn(ctx, sender, rng) })
	}
	c.endWorkers = c.tasks.hire(t, 4, own())
	return func() {
		cancel()
		wg.Wait()
	}
}

// during keeps a fault in place for a while.
func (c *chaos) during(d time.Duration) { time.Sleep(d) }

// recovered waits until new requests of both kinds succeed.
func (c *chaos) recovered(t *testing.T, fault string) {
	t.Helper()
	start := time.Now()
	eventually(t, 2*time.Minute, "requests succeed after: "+fault, func() bool {
		if c.fleet.submit(0, c.rng) != nil {
			return false
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		p := peer{base: c.base, key: c.tasks.sender}
		task, err := p.task(ctx, "echo", "message/send", object{
			"message": object{
				"kind": "message", "messageId": fmt.Sprintf("probe-%x", c.rng.Uint64()), "role": "user",
				"parts": []object{{"kind": "text", "text": "go"}},
			},
			"configuration": object{"pushNotificationConfig": object{"url": c.pushes.url}},
		})
		if u := (unexpected{}); errors.As(err, &u) {
			t.Fatal(u)
		}
		if err == nil {
			c.probes = append(c.probes, task.ID)
		}
		return err == nil
	})
	took := time.Since(start)
	t.Logf("%s: requests succeeded %v after it ended", fault, took.Round(time.Millisecond))
	if soakingChaos() && took > 5*time.Second {
		t.Errorf("%s: requests succeeded %v after it ended; want within 5s", fault, took)
	}
	if t.Failed() {
		t.FailNow()
	}
	eventually(t, soon, "all nodes are ready after: "+fault, func() bool {
		for _, s := range c.nodes {
			if readyStatus(t, s) != http.StatusOK {
				return false
			}
		}
		return true
	})
}

func readyStatus(t *testing.T, s *server) int {
	t.Helper()
	res, err := http.Get(s.base + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// notReady waits until no node is ready.
func (c *chaos) notReady(t *testing.T, fault string) {
	t.Helper()
	start := time.Now()
	eventually(t, time.Minute, "no node is ready: "+fault, func() bool {
		for _, s := range c.nodes {
			if readyStatus(t, s) != http.StatusServiceUnavailable {
				return false
			}
		}
		return true
	})
	took := time.Since(start)
	t.Logf("%s: no node was ready after %v", fault, took.Round(time.Millisecond))
	if soakingChaos() && took > 5*time.Second {
		t.Errorf("%s: /readyz told it after %v; want within 5s", fault, took)
	}
}

func (c *chaos) killNode(t *testing.T) {
	i := c.rng.IntN(len(c.nodes))
	c.during(time.Second)
	c.nodes[i].Kill()
	c.during(time.Second)
	c.startNode(t, i)
	c.recovered(t, "a node was killed")
}

func (c *chaos) freezeNode(t *testing.T) {
	p := c.nodes[c.rng.IntN(len(c.nodes))].Cmd.Process
	must(0, p.Signal(syscall.SIGSTOP))(t)
	c.during(3 * time.Second)
	must(0, p.Signal(syscall.SIGCONT))(t)
	c.recovered(t, "a node was frozen")
}

func (c *chaos) stopDatabase(t *testing.T) {
	c.db.Primary.Stop(t)
	c.notReady(t, "the database is stopped")
	c.db.Primary.Start(t)
	c.recovered(t, "the database was stopped")
}

func (c *chaos) freezeDatabase(t *testing.T) {
	c.db.Primary.Freeze(t)
	c.notReady(t, "the database is frozen")
	c.during(2 * time.Second)
	c.db.Primary.Thaw(t)
	c.recovered(t, "the database was frozen")
}

func (c *chaos) makeReadOnly(t *testing.T) {
	c.db.Primary.Exec(t, `ALTER SYSTEM SET default_transaction_read_only = on`)
	c.db.Primary.Exec(t, `SELECT pg_reload_conf()`)
	c.notReady(t, "the database is read-only")
	c.db.Primary.Exec(t, `ALTER SYSTEM RESET default_transaction_read_only`)
	c.db.Primary.Exec(t, `SELECT pg_reload_conf()`)
	c.recovered(t, "the database was read-only")
}

func (c *chaos) promote(t *testing.T) {
	c.db.Primary.Freeze(t) // for good: it must accept no more writes
	c.notReady(t, "the primary is lost")
	c.db.Replica.Promote(t)
	c.recovered(t, "the replica was promoted")
}

// checkPushes waits until the end of every probe was pushed.
func (c *chaos) checkPushes(t *testing.T) {
	t.Helper()
	missing := map[string]bool{}
	for _, id := range c.probes {
		missing[id] = true
	}
	c.pushes.until(t, fmt.Sprintf("the ends of %d tasks", len(c.probes)), func(p pushed) bool {
		for id := range missing {
			if body := string(p.body); strings.Contains(body, id) && strings.Contains(body, "completed") {
				delete(missing, id)
			}
		}
		return len(missing) == 0
	})
	t.Logf("the ends of all %d probes were pushed", len(c.probes))
}

// check compares the stored data with what was acknowledged.
func (c *chaos) check(t *testing.T) {
	c.fleet.verify(t, false)
	c.tasks.finish(t)
	c.endWorkers()
	c.checkPushes(t)
	c.tasks.tryAllStale(t)
	c.tasks.checkStreams(t, c.base)
	for _, s := range c.nodes {
		s.Kill()
	}
	c.tasks.checkLog(t, c.e)
	t.Logf("%d proposals and %d tasks were acknowledged: %v", len(c.fleet.ledger.all()), len(c.tasks.acknowledged()),
		c.tasks.ends())
}
