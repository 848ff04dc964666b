package a2a

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

// rootCard serves clients that know only the URL of the server. A key that reaches one agent gets
// the card of that agent. All others get a card of the platform, whose skills are the agents that
// the caller sees.
func (s *server) rootCard(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	version, err := cardVersion(r)
	if err != nil {
		httpx.WriteError(w, r, err)
		return
	}
	form := formFor(r, version, false)
	caller := httpx.CallerOf(ctx)
	if caller != nil {
		if id, ok := caller.Scopes.OnlyAgent(); ok {
			a, err := s.cardAgent(r, id)
			switch kind := errs.KindOf(err); {
			case err == nil:
				s.sendAgentCard(w, r, &a, form)
				return
			case kind != errs.NotFound && kind != errs.Forbidden:
				httpx.WriteError(w, r, err)
				return
			}
		}
	}
	page, err := s.platformCard(ctx, caller, form)
	if err != nil {
		httpx.WriteError(w, r, err)
		return
	}
	cache := "public, max-age=5"
	if caller != nil {
		cache = "private, no-cache"
	}
	varyByCard(w.Header())
	writeCard(w, r, page.body, page.tag, cache, page.modified)
}

// platformCard returns the card of the platform for a caller, or the public one if caller is nil.
// Each form of the public card is built at most once a second.
func (s *server) platformCard(ctx context.Context, caller *identity.Caller, f cardForm) (builtCard, error) {
	first, err := s.publicPage(ctx, "")
	if err != nil {
		return builtCard{}, err
	}
	if caller == nil {
		page, err := s.roots.get(ctx, f.String(), func(context.Context) (publicPage, error) {
			built, err := s.buildPlatformCard(first.cardPart, f, &s.seen, "root/"+f.String())
			return publicPage{built: built}, err
		})
		return page.built, err
	}
	select {
	case s.building <- struct{}{}:
		defer func() { <-s.building }()
	case <-ctx.Done():
		return builtCard{}, ctx.Err()
	}
	part, err := s.visible(ctx, caller, "", false, first.cardPart)
	if err != nil {
		return builtCard{}, err
	}
	return s.buildPlatformCard(part, f, &s.seenByCallers, "root/"+f.String()+"/"+caller.KeyID)
}

func (s *server) buildPlatformCard(part cardPart, f cardForm, seen *sightings, viewer string) (builtCard, error) {
	part = part.bounded()
	body, err := s.encodeCard(f, func(f cardForm) officialCard { return s.platformCardOf(part, f) })
	if err != nil {
		return builtCard{}, err
	}
	tag := tagOf(body)
	return builtCard{body, tag, seen.since(viewer, tag, time.Now())}, nil
}

// Limits of the platform's card at the root. It has no pages: clients read it as a whole, and it is
// signed.
const (
	maxRootAgents = 200
	maxRootBytes  = 128 << 10 // of the entries of its agents
)

// bounded returns as much of a page as fits.
func (p cardPart) bounded() cardPart {
	size := 0
	for i, e := range p.entries {
		if size += len(e.json); i == maxRootAgents || size > maxRootBytes && i > 0 {
			return cardPart{entries: p.entries[:i], next: p.entries[i-1].id}
		}
	}
	return p
}

// platformCardOf makes a card whose skills are agents. The protocol has no member for the URL of a
// skill, so it is at the end of the description; clients of 0.3 also find it in url.
func (s *server) platformCardOf(part cardPart, f cardForm) officialCard {
	base := s.PublicURL.String()
	about := "A platform of agents. Each skill is an agent with its own URL and card. "
	if part.next != "" {
		about += "There are more agents than this card lists. "
	}
	c := officialCard{
		Name: s.Name, Version: s.Version,
		Description:       about + "All agents are listed at " + base + "/.well-known/agent.json.",
		Capabilities:      cardCapabilities{Streaming: true, PushNotifications: s.Tasks.Pushes(), Extensions: s.platformExtension(nil)},
		DefaultInputModes: inputModes, DefaultOutputModes: inputModes, DocumentationURL: base + "/docs",
	}
	s.addSecurity(&c, f)
	s.addInterfaces(&c, f, base+"/a2a", "")
	for _, e := range part.entries {
		skill := cardSkill{
			ID: e.id, Name: e.agent.Name, Tags: e.agent.Skills,
			Description: cmp.Or(e.agent.Description, e.agent.Name) + "\n" + base + "/a2a/" + e.id,
		}
		if len(skill.Tags) == 0 {
			skill.Tags = []string{e.id}
		}
		if f.v03() {
			skill.URL = base + "/a2a/" + e.id
		}
		c.Skills = append(c.Skills, skill)
	}
	if len(c.Skills) == 0 { // a card must have a skill
		c.Skills = []cardSkill{{
			ID: "discovery", Name: "Discovery", Description: "Lists the agents of the platform.",
			Tags: []string{"discovery"},
		}}
	}
	return c
}

// noAgent refuses a call to the platform itself.
func (s *server) noAgent(w http.ResponseWriter, r *http.Request) {
	if httpx.CallerOf(r.Context()) == nil {
		refuse(w, r, identity.ErrMissing)
		return
	}
	refuse(w, r, errs.New(errs.NotFound, "resource.not_found",
		"there is no agent at this URL; send to /a2a/<agent_id>; /.well-known/agent-card.json lists the agents"))
}
