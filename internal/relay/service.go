package relay

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Registry is the part of agent.Registry that the service needs.
type Registry interface {
	Create(ctx context.Context, by identity.Access, a agent.Agent) (agent.Agent, error)
	Update(ctx context.Context, by identity.Access, id string, e agent.Edit) (agent.Agent, error)
	Get(ctx context.Context, a identity.Access, id string) (agent.Agent, error)
}

// Service is what the admins of an org do with its relays.
type Service struct {
	engine  *Engine
	agents  Registry
	changed func(org, agent string)
}

// NewService returns the service. changed is called after a relay was registered or changed.
func NewService(e *Engine, r Registry, changed func(org, agent string)) *Service {
	return &Service{engine: e, agents: r, changed: changed}
}

// Change is a change of a relay.
type Change struct {
	URL           *string
	SetCredential bool
	Credential    *Credential // nil: none; counts only with SetCredential
}

// Status is a relay as admins see it.
type Status struct {
	URL             string
	CredentialType  string // empty: none
	CredentialSetAt time.Time
	Card            Card
	Problem         string // empty: the remote works
	CheckedAt       time.Time
	NextCheck       time.Time // when this node reads the card next; zero: not known
}

// maxURL is the maximum length of a remote's URL, in bytes.
const maxURL = agent.MaxURL

// Create registers an agent whose work the remote at the URL does. The name and the description
// default to those of the remote's card; the skills are always those of the card.
func (s *Service) Create(
	ctx context.Context, by identity.Access, a agent.Agent, rawURL string, c *Credential,
) (agent.Agent, error) {
	if err := by.For(identity.ManageAgents); err != nil {
		return agent.Agent{}, err
	}
	e := s.engine
	r := agent.Relay{URL: rawURL}
	f, err := e.inspect(ctx, rawURL, c)
	if err == nil {
		err = e.sealInto(&r, by.Org(), a.ID, c)
	}
	if err != nil {
		return agent.Agent{}, err
	}
	if a.Name == "" {
		if a.Name = f.Name; a.Name == "" || identity.NameRule.Check(a.Name) != "" {
			a.Name = a.ID
		}
	}
	if a.Description == "" {
		a.Description = clean(f.doc.Description, agent.MaxDescription)
	}
	r.Card = f.encode()
	a.Builtin, a.Relay = agent.Relayed, &r
	a.Describe(f.doc.skills())
	a, err = s.agents.Create(ctx, by, a)
	if err == nil {
		s.changed(by.Org(), a.ID)
	}
	return a, err
}

// sealInto sets the credential of a registration, which is to be stored at once: the key that encrypts
// it may be replaced later.
func (e *Engine) sealInto(r *agent.Relay, org, id string, c *Credential) (err error) {
	r.CredentialType, r.Credential, r.CredentialSetAt = "", "", time.Time{}
	if c == nil {
		return nil
	}
	r.CredentialType, r.CredentialSetAt = c.Type, e.now()
	r.Credential, err = c.seal(e.keys, org, id)
	return err
}

// inspect checks a remote and a credential that somebody wants to register, and reads the card.
func (e *Engine) inspect(ctx context.Context, rawURL string, c *Credential) (fetched, error) {
	if c != nil {
		if err := c.check(e.net.guard); err != nil {
			return fetched{}, err
		}
		if _, err := c.seal(e.keys, "", ""); err != nil { // without a key nothing is sent
			return fetched{}, err
		}
	}
	if len(rawURL) > maxURL {
		return fetched{}, lasting("has more than %d bytes", maxURL).field()
	}
	f, p := e.net.fetchCard(ctx, rawURL, newAuthenticator(c, e.net.tokens, e.net.guard), Card{})
	if p != nil {
		return fetched{}, p.field()
	}
	if slices.Contains(f.Platforms, e.platform) {
		return fetched{}, errLoop().field()
	}
	return f, nil
}

// Update changes a relay and what else of its agent the edit says. After a change of the origin the
// credential must be given again: it was meant for the other origin.
func (s *Service) Update(
	ctx context.Context, by identity.Access, id string, edit agent.Edit, c Change,
) (agent.Agent, error) {
	if err := by.For(identity.ManageAgents); err != nil {
		return agent.Agent{}, err
	}
	e := s.engine
	r, err := s.relay(ctx, by, id)
	if err != nil {
		return agent.Agent{}, err
	}
	next := r.Relay
	if c.URL != nil {
		next.URL = *c.URL
	}
	old, err := openCredential(e.keys, r.Org, r.Agent, r.Credential)
	if err != nil && !c.SetCredential {
		return agent.Agent{}, err
	}
	switch {
	case c.SetCredential:
		old = c.Credential
	case old != nil && !sameSite(r.URL, next.URL):
		return agent.Agent{}, errs.InvalidFields(errs.Field{
			Path:    errs.At("relay", "credential"),
			Message: "must be given again, or be null, because the URL has another origin",
		})
	}
	f, err := e.inspect(ctx, next.URL, old)
	if err == nil && c.SetCredential {
		err = e.sealInto(&next, r.Org, r.Agent, c.Credential)
	}
	if err != nil {
		return agent.Agent{}, err
	}
	skills := f.doc.skills()
	next.Card = f.encode()
	edit.Relay, edit.Known, edit.Skills = &next, &r.Relay, &skills
	a, err := s.agents.Update(ctx, by, id, edit)
	if err != nil {
		return a, err
	}
	if err := e.store.SetHealth(ctx, r.Key(), "", e.now()); err != nil {
		e.onError(err)
	}
	s.changed(r.Org, r.Agent)
	return a, nil
}

// Edited tells all nodes that an agent was edited, perhaps disabled. It does nothing unless the agent is
// a relay.
func (s *Service) Edited(a *agent.Agent) {
	if s != nil && a.Builtin == agent.Relayed {
		s.changed(a.Org, a.ID)
	}
}

func sameSite(a, b string) bool {
	x, err := url.Parse(a)
	y, yerr := url.Parse(strings.TrimSpace(b))
	return err == nil && yerr == nil && sameOrigin(x, y)
}

// Refresh reads the card of a relay now.
func (s *Service) Refresh(ctx context.Context, by identity.Access, id string) (agent.Agent, error) {
	a, err := s.Update(ctx, by, id, agent.Edit{}, Change{})
	if errors.Is(err, agent.ErrNoRelay) {
		err = errs.New(errs.Invalid, "request.invalid", "agent %q is not a relay: it has no remote card to read", id)
	}
	return a, err
}

// Get returns the state of a relay.
func (s *Service) Get(ctx context.Context, by identity.Access, id string) (Status, error) {
	if err := by.For(identity.ReadAgents, identity.ManageAgents); err != nil {
		return Status{}, err
	}
	r, err := s.relay(ctx, by, id)
	if err != nil {
		return Status{}, err
	}
	return Status{
		URL: r.URL, CredentialType: r.CredentialType, CredentialSetAt: r.CredentialSetAt, Card: decodeCard(r.Card),
		Problem: r.Problem, CheckedAt: r.CheckedAt, NextCheck: s.engine.nextCheck(r.Key()),
	}, nil
}

// relay returns a relay of the caller's org. An ordinary agent is refused.
func (s *Service) relay(ctx context.Context, by identity.Access, id string) (Relay, error) {
	a, err := s.agents.Get(ctx, by, id)
	if err != nil {
		return Relay{}, err
	}
	if a.Builtin != agent.Relayed {
		return Relay{}, agent.ErrNoRelay
	}
	return s.engine.store.Relay(ctx, by.Org(), id)
}
