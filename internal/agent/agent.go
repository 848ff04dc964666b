// Package agent keeps the registry of agents: who they are and what they can do.
//
// An agent is a principal of its org with a public face. The package holds the
// rules of registration; it knows no card format and no SQL.
package agent

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Agent is one registered agent. Its id is unique across the platform.
type Agent struct {
	ID          string
	Org         string
	Name        string
	Description string
	Skills      []string
	Public      bool   // reachable from other orgs
	Disabled    bool   // reachable by nobody
	Pinned      string // presence that an admin set; empty: it follows from the workers
	Builtin     string // which built-in agent it is; empty: workers do its work
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Presences are what an admin may pin.
var Presences = []string{"available", "busy", "offline"}

// Edit changes the fields that are not nil.
type Edit struct {
	Name        *string
	Description *string
	Skills      *[]string
	Public      *bool
	Disabled    *bool
	Pinned      *string // empty: no longer
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
	// CreateAgent writes the agent and its principal in one transaction. It refuses
	// a taken id with Conflict and an unknown org with NotFound. The limits count the
	// org's agents.
	CreateAgent(ctx context.Context, a Agent, m identity.Member, e identity.AuditEntry, limits ...identity.Quota) error
	// UpdateAgent locks the agent, runs edit on it and writes the result; its principal
	// is disabled and enabled with it.
	UpdateAgent(ctx context.Context, org, id string, edit func(Agent) (Agent, []identity.AuditEntry, error)) (Agent, error)
	// Agents lists an org's agents by id.
	Agents(ctx context.Context, org string) ([]Agent, error)
	// BuiltinAgents lists the agents of all orgs that run inside the server.
	BuiltinAgents(ctx context.Context) ([]Agent, error)
	// AgentsPage lists enabled agents by id.
	AgentsPage(ctx context.Context, p Page) ([]Agent, error)
	// Agent returns NotFound for an unknown id.
	Agent(ctx context.Context, id string) (Agent, error)
}

// Registry is the service.
type Registry struct {
	store Store
	now   func() time.Time

	MaxAgents int // of one org, to be set before use; 0: no limit

	mu    sync.RWMutex
	known map[string]entry // by id, for a moment
}

// entry is an agent as it was read a moment ago.
type entry struct {
	agent Agent
	at    time.Time
}

const (
	// rememberFor bounds how long a change made on another node goes unnoticed. A
	// miss is never remembered: a new agent is there at once.
	rememberFor = time.Second
	maxKnown    = 10_000
)

// NewRegistry makes the service.
func NewRegistry(store Store, now func() time.Time) *Registry {
	return &Registry{store: store, now: now, known: map[string]entry{}}
}

// Bounds of an agent's entry; lengths in characters.
const (
	MaxName        = identity.MaxName
	MaxDescription = 2000
	MaxSkills      = 64
)

var skillPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._:+#/-]{0,63}$`)

// Create registers an agent.
func (r *Registry) Create(ctx context.Context, a Agent) (Agent, error) {
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
	e := identity.NewEntry(ctx, a.CreatedAt, a.Org, identity.AgentCreate, p.Ref(), "")
	return a, r.store.CreateAgent(ctx, a, m, e, identity.Quota{
		Most: r.MaxAgents, Code: "quota.agents",
		Message: "the org has %d agents, disabled ones included, which is the limit (--max-agents); use one of them, or ask the operator for more",
	})
}

// Update changes an agent of an org.
func (r *Registry) Update(ctx context.Context, org, id string, e Edit) (Agent, error) {
	if !identity.ValidAgentID(id) {
		return Agent{}, errs.ErrNotFound
	}
	now := r.now()
	a, err := r.store.UpdateAgent(ctx, org, id, func(a Agent) (Agent, []identity.AuditEntry, error) {
		next, err := decideEdit(a, e, now)
		return next, entries(ctx, a, next), err
	})
	if err == nil {
		r.mu.Lock()
		delete(r.known, id)
		r.mu.Unlock()
	}
	return a, err
}

// Forget drops what is remembered of agents, because one of them may have been disabled
// as a member of its org.
func (r *Registry) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.known)
}

// entries tell the audit log of a change.
func entries(ctx context.Context, old, next Agent) []identity.AuditEntry {
	var out []identity.AuditEntry
	tell := func(action identity.AuditAction) {
		ref := identity.Principal{Kind: identity.Agent, ID: next.ID}.Ref()
		out = append(out, identity.NewEntry(ctx, next.UpdatedAt, next.Org, action, ref, ""))
	}
	if old.Name != next.Name || old.Description != next.Description || !slices.Equal(old.Skills, next.Skills) ||
		old.Public != next.Public || old.Pinned != next.Pinned {
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
	set(&a.Skills, e.Skills)
	set(&a.Public, e.Public)
	set(&a.Disabled, e.Disabled)
	set(&a.Pinned, e.Pinned)
	a.UpdatedAt = now
	if a.Pinned != "" && !slices.Contains(Presences, a.Pinned) {
		return a, invalid("/status", fmt.Sprintf("must be one of %v, or empty to follow the workers", Presences))
	}
	return a, a.Validate()
}

func set[T any](old, val *T) {
	if val != nil {
		*old = *val
	}
}

// Validate refuses an entry that breaks a rule. The id is checked with the
// principal that it makes.
func (a *Agent) Validate() error {
	if problem := identity.NameProblem(a.Name); problem != "" {
		return invalid("/name", problem)
	}
	if n := utf8.RuneCountInString(a.Description); n > MaxDescription {
		return invalid("/description", fmt.Sprintf("has %d characters; at most %d are allowed", n, MaxDescription))
	}
	if !utf8.ValidString(a.Description) || strings.Contains(a.Description, "\x00") {
		return invalid("/description", "must be valid UTF-8 without NUL")
	}
	if len(a.Skills) > MaxSkills {
		return invalid("/skills", fmt.Sprintf("has %d entries; at most %d are allowed", len(a.Skills), MaxSkills))
	}
	seen := map[string]bool{}
	for i, s := range a.Skills {
		at := fmt.Sprintf("/skills/%d", i)
		if !skillPattern.MatchString(s) {
			return invalid(at, fmt.Sprintf("%q is not a skill tag; use 1 to 64 letters, digits, spaces and . _ : + # / -", s))
		}
		if seen[s] {
			return invalid(at, fmt.Sprintf("%q is given twice", s))
		}
		seen[s] = true
	}
	return nil
}

func invalid(at, msg string) error {
	return errs.InvalidFields(errs.Field{In: errs.Body, Name: at, Message: msg})
}

// List returns the agents of an org.
func (r *Registry) List(ctx context.Context, org string) ([]Agent, error) {
	return r.store.Agents(ctx, org)
}

// Visible returns the agents of the caller's org that the credential's restriction to
// agents lets through. Every list of an org's agents is made by it.
func (r *Registry) Visible(ctx context.Context, a identity.Access) ([]Agent, error) {
	if err := a.May(identity.ReadAgents); err != nil {
		return nil, err
	}
	list, err := r.store.Agents(ctx, a.Org())
	return slices.DeleteFunc(list, func(g Agent) bool { return !a.ReachesAgent(g.ID) }), err
}

// Page returns some of the agents that are not disabled.
func (r *Registry) Page(ctx context.Context, p Page) ([]Agent, error) {
	return r.store.AgentsPage(ctx, p)
}

// Builtin returns the agents that run inside the server.
func (r *Registry) Builtin(ctx context.Context) ([]Agent, error) { return r.store.BuiltinAgents(ctx) }

// Reachable implements identity.Agents.
func (r *Registry) Reachable(ctx context.Context, org, id string) (bool, error) {
	a, err := r.Find(ctx, id)
	if err != nil && errs.KindOf(err) == errs.NotFound {
		return false, nil
	}
	return err == nil && (a.Org == org || a.Public && !a.Disabled), err
}

// Find returns an agent by its id, disabled ones included.
func (r *Registry) Find(ctx context.Context, id string) (Agent, error) {
	if !identity.ValidAgentID(id) {
		return Agent{}, errs.ErrNotFound
	}
	now := r.now()
	r.mu.RLock()
	e, ok := r.known[id]
	r.mu.RUnlock()
	if ok && now.Sub(e.at) < rememberFor {
		return e.agent, nil
	}
	a, err := r.store.Agent(ctx, id)
	if err != nil {
		return Agent{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= maxKnown {
		clear(r.known)
	}
	r.known[id] = entry{a, now}
	return a, nil
}
