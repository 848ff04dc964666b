package relay

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/task"
)

// instance is one relay on this node.
type instance struct {
	e        *Engine
	key      task.AgentKey
	breaker  breaker
	checking atomic.Bool

	mu     sync.Mutex
	relay  Relay
	remote *client   // of the relay as it is; nil: none yet
	next   time.Time // of the next check
}

// set takes over a registration, if it has changed.
func (inst *instance) set(r Relay) {
	inst.mu.Lock()
	defer inst.mu.Unlock()
	if inst.next.IsZero() {
		inst.next = time.Now().Add(jitter(refreshEvery) - max(0, time.Since(r.CheckedAt))) // clocks differ
	}
	changed := inst.relay.Relay != r.Relay
	inst.relay = r
	if changed {
		inst.drop()
		if inst.breaker.isOpen() {
			inst.next = time.Now() // it may work now
		}
	}
}

// drop forgets the client. Calls that use it go on for a while.
func (inst *instance) drop() {
	if old := inst.remote; old != nil {
		inst.remote = nil
		time.AfterFunc(2*callTimeout, old.close)
	}
}

func (inst *instance) close() {
	inst.mu.Lock()
	defer inst.mu.Unlock()
	inst.drop()
}

func (inst *instance) account() *budget.Account {
	return &budget.Account{Pool: inst.e.net.memory, Owner: inst.owner()}
}

func (inst *instance) owner() budget.Owner {
	return budget.Owner{Org: inst.key.Org, Principal: "agent:" + inst.key.ID}
}

// client returns the client of the relay.
func (inst *instance) client() (*client, error) {
	inst.mu.Lock()
	defer inst.mu.Unlock()
	if inst.remote != nil {
		return inst.remote, nil
	}
	c, err := openCredential(inst.e.keys, inst.key.Org, inst.key.ID, inst.relay.Credential)
	if err != nil {
		return nil, passing("the credential cannot be decrypted: %s", err)
	}
	card := decodeCard(inst.relay.Card)
	if card.Endpoint.URL == "" {
		return nil, errNotReady
	}
	inst.remote, err = inst.e.net.newClient(card, newAuthenticator(c, inst.e.net.tokens, inst.e.net.guard), inst.owner())
	return inst.remote, err
}

// due reports whether the card must be read.
func (inst *instance) due(now time.Time) bool {
	inst.mu.Lock()
	defer inst.mu.Unlock()
	return !now.Before(inst.next)
}

// check reads the card. Of several nodes one does, unless the remote is down for this node.
func (inst *instance) check(ctx context.Context) {
	inst.mu.Lock()
	r := inst.relay
	inst.mu.Unlock()
	down := inst.breaker.isOpen()
	if !down {
		mine, err := inst.e.store.BeginCheck(ctx, inst.key, r.CheckedAt, inst.e.now())
		if err != nil || !mine {
			inst.later(jitter(refreshEvery))
			return
		}
	}
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	p := inst.e.refresh(limited, &r)
	switch {
	case ctx.Err() != nil:
	case p != nil:
		inst.later(jitter(probeEvery))
		inst.broken(p)
	default:
		inst.later(jitter(refreshEvery))
		if inst.breaker.probed() {
			inst.e.workers.Limit(inst.key, 1)
			inst.health(ctx, "")
		}
	}
}

func (inst *instance) later(in time.Duration) {
	inst.mu.Lock()
	defer inst.mu.Unlock()
	inst.next = time.Now().Add(in)
}

// broken opens the breaker.
func (inst *instance) broken(why error) {
	if inst.breaker.trip() {
		inst.opened(why.Error())
	}
}

// failed counts a failed request.
func (inst *instance) failed(why string) {
	if inst.breaker.failed() {
		inst.opened(why)
	}
}

func (inst *instance) opened(why string) {
	inst.e.workers.Limit(inst.key, 0)
	inst.later(jitter(probeEvery))
	inst.e.log.Warn("a remote agent is down; its tasks wait", "org", inst.key.Org, "agent", inst.key.ID, "problem", why)
	inst.health(context.Background(), why)
}

// succeeded notes a response of the remote.
func (inst *instance) succeeded() {
	if inst.breaker.succeeded() {
		inst.e.workers.Limit(inst.key, dispatch.HostCapacity)
		inst.e.log.Info("a remote agent works again", "org", inst.key.Org, "agent", inst.key.ID)
	}
}

// health records the state for admins.
func (inst *instance) health(ctx context.Context, problem string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := inst.e.store.SetHealth(ctx, inst.key, said(problem), inst.e.now()); err != nil {
		inst.e.onError(err)
	}
}
