// Package agent keeps the registry of agents: who they are and what they can do.
//
// An agent is a principal of its org with a public face. The package holds the
// rules of registration; it knows no card format and no SQL.
package agent

import (
	"context"
	"fmt"
	"regexp"
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
	Public      bool // reachable from other orgs
	CreatedAt   time.Time
}

// Store keeps agents.
type Store interface {
	// CreateAgent writes the agent and its principal in one transaction. It refuses
	// a taken id with Conflict and an unknown org with NotFound.
	CreateAgent(ctx context.Context, a Agent, m identity.Member) error
	// Agents lists an org's agents by id.
	Agents(ctx context.Context, org string) ([]Agent, error)
}

// Registry is the service.
type Registry struct {
	store Store
	now   func() time.Time
}

// NewRegistry makes the service.
func NewRegistry(store Store, now func() time.Time) *Registry {
	return &Registry{store: store, now: now}
}

const (
	maxDescription = 2000
	maxSkills      = 64
)

var skillPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._:+#/-]{0,63}$`)

// Create registers an agent.
func (r *Registry) Create(ctx context.Context, a Agent) (Agent, error) {
	a.CreatedAt = r.now()
	p := identity.Principal{Org: a.Org, Kind: identity.Agent, ID: a.ID}
	m, err := identity.NewMember(p, a.Name, false, a.CreatedAt)
	if err != nil {
		return Agent{}, err
	}
	a.Name = m.Name
	if err := a.check(); err != nil {
		return Agent{}, err
	}
	return a, r.store.CreateAgent(ctx, a, m)
}

func (a *Agent) check() error {
	if n := utf8.RuneCountInString(a.Description); n > maxDescription {
		return invalid(fmt.Sprintf("the description has %d characters; at most %d are allowed", n, maxDescription))
	}
	if !utf8.ValidString(a.Description) {
		return invalid("the description is not valid UTF-8")
	}
	for _, c := range a.Description {
		if c == 0 {
			return invalid("the description contains a NUL character")
		}
	}
	if len(a.Skills) > maxSkills {
		return invalid(fmt.Sprintf("%d skills were given; at most %d are allowed", len(a.Skills), maxSkills))
	}
	seen := map[string]bool{}
	for _, s := range a.Skills {
		if !skillPattern.MatchString(s) {
			return invalid(fmt.Sprintf("%q is not a skill tag; use 1 to 64 letters, digits, spaces and . _ : + # / -", s))
		}
		if seen[s] {
			return invalid(fmt.Sprintf("the skill %q is given twice", s))
		}
		seen[s] = true
	}
	return nil
}

func invalid(msg string) error { return errs.New(errs.Invalid, "agent.invalid", "%s", msg) }

// List returns the agents of an org.
func (r *Registry) List(ctx context.Context, org string) ([]Agent, error) {
	return r.store.Agents(ctx, org)
}
