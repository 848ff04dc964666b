package agent

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/cache"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Directory finds agents by id, for package dispatch, which authorizes the caller itself,
// and for cards, which are public. Its methods take no Access. What an org's callers and
// admins read and change is Registry.
type Directory struct {
	store DirectoryStore
	known *cache.Cache[key, Reached]
}

// DirectoryStore is the part of the store that a Directory reads.
type DirectoryStore interface {
	// Reached finds the agents that callers of an org reach under an id. The result does
	// not depend on the private agents of other orgs.
	Reached(ctx context.Context, org, id string) (Reached, error)
	// Page lists enabled agents by id.
	Page(ctx context.Context, p Page) ([]Agent, error)
	// Profile returns NotFound for an unknown agent.
	Profile(ctx context.Context, org, id string) (Profile, error)
}

// Reached holds the agents that have the same id, as seen from one org.
type Reached struct {
	Own    *Agent // the org's own agent, even if disabled; nil: there is none
	Public *Agent // the public, enabled agent of another org; nil: there is none
}

// Page selects enabled agents: those of one org, or the public ones of all other orgs.
type Page struct {
	Org    string // empty: no org
	Others bool   // the public agents of every org except Org
	After  string // continue after this id
	Limit  int
}

const (
	// rememberFor bounds how long a change on another node goes unnoticed. A miss is not
	// cached, so a new agent is found at once.
	rememberFor = time.Second
	maxKnown    = 10_000
)

// key is an id as seen from an org.
type key struct{ org, id string }

// NewDirectory returns a Directory. It caches what it found for a second.
func NewDirectory(store DirectoryStore, now func() time.Time) *Directory {
	o := cache.Options[key, Reached]{Max: maxKnown, For: rememberFor, Now: now}
	return &Directory{store: store, known: cache.New(o)}
}

// CacheStats counts look-ups of agents.
func (d *Directory) CacheStats() cache.Stats { return d.known.Stats() }

// Reach returns the agent that callers of an org reach under an id: the org's own agent,
// or else the public one. With an empty org it is the public one. hidden is the public
// agent of another org that the own agent hides, or nil.
//
// A disabled agent is NotFound, but it still hides the public one: disabling an agent must
// not send its callers to another org.
func (d *Directory) Reach(ctx context.Context, org, id string) (a Agent, hidden *Agent, err error) {
	found, err := d.resolve(ctx, org, id)
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

// Own returns an agent of an org, even if it is disabled.
func (d *Directory) Own(ctx context.Context, org, id string) (Agent, error) {
	found, err := d.resolve(ctx, org, id)
	if err == nil && found.Own == nil {
		// The cached result may be older than an agent that the org created on another
		// node. A new agent must be found at once.
		found, err = d.read(ctx, org, id)
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
func (d *Directory) Reachable(ctx context.Context, org, id string) (bool, error) {
	_, err := d.resolve(ctx, org, id)
	if err != nil && errs.KindOf(err) == errs.NotFound {
		return false, nil
	}
	return err == nil, err
}

// Page returns a page of the enabled agents.
func (d *Directory) Page(ctx context.Context, p Page) ([]Agent, error) {
	return d.store.Page(ctx, p)
}

// Profile returns the profile of an agent.
func (d *Directory) Profile(ctx context.Context, a *Agent) (Profile, error) {
	return d.store.Profile(ctx, a.Org, a.ID)
}

// Forget empties the cache. It must be called when an agent may have been disabled as a
// member of its org.
func (d *Directory) Forget() { d.known.Clear() }

// forget drops an id from the cache, as seen from any org.
func (d *Directory) forget(id string) { d.known.DropFunc(func(k key) bool { return k.id == id }) }

// resolve finds the agents that callers of an org reach under an id, or NotFound.
func (d *Directory) resolve(ctx context.Context, org, id string) (Reached, error) {
	if !identity.ValidAgentID(id) {
		return Reached{}, errs.ErrNotFound
	}
	if found, ok := d.known.Get(key{org, id}); ok {
		return found, nil
	}
	return d.read(ctx, org, id)
}

// read is resolve without the cache. It caches the result.
func (d *Directory) read(ctx context.Context, org, id string) (Reached, error) {
	mark := d.known.Mark(key{org, id})
	found, err := d.store.Reached(ctx, org, id)
	if err == nil && found == (Reached{}) {
		err = errs.ErrNotFound
	}
	if err != nil {
		return Reached{}, err
	}
	d.known.Put(key{org, id}, found, mark)
	return found, nil
}
