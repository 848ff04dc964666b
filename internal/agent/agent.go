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
	"github.com/parley-dev/parley/internal/policy"
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
	Quota       Quota    // of each other org
	Builtin     string   // name of the built-in agent; empty: workers do its work
	CreatedAt   time.Time
	UpdatedAt   time.Time
	Policy      policy.Policy // of tasks whose sender gives none; without a deadline

	// Profile is empty in the results of lists and look-ups, because it can be large and
	// only cards show it. Read it with Directory.Profile or Registry.Profile.
	Profile Profile
	// Relay is set only while a relay is created or changed. Package relay reads it otherwise.
	Relay *Relay
}

// Relay is the remote agent that does the work of a relay.
type Relay struct {
	URL             string
	CredentialType  string // empty: none
	Credential      string // sealed; see package relay
	CredentialSetAt time.Time
	Card            string // what is used of the remote's card; see package relay
}

// Relayed is the Builtin of an agent whose work a remote A2A agent does; see package relay.
const Relayed = "relay"

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
	Policy      *policy.Policy
	Quota       *Quota // zero: remove

	Version, DocumentationURL, IconURL *string // empty: remove
	Provider                           *Provider

	Relay *Relay // a new remote, or a new card of it; package relay checks it
	// Known is the registration that Relay was made from. If URL or credential have changed meanwhile,
	// the edit is refused.
	Known *Relay
}

// Bounds of an agent; lengths in characters.
const (
	MaxName        = identity.MaxName
	MaxDescription = 2000
	MaxSkills      = 64
)

// decideEdit applies an edit to an agent.
func decideEdit(a Agent, e Edit, now time.Time) (Agent, error) {
	switch relay := a.Builtin == Relayed; {
	case e.Relay != nil && !relay:
		return a, ErrNoRelay
	case e.Relay == nil && relay && e.Skills != nil:
		return a, invalid("skills", "are those of the remote agent; change them there")
	case e.Relay != nil && !e.Known.same(a.Relay):
		return a, ErrRelayChanged
	case e.Relay != nil:
		next := *e.Relay
		if a.Relay != nil && next.CredentialSetAt.Equal(a.Relay.CredentialSetAt) {
			next.Credential = a.Relay.Credential // it may have been encrypted with another key meanwhile
		}
		a.Relay = &next
	}
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
	set(&a.Policy, e.Policy)
	set(&a.Quota, e.Quota)
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

// ErrRelayChanged refuses a change of a relay that somebody else has changed meanwhile: a remote may
// take seconds to send its card.
var ErrRelayChanged = errs.New(errs.Conflict, "relay.changed",
	"the URL or the credential of the relay was changed at the same time; look at it, and try again if that is still needed")

// same reports whether two registrations have the same remote and credential.
func (r *Relay) same(other *Relay) bool {
	return r != nil && other != nil && r.URL == other.URL && r.CredentialSetAt.Equal(other.CredentialSetAt)
}

// ErrNoRelay refuses to make a relay of an ordinary agent.
var ErrNoRelay = invalid("relay", "cannot be set on an agent that is no relay; register a new agent")

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
	c.fields = append(c.fields, errs.Under(a.Policy.Check(), "policy")...)
	c.quota(a.Quota)
	if c.profile(&a.Profile); len(c.fields) > 0 {
		return errs.InvalidFields(c.fields...)
	}
	return nil
}

func invalid(name, msg string) error {
	return errs.InvalidFields(errs.NewField(name, msg))
}
