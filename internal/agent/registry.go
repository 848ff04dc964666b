package agent

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Store keeps agents.
type Store interface {
	// Create writes the agent and its principal in one transaction. It returns Conflict if
	// the org has the id already or another agent holds the public name, and NotFound for
	// an unknown org.
	Create(ctx context.Context, a Agent, m identity.Member, e identity.AuditEntry, l Limits) (Agent, error)
	// Update locks the agent, calls edit and writes the result. The principal of the agent
	// is disabled and enabled with it. A public name that another agent holds is Conflict.
	Update(
		ctx context.Context, org, id string, l Limits, edit func(Agent) (Agent, []identity.AuditEntry, error),
	) (Agent, error)
	// List lists an org's agents by id.
	List(ctx context.Context, org string) ([]Agent, error)
	// IDs lists the ids of an org's agents, including disabled ones.
	IDs(ctx context.Context, org string) ([]string, error)
	// IndexWords makes the words of up to most agents whose words are out of date, and returns how
	// many it found.
	IndexWords(ctx context.Context, most int) (int, error)
	// Builtin lists the agents of all orgs that run inside the server.
	Builtin(ctx context.Context) ([]Agent, error)
}

// Limits bound what one org has.
type Limits struct {
	Agents      identity.Quota // including disabled ones
	PublicNames identity.Quota // held by its agents
}

// Registry is what the callers and admins of an org read and change of its agents. Every
// method takes an Access. Look-ups without one are in Directory; what the operator does is
// in Operator.
type Registry struct {
	store     Store
	directory *Directory
	limits    Limits
	now       func() time.Time
}

// Quotas bound the agents of one org; 0 means no limit.
type Quotas struct {
	Agents      int // including disabled ones
	PublicNames int
}

// NewRegistry returns the service. The directory sees its changes at once.
func NewRegistry(store Store, d *Directory, q Quotas, now func() time.Time) *Registry {
	return &Registry{store: store, directory: d, limits: q.limits(), now: now}
}

func (q Quotas) limits() Limits {
	return Limits{
		Agents: identity.Quota{
			Most: q.Agents, Code: "quota.agents",
			Message: "the org has %d agents, disabled ones included, which is the limit (--max-agents); " +
				"use one of them, or ask the operator for more",
		},
		PublicNames: identity.Quota{
			Most: q.PublicNames, Code: "quota.public_agents",
			Message: "the org's agents hold %d public ids, which is the limit (--max-public-agents); " +
				"an agent keeps its public id when it is disabled or made private: " +
				"ask the operator to release ids (parley agent release) or for more",
		},
	}
}

// Create registers an agent of the org.
func (r *Registry) Create(ctx context.Context, by identity.Access, a Agent) (Agent, error) {
	if err := by.For(identity.ManageAgents); err != nil {
		return Agent{}, err
	}
	a.Org = by.Org()
	return r.create(ctx, a)
}

func (r *Registry) create(ctx context.Context, a Agent) (Agent, error) {
	a.CreatedAt = r.now()
	a.UpdatedAt = a.CreatedAt
	p := identity.Principal{Org: a.Org, Kind: identity.Agent, ID: a.ID}
	m, err := identity.NewMember(p, a.Name, false, a.CreatedAt)
	if err != nil {
		return Agent{}, err
	}
	a.Name = m.Name
	if err := a.Validate(); err != nil {
		return Agent{}, err
	}
	a.PublicName = a.Public
	e := identity.NewEntry(ctx, a.CreatedAt, a.Org, identity.AgentCreate, p.Ref(), "")
	a, err = r.store.Create(ctx, a, m, e, r.limits)
	r.directory.forget(a.ID)
	return a, err
}

// ErrPublicName is the error for a public name that an agent of another org holds.
func ErrPublicName(id string) error {
	return errs.New(errs.Conflict, "agent.public_id_taken",
		"the id %q belongs to an agent of another org that is or was public; "+
			"choose another id, or keep this agent private", id)
}

// Update changes an agent of the org.
func (r *Registry) Update(ctx context.Context, by identity.Access, id string, e Edit) (Agent, error) {
	if err := by.For(identity.ManageAgents); err != nil {
		return Agent{}, err
	}
	now := r.now()
	return r.update(ctx, by.Org(), id, func(a Agent) (Agent, error) { return decideEdit(a, e, now) })
}

func (r *Registry) update(ctx context.Context, org, id string, decide func(Agent) (Agent, error)) (Agent, error) {
	if !identity.ValidAgentID(id) {
		return Agent{}, errs.ErrNotFound
	}
	a, err := r.store.Update(ctx, org, id, r.limits, func(a Agent) (Agent, []identity.AuditEntry, error) {
		next, err := decide(a)
		return next, entries(ctx, a, next), err
	})
	r.directory.forget(id)
	return a, err
}

// entries returns the audit entries of a change.
func entries(ctx context.Context, old, next Agent) []identity.AuditEntry {
	var out []identity.AuditEntry
	add := func(action identity.AuditAction) {
		ref := identity.Principal{Kind: identity.Agent, ID: next.ID}.Ref()
		out = append(out, identity.NewEntry(ctx, next.UpdatedAt, next.Org, action, ref, ""))
	}
	relay := old.Relay != nil && next.Relay != nil && *old.Relay != *next.Relay
	if relay || old.Name != next.Name || old.Description != next.Description || !slices.Equal(old.Skills, next.Skills) ||
		!reflect.DeepEqual(old.Profile, next.Profile) ||
		old.Policy != next.Policy || old.Quota != next.Quota || old.Public != next.Public ||
		old.PublicName != next.PublicName || old.Pinned != next.Pinned {
		add(identity.AgentUpdate)
	}
	switch {
	case next.Disabled && !old.Disabled:
		add(identity.AgentDisable)
	case old.Disabled && !next.Disabled:
		add(identity.AgentEnable)
	}
	return out
}

// Visible returns the agents of the caller's org that the credential may reach. Every list
// of an org's agents comes from here.
func (r *Registry) Visible(ctx context.Context, a identity.Access) ([]Agent, error) {
	if err := a.For(identity.ReadAgents); err != nil {
		return nil, err
	}
	list, err := r.store.List(ctx, a.Org())
	return slices.DeleteFunc(list, func(g Agent) bool { return !a.ReachesAgent(g.ID) }), err
}

// Get returns an agent of the caller's org, even if it is disabled. An agent that the
// credential may not reach is NotFound.
func (r *Registry) Get(ctx context.Context, a identity.Access, id string) (Agent, error) {
	if err := a.For(identity.ReadAgents, identity.ManageAgents); err != nil {
		return Agent{}, err
	}
	if !a.ReachesAgent(id) {
		return Agent{}, errs.ErrNotFound
	}
	return r.directory.Own(ctx, a.Org(), id)
}

// Profile returns the profile of an agent of the caller's org. An agent that the credential
// may not reach is NotFound.
func (r *Registry) Profile(ctx context.Context, a identity.Access, id string) (Profile, error) {
	if err := a.For(identity.ReadAgents, identity.ManageAgents); err != nil {
		return Profile{}, err
	}
	if !a.ReachesAgent(id) {
		return Profile{}, errs.ErrNotFound
	}
	return r.directory.Profile(ctx, &Agent{Org: a.Org(), ID: id})
}

// HiddenFrom returns the ids of public agents that the caller does not reach, because
// agents of the caller's org have the same ids. A credential that may not call the own
// agent sees the public one instead.
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
