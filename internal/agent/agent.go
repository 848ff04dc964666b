// Package agent keeps the registry of agents: who they are and what they can do.
//
// An agent is a principal of its org with a public face. The package holds the
// rules of registration; it knows no card format and no SQL.
package agent

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
)

// Agent is one registered agent. Its id is unique within its org. An agent that is or
// was public also holds its id as a public name, which is unique across the platform.
type Agent struct {
	ID          string
	Org         string
	Name        string
	Description string
	Skills      []string // the tags of its skills, each once
	Public      bool     // reachable from other orgs
	PublicName  bool     // holds its id as a public name, also while it is private or disabled
	Disabled    bool     // reachable by nobody
	Pinned      string   // presence that an admin set; empty: it follows from the workers
	Builtin     string   // which built-in agent it is; empty: workers do its work
	CreatedAt   time.Time
	UpdatedAt   time.Time

	// Profile is read with Registry.Profile: lists and Reach leave it out, because it can
	// be large and only cards show it.
	Profile Profile
}

// Presences are what an admin may pin.
var Presences = []string{"available", "busy", "offline"}

// Edit changes the fields that are not nil.
type Edit struct {
	Name        *string
	Description *string
	Skills      *[]Skill
	Public      *bool
	Disabled    *bool
	Pinned      *string // empty: no longer

	Version, DocumentationURL, IconURL *string // empty: none
	Provider                           *Provider
}

// Page asks for some of the agents that are not disabled: those of one org, or the
// public ones of all others.
type Page struct {
	Org    string // whose; empty: of nobody in particular
	Others bool   // the public ones of every org but Org
	After  string // continues a list behind this id
	Limit  int
}

// Store keeps agents.
type Store interface {
	// Create writes the agent and its principal in one transaction. It refuses
	// with Conflict an id that the org has already and a public name that another agent
	// holds, and an unknown org with NotFound.
	Create(ctx context.Context, a Agent, m identity.Member, e identity.AuditEntry, l Limits) (Agent, error)
	// Update locks the agent, runs edit on it and writes the result; its principal
	// is disabled and enabled with it. A public name that another agent holds is Conflict.
	Update(
		ctx context.Context, org, id string, l Limits, edit func(Agent) (Agent, []identity.AuditEntry, error),
	) (Agent, error)
	// List lists an org's agents by id.
	List(ctx context.Context, org string) ([]Agent, error)
	// Builtin lists the agents of all orgs that run inside the server.
	Builtin(ctx context.Context) ([]Agent, error)
	// Page lists enabled agents by id.
	Page(ctx context.Context, p Page) ([]Agent, error)
	// Reached finds what callers of an org reach under an id. Nothing that it
	// returns depends on the private agents of other orgs.
	Reached(ctx context.Context, org, id string) (Reached, error)
	// Profile reads the profile of an agent; an unknown one is NotFound.
	Profile(ctx context.Context, org, id string) (Profile, error)
	// IDs lists the ids of an org's agents, disabled ones included.
	IDs(ctx context.Context, org string) ([]string, error)
}

// Limits bound what one org has.
type Limits struct {
	Agents      identity.Quota // disabled ones included
	PublicNames identity.Quota // that its agents hold
}

// Registry is the service: what an org's callers and admins see and change of agents, and
// the look-ups by which a caller's request finds its agent. What the operator does is
// Operator.
type Registry struct {
	store Store
	now   func() time.Time

	// Of one org, to be set before use; 0: no limit.
	MaxAgents, MaxPublicNames int

	known *resolutions
}

// NewRegistry makes the service.
func NewRegistry(store Store, now func() time.Time) *Registry {
	return &Registry{store: store, now: now, known: newResolutions(now)}
}

// Bounds of an agent's entry; lengths in characters.
const (
	MaxName        = identity.MaxName
	MaxDescription = 2000
	MaxSkills      = 64
)

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
	a, err = r.store.Create(ctx, a, m, e, r.limits())
	r.forget(a.ID)
	return a, err
}

func (r *Registry) limits() Limits {
	return Limits{
		Agents: identity.Quota{
			Most: r.MaxAgents, Code: "quota.agents",
			Message: "the org has %d agents, disabled ones included, which is the limit (--max-agents); use one of them, or ask the operator for more",
		},
		PublicNames: identity.Quota{
			Most: r.MaxPublicNames, Code: "quota.public_agents",
			Message: "the org's agents hold %d public ids, which is the limit (--max-public-agents); an agent keeps its public id when it is disabled " +
				"or made private: ask the operator to release ids (parley agent release) or for more",
		},
	}
}

// ErrPublicName refuses a public name that an agent of another org holds.
func ErrPublicName(id string) error {
	return errs.New(errs.Conflict, "agent.public_id_taken",
		"the id %q belongs to an agent of another org that is or was public; choose another id, or keep this agent private", id)
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
	a, err := r.store.Update(ctx, org, id, r.limits(), func(a Agent) (Agent, []identity.AuditEntry, error) {
		next, err := decide(a)
		return next, entries(ctx, a, next), err
	})
	r.forget(id)
	return a, err
}

// Forget drops what is remembered of agents, because one of them may have been disabled
// as a member of its org.
func (r *Registry) Forget() { r.known.Clear() }

// entries tell the audit log of a change.
func entries(ctx context.Context, old, next Agent) []identity.AuditEntry {
	var out []identity.AuditEntry
	tell := func(action identity.AuditAction) {
		ref := identity.Principal{Kind: identity.Agent, ID: next.ID}.Ref()
		out = append(out, identity.NewEntry(ctx, next.UpdatedAt, next.Org, action, ref, ""))
	}
	if old.Name != next.Name || old.Description != next.Description || !slices.Equal(old.Skills, next.Skills) ||
		!reflect.DeepEqual(old.Profile, next.Profile) ||
		old.Public != next.Public || old.PublicName != next.PublicName || old.Pinned != next.Pinned {
		tell(identity.AgentUpdate)
	}
	switch {
	case next.Disabled && !old.Disabled:
		tell(identity.AgentDisable)
	case old.Disabled && !next.Disabled:
		tell(identity.AgentEnable)
	}
	return out
}

// decideEdit is the rule of a change.
func decideEdit(a Agent, e Edit, now time.Time) (Agent, error) {
	set(&a.Name, e.Name)
	set(&a.Description, e.Description)
	skills := a.Described(&a.Profile)
	if e.Skills != nil {
		skills = *e.Skills
	}
	a.Describe(skills)
	set(&a.Profile.Version, e.Version)
	set(&a.Profile.DocumentationURL, e.DocumentationURL)
	set(&a.Profile.IconURL, e.IconURL)
	set(&a.Profile.Provider, e.Provider)
	set(&a.Public, e.Public)
	set(&a.Disabled, e.Disabled)
	set(&a.Pinned, e.Pinned)
	a.PublicName = a.PublicName || a.Public
	a.UpdatedAt = now
	if a.Pinned != "" && !slices.Contains(Presences, a.Pinned) {
		return a, invalid("status", fmt.Sprintf("must be one of %v, or empty to follow the workers", Presences))
	}
	return a, e.check(a)
}

// check refuses an entry that breaks a rule. Text that the edit leaves as it is was checked by
// the rules of its time: an agent whose old description breaks a newer one can be disabled.
func (e *Edit) check(a Agent) error {
	if e.Description == nil {
		a.Description = ""
	}
	if e.Skills == nil {
		a.Skills, a.Profile.Skills = nil, nil
	}
	return a.Validate()
}

func set[T any](old, val *T) {
	if val != nil {
		*old = *val
	}
}

// Validate refuses an entry that breaks a rule. The id is checked with the
// principal that it makes.
func (a *Agent) Validate() error {
	if problem := identity.NameRule.Check(a.Name); problem != "" {
		return invalid("name", problem)
	}
	if problem := (text.Rule{Max: MaxDescription}).Check(a.Description); problem != "" {
		return invalid("description", problem)
	}
	var c checks
	if len(a.Profile.Skills) == 0 { // else the tags are those of the skills
		c.tags(errs.At("skills"), a.Skills, MaxSkills)
	}
	if c.profile(&a.Profile); len(c.fields) > 0 {
		return errs.InvalidFields(c.fields...)
	}
	return nil
}

func invalid(name, msg string) error {
	return errs.InvalidFields(errs.Field{Path: errs.At(name), Message: msg})
}

// Visible returns the agents of the caller's org that the credential's restriction to
// agents lets through. Every list of an org's agents is made by it.
func (r *Registry) Visible(ctx context.Context, a identity.Access) ([]Agent, error) {
	if err := a.For(identity.ReadAgents); err != nil {
		return nil, err
	}
	list, err := r.store.List(ctx, a.Org())
	return slices.DeleteFunc(list, func(g Agent) bool { return !a.ReachesAgent(g.ID) }), err
}

// Get returns an agent of the caller's org, also a disabled one. One that the credential's
// restriction to agents does not let through is NotFound.
func (r *Registry) Get(ctx context.Context, a identity.Access, id string) (Agent, error) {
	if err := a.For(identity.ReadAgents, identity.ManageAgents); err != nil {
		return Agent{}, err
	}
	if !a.ReachesAgent(id) {
		return Agent{}, errs.ErrNotFound
	}
	return r.Own(ctx, a.Org(), id)
}

// Page returns some of the agents that are not disabled.
func (r *Registry) Page(ctx context.Context, p Page) ([]Agent, error) {
	return r.store.Page(ctx, p)
}

// Profile returns the profile of an agent.
func (r *Registry) Profile(ctx context.Context, a *Agent) (Profile, error) {
	return r.store.Profile(ctx, a.Org, a.ID)
}
