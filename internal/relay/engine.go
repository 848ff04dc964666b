package relay

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/outbound"
	"github.com/parley-dev/parley/internal/secret"
	"github.com/parley-dev/parley/internal/task"
)

// Options configure an Engine.
type Options struct {
	Store    Store
	Workers  *dispatch.Workers
	Agents   Mirrors
	Keys     *secret.Keyring // nil: no credential can be stored
	Guard    *outbound.Guard
	Platform string // id of this platform
	Version  string
	Now      func() time.Time
	Log      *slog.Logger
}

// Mirrors changes the agents of relays after the remote's card has changed.
type Mirrors interface {
	Mirror(ctx context.Context, org, id string, r agent.Relay, skills []agent.Skill) error
}

// Limits of the tasks that are relayed at once on a node. One relay has dispatch.HostCapacity.
const (
	maxOrgTasks = 1024
	maxTasks    = 4096
	// memory bounds what is read from remotes at the same time, in bytes.
	memory = 128 << 20
)

const (
	lease = 15 * time.Second
	// lookEvery is how often relays are sought that no hint announced.
	lookEvery = 5 * time.Second
	// refreshEvery is how often a card is read again.
	refreshEvery = 5 * time.Minute
	// probeEvery is how often a remote that is down is probed.
	probeEvery = 4 * time.Second
	// probeTimeout bounds a probe, so that there is one at least every 10 seconds.
	probeTimeout = 5 * time.Second
	// maxProbes bounds how many cards are read at once.
	maxProbes = 16
)

// Engine runs the relays of all orgs on this node.
type Engine struct {
	store    Store
	workers  *dispatch.Workers
	agents   Mirrors
	keys     *secret.Keyring
	net      *network
	platform string
	now      func() time.Time
	log      *slog.Logger
	shared   *dispatch.SharedSlots

	wake      chan struct{}  // buffered; relays have changed
	ended     chan task.Ref  // buffered; tasks that ended before their remote
	ending    sync.Map       // uids of tasks whose end the remote has reported
	probes    chan struct{}  // slots
	work      sync.WaitGroup // probes
	mu        sync.Mutex
	instances map[task.AgentKey]*instance
}

// New returns an Engine. Run must be running for relays to work.
func New(o Options) *Engine {
	return &Engine{
		store: o.Store, workers: o.Workers, agents: o.Agents, keys: o.Keys, platform: o.Platform, now: o.Now, log: o.Log,
		net: &network{
			guard: o.Guard, client: o.Guard.Client(0), tokens: o.Guard.Client(cardTimeout), version: o.Version,
			memory: budget.NewPool(budget.Limits{Memory: memory, Response: maxBody}),
		},
		shared: dispatch.NewSharedSlots(maxTasks, maxOrgTasks),
		wake:   make(chan struct{}, 1), ended: make(chan task.Ref, 1024), probes: make(chan struct{}, maxProbes),
		instances: map[task.AgentKey]*instance{},
	}
}

func (e *Engine) onError(err error) { e.log.Error("background work on relays failed", "error", err) }

// Changed tells the engine that relays were registered or changed.
func (e *Engine) Changed() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Run runs the relays until ctx ends.
func (e *Engine) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer e.work.Wait()
	wg.Go(func() { e.cancelEnded(ctx) })
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var looked time.Time
	for {
		if time.Since(looked) >= lookEvery {
			if looked = time.Now(); ctx.Err() == nil {
				if err := e.sync(ctx); err != nil && ctx.Err() == nil {
					e.onError(err)
				}
			}
		}
		for _, inst := range e.all() {
			e.check(ctx, inst)
		}
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
			looked = time.Time{}
		case <-tick.C:
		}
	}
}

func (e *Engine) all() []*instance {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]*instance, 0, len(e.instances))
	for _, inst := range e.instances {
		out = append(out, inst)
	}
	return out
}

// nextCheck returns when this node reads the card of a relay next, or zero if it does not run the
// relay yet.
func (e *Engine) nextCheck(k task.AgentKey) time.Time {
	e.mu.Lock()
	inst := e.instances[k]
	e.mu.Unlock()
	if inst == nil {
		return time.Time{}
	}
	inst.mu.Lock()
	defer inst.mu.Unlock()
	return inst.next.UTC()
}

// Via returns the platforms of Parley that an agent leads to, if it is a relay that runs here.
func (e *Engine) Via(a *agent.Agent) []string {
	if a.Builtin != agent.Relayed {
		return nil
	}
	e.mu.Lock()
	inst := e.instances[task.AgentKey{Org: a.Org, ID: a.ID}]
	e.mu.Unlock()
	if inst == nil {
		return nil
	}
	inst.mu.Lock()
	defer inst.mu.Unlock()
	return decodeCard(inst.relay.Card).Platforms
}

// sync hosts the relays that are registered and enabled, and no others.
func (e *Engine) sync(ctx context.Context) error {
	list, err := e.store.Relays(ctx)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	there := make(map[task.AgentKey]bool, len(list))
	for _, r := range list {
		k := r.Key()
		there[k] = true
		if inst := e.instances[k]; inst != nil {
			inst.set(r)
			continue
		}
		inst := &instance{e: e, key: k}
		inst.set(r)
		e.instances[k] = inst
		e.workers.Host(dispatch.Target{ID: k.ID, Org: k.Org, Relay: true}, inst, dispatch.Hosting{
			Lease: lease, Shared: e.shared, Ended: e.taskEnded,
		})
		if r.Problem != "" { // as other nodes or this one found it
			inst.breaker.trip()
			inst.later(jitter(probeEvery))
			e.workers.Limit(k, 0)
		}
	}
	for k, inst := range e.instances {
		if !there[k] {
			e.workers.Unhost(k)
			inst.close()
			delete(e.instances, k)
		}
	}
	return nil
}

// check reads the card of a relay if that is due: often while the remote is down.
func (e *Engine) check(ctx context.Context, inst *instance) {
	if !inst.due(time.Now()) {
		return
	}
	select {
	case e.probes <- struct{}{}:
	default:
		return // the next round
	}
	if !inst.checking.CompareAndSwap(false, true) {
		<-e.probes
		return
	}
	e.work.Go(func() {
		defer func() { <-e.probes }()
		defer inst.checking.Store(false)
		inst.check(ctx)
	})
}

// errLoop refuses a remote that leads back to this platform.
func errLoop() *Problem {
	return lasting("leads back to this platform; a relay must not relay to its own platform, " +
		"also not through another relay (relay.loop)")
}

// refresh reads the card of a relay and mirrors what has changed.
func (e *Engine) refresh(ctx context.Context, r *Relay) *Problem {
	c, err := openCredential(e.keys, r.Org, r.Agent, r.Credential)
	if err != nil {
		return passing("the credential cannot be decrypted: %s", err)
	}
	known := decodeCard(r.Card)
	f, p := e.net.fetchCard(ctx, r.URL, newAuthenticator(c, e.net.tokens, e.net.guard), known)
	if p != nil {
		return p
	}
	if slices.Contains(f.Platforms, e.platform) {
		return errLoop()
	}
	if f.doc == nil {
		return nil
	}
	next := r.Relay
	if next.Card = f.encode(); next.Card == r.Card {
		return nil
	}
	if err := e.agents.Mirror(ctx, r.Org, r.Agent, next, f.doc.skills()); err != nil && ctx.Err() == nil {
		e.onError(err)
		return nil
	}
	e.Changed()
	return nil
}

// jitter spreads checks of many relays.
func jitter(d time.Duration) time.Duration { return d - d/5 + rand.N(d/5+1) }

var errNotReady = errors.New("the remote agent's card was not read yet")
