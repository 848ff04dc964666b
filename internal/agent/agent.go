// Package agent holds the rules of the agent registry: who the agents are, what they can do
// and under which id a caller reaches them.
//
// An agent is a principal of its org with a card that other orgs may see. Registry is for the
// callers and admins of an org, Directory for look-ups by other packages, Operator for the
// operator. The package must not know card formats, HTTP or SQL.
package agent

import (
	"fmt"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
)

// Agent is a registered agent. Its id is unique within its org. An agent that is or was
// public also holds its id as a public name, which is unique across the platform.
type Agent struct {
	ID          string
	Org         string
	Name        string
	Description string
	Skills      []string // the tags of its skills, without duplicates
	Public      bool     // reachable from other orgs
	PublicName  bool     // holds its id as a public name, even while private or disabled
	Disabled    bool     // not reachable at all
	Pinned      string   // presence set by an admin; empty: presence follows from the workers
	Builtin     string   // name of the built-in agent; empty: workers do its work
	CreatedAt   time.Time
	UpdatedAt   time.Time

	// Profile is empty in the results of lists and look-ups, because it can be large and
	// only cards show it. Read it with Directory.Profile or Registry.Profile.
	Profile Profile
}

// Presences are the values that an admin may pin.
var Presences = []string{"available", "busy", "offline"}

// Edit changes the fields that are not nil.
type Edit struct {
	Name        *string
	Description *string
	Skills      *[]Skill
	Public      *bool
	Disabled    *bool
	Pinned      *string // empty: unpin

	Version, DocumentationURL, IconURL *string // empty: remove
	Provider                           *Provider
}

// Bounds of an agent; lengths in characters.
const (
	MaxName        = identity.MaxName
	MaxDescription = 2000
	MaxSkills      = 64
)

// decideEdit applies an edit to an agent.
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

// check validates the edited agent. Text that the edit does not change is not validated: it
// may break a rule that is newer than the text, and the agent must still be editable.
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

// Validate checks everything except the id, which identity.NewMember checks.
func (a *Agent) Validate() error {
	if problem := identity.NameRule.Check(a.Name); problem != "" {
		return invalid("name", problem)
	}
	if problem := (text.Rule{Max: MaxDescription}).Check(a.Description); problem != "" {
		return invalid("description", problem)
	}
	var c checks
	if len(a.Profile.Skills) == 0 { // otherwise the tags come from the skills
		c.tags(errs.At("skills"), a.Skills, MaxSkills)
	}
	if c.profile(&a.Profile); len(c.fields) > 0 {
		return errs.InvalidFields(c.fields...)
	}
	return nil
}

func invalid(name, msg string) error {
	return errs.InvalidFields(errs.NewField(name, msg))
}
