package agent

import (
	"context"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/cache"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Reached is what the callers of an org reach under an id. Which of the two it is, the
// methods of Registry decide.
type Reached struct {
	Own    *Agent // the org's own agent, also a disabled one; nil: there is none
	Public *Agent // the public and enabled agent of another org; nil: there is none
}

// Reach returns the agent that callers of an org reach under an id: the org's own agent
// or else the public one. If org is empty it is the public one. hidden is the public
// agent of another org that the own one hides; nil: there is none.
//
// A disabled agent is NotFound and still hides the public one: to disable an agent must
// not send its callers to another org.
func (r *Registry) Reach(ctx context.Context, org, id string) (a Agent, hidden *Agent, err error) {
	found, err := r.resolve(ctx, org, id)
	switch {
	case err != nil:
		return Agent{}, nil, err
	case found.Own != nil && !found.Own.Disabled:
		return *found.Own, found.Public, nil
	case found.Own == nil && found.Public != nil:
		return *found.Public, nil, nil
	}
	return Agent{}, nil, errs.ErrNotFound
}

// Own returns an agent of an org, also a disabled one.
func (r *Registry) Own(ctx context.Context, org, id string) (Agent, error) {
	found, err := r.resolve(ctx, org, id)
	if err == nil && found.Own == nil {
		// A public agent may be remembered from before the org made its own one on
		// another node: a new agent is there at once.
		found, err = r.read(ctx, org, id)
	}
	if err == nil && found.Own == nil {
		err = errs.ErrNotFound
	}
	if err != nil {
		return Agent{}, err
	}
	return *found.Own, nil
}

// Reachable implements identity.Agents.
func (r *Registry) Reachable(ctx context.Context, org, id string) (bool, error) {
	_, err := r.resolve(ctx, org, id)
	if err != nil && errs.KindOf(err) == errs.NotFound {
		return false, nil
	}
	return err == nil, err
}

// HiddenFrom returns the ids of public agents that a caller of the org does not reach,
// because the org's own agents have them. A key that may not call the own agent is shown
// the public one, as anybody is.
func (r *Registry) HiddenFrom(ctx context.Context, a identity.Access) (map[string]bool, error) {
	if err := a.For(identity.CallAgent); err != nil {
		return nil, err
	}
	ids, err := r.store.IDs(ctx, a.Org())
	out := make(map[string]bool, len(ids))
	for _, id := range slices.DeleteFunc(ids, func(id string) bool { return !a.ReachesAgent(id) }) {
		out[id] = true
	}
	return out, err
}

// resolve finds what callers of an org reach under an id; neither is NotFound.
func (r *Registry) resolve(ctx context.Context, org, id string) (Reached, error) {
	if !identity.ValidAgentID(id) {
		return Reached{}, errs.ErrNotFound
	}
	if found, ok := r.known.Get(key{org, id}); ok {
		return found, nil
	}
	return r.read(ctx, org, id)
}

// read asks the store.
func (r *Registry) read(ctx context.Context, org, id string) (Reached, error) {
	mark := r.known.Mark(key{org, id})
	found, err := r.store.Reached(ctx, org, id)
	if err == nil && found == (Reached{}) {
		err = errs.ErrNotFound
	}
	if err != nil {
		return Reached{}, err
	}
	r.known.Put(key{org, id}, found, mark)
	return found, nil
}

const (
	// rememberFor bounds how long a change made on another node goes unnoticed. A
	// miss is never remembered: a new agent is there at once.
	rememberFor = time.Second
	maxKnown    = 10_000
)

// resolutions remembers for a moment what ids meant to the callers of an org.
type resolutions = cache.Cache[key, Reached]

func newResolutions(now func() time.Time) *resolutions {
	return cache.New(cache.Options[key, Reached]{Max: maxKnown, For: rememberFor, Now: now})
}

// forget drops an id, whichever org uses it.
func (r *Registry) forget(id string) { r.known.DropFunc(func(k key) bool { return k.id == id }) }

// key is an id as the callers of an org use it.
type key struct{ org, id string }
