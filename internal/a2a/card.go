package a2a

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// protocol is the protocol version in the card (section 9 of the specification).
const protocol = "a2a/1.0"

// Limits of one page of the card.
const (
	maxCardAgents = 1000
	maxCardBytes  = 1 << 20
)

// card serves a page of the platform's card. Without credentials it lists the public agents; with
// credentials, the reachable agents of the caller's org come first.
func (s *server) card(w http.ResponseWriter, r *http.Request) {
	caller := httpx.CallerOf(r.Context())
	page, err := s.cardPage(r.Context(), caller, r.URL.Query().Get("after"))
	if err != nil {
		httpx.WriteError(w, r, err)
		return
	}
	cache := "public, max-age=5"
	if caller != nil {
		cache = "private, no-cache"
	}
	writeCard(w, r, page.body, page.tag, cache, page.modified)
}

// cardPage returns a page for a caller, or the public page if caller is nil. Public pages are built
// at most once a second, and callers share the entries of the first one.
func (s *server) cardPage(ctx context.Context, caller *identity.Caller, after string) (builtCard, error) {
	if caller == nil {
		id, err := s.readPublicCursor(after)
		if err != nil {
			return builtCard{}, err
		}
		page, err := s.publicPage(ctx, id)
		return page.built, err
	}
	last, others, err := readCursor(after)
	if err != nil {
		return builtCard{}, err
	}
	var first publicPage
	if !others || last == "" {
		// Before a slot is taken: others build this page too, and this may have to wait for them.
		if first, err = s.publicPage(ctx, ""); err != nil {
			return builtCard{}, err
		}
	}
	select {
	case s.building <- struct{}{}:
		defer func() { <-s.building }()
	case <-ctx.Done():
		return builtCard{}, ctx.Err()
	}
	part, err := s.visible(ctx, caller, last, others, first.cardPart)
	if err != nil {
		return builtCard{}, err
	}
	return s.build(part, &s.seenByCallers, caller.KeyID+"/"+after), nil
}

// publicPage returns the public page that follows an agent.
func (s *server) publicPage(ctx context.Context, after string) (publicPage, error) {
	pages := s.firstPage
	if after != "" {
		pages = s.laterPages // separate, so that they do not delay the first page
	}
	return pages.get(ctx, after, func(ctx context.Context) (publicPage, error) {
		part, err := s.entries(ctx, agent.Page{Others: true, After: after, Limit: s.CardAgents}, everyAgent)
		if err != nil {
			return publicPage{}, err
		}
		shown := part
		if id, more := strings.CutPrefix(part.next, ofOthers); more {
			shown.next = s.publicCursor(id)
		}
		return publicPage{part, s.build(shown, &s.seen, "/"+after)}, nil
	})
}

func everyAgent(*agent.Agent) bool { return true }

func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// visible returns the page of a caller that follows an agent: agents of the caller's org by id, so
// that others cannot push them out, then the public ones of other orgs by id. Each id is listed
// once, for the agent that the caller reaches under it. first is the first public page.
func (s *server) visible(
	ctx context.Context, caller *identity.Caller, last string, others bool, first cardPart,
) (cardPart, error) {
	var out cardPart
	public := first
	var err error
	access, denied := identity.Authorize(caller, caller.Org, identity.CallAgent)
	switch {
	case !others:
		page := agent.Page{Org: caller.Org, After: last, Limit: s.CardAgents}
		out, err = s.entries(ctx, page, func(a *agent.Agent) bool {
			// A key that may not call agents sees the public ones.
			return a.Public || denied == nil && access.ReachesAgent(a.ID)
		})
		last = ""
	case last != "":
		page := agent.Page{Org: caller.Org, Others: true, After: last, Limit: s.CardAgents}
		public, err = s.entries(ctx, page, everyAgent)
	}
	if err != nil || out.next != "" {
		return out, err
	}
	var hidden map[string]bool
	if denied == nil {
		if hidden, err = s.Agents.HiddenFrom(ctx, access); err != nil {
			return out, err
		}
	}
	for _, e := range public.entries {
		if e.org == caller.Org || hidden[e.id] {
			continue
		}
		if len(out.entries) >= s.CardAgents || out.size > maxCardBytes {
			out.next = ofOthers + last
			return out, nil
		}
		out.add(e)
		last = e.id
	}
	out.next = public.next
	return out, nil
}

// entries encodes as many agents of a page as fit.
func (s *server) entries(ctx context.Context, p agent.Page, shown func(*agent.Agent) bool) (cardPart, error) {
	var out cardPart
	limit := p.Limit
	p.Limit++
	agents, err := s.Directory.Page(ctx, p)
	if err != nil {
		return out, err
	}
	present, err := s.Workers.Presences(ctx)
	if err != nil {
		return out, err
	}
	for i := range agents {
		a := &agents[i]
		if i == limit || out.size > maxCardBytes {
			if out.next = agents[i-1].ID; p.Others {
				out.next = ofOthers + out.next
			}
			break
		}
		if !shown(a) {
			continue
		}
		status := a.Pinned
		if status == "" {
			status = string(present(task.AgentKey{Org: a.Org, ID: a.ID}))
		}
		entry := agentEntry{a.ID, a.Name, a.Description, "/a2a/" + a.ID, a.Skills, status, quotaOf(a)}
		out.add(cardEntry{a.ID, a.Org, appendJSON(nil, entry), a})
	}
	return out, nil
}

// platformCard is a page of the platform's card.
type platformCard struct {
	Name           string           `json:"name"`
	Version        string           `json:"version"`
	Protocol       string           `json:"protocol"`
	Agents         []jsontext.Value `json:"agents"`
	Next           string           `json:"next,omitzero"`
	Capabilities   capabilities     `json:"capabilities"`
	Authentication authentication   `json:"authentication"`
}

type capabilities struct {
	Tasks     bool `json:"tasks"`
	Streaming bool `json:"streaming"`
	Discovery bool `json:"discovery"`
}

type authentication struct {
	Schemes []string `json:"schemes"`
}

// agentEntry is an agent on the platform's card.
type agentEntry struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	URL         string   `json:"url"`
	Skills      []string `json:"skills"`
	Status      string   `json:"status"`

	Quota *quotaEntry `json:"quota,omitzero"` // of each other org
}

// quotaEntry is the quota of an agent, on the platform's card and on its own.
type quotaEntry struct {
	Tasks int64  `json:"tasks"`
	Per   string `json:"per"`
}

// quotaOf returns the quota of an agent, or nil if other orgs have none or cannot call it.
func quotaOf(a *agent.Agent) *quotaEntry {
	if !a.Public || a.Quota == (agent.Quota{}) {
		return nil
	}
	return &quotaEntry{a.Quota.Tasks, string(a.Quota.Per)}
}

// build encodes a page.
func (s *server) build(part cardPart, seen *sightings, viewer string) builtCard {
	card := platformCard{
		Name: s.Name, Version: s.Version, Protocol: protocol, Next: part.next,
		Agents:         make([]jsontext.Value, len(part.entries)),
		Capabilities:   capabilities{Tasks: true, Streaming: true, Discovery: true},
		Authentication: authentication{[]string{"bearer", "oauth2"}},
	}
	for i, e := range part.entries {
		card.Agents[i] = e.json
	}
	b := appendJSON(nil, card)
	tag := tagOf(b)
	return builtCard{b, tag, seen.since(viewer, tag, time.Now())}
}

// holds reports whether a tag is in the lines of If-None-Match.
func holds(lines []string, tag string) bool {
	for _, line := range lines {
		for t := range strings.SplitSeq(line, ",") {
			if t = strings.TrimSpace(t); t == "*" || strings.TrimPrefix(t, "W/") == tag {
				return true
			}
		}
	}
	return false
}

// sightings remembers since when a viewer's card is unchanged. Presence has no date, and an agent
// that left the card leaves none, so this is the only correct Last-Modified. It never goes back
// while the server runs.
type sightings struct {
	mu   sync.Mutex
	last map[string]sighting
}

type sighting struct {
	tag string
	at  time.Time
}

const maxSightings = 10_000

func (s *sightings) since(viewer, tag string, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, ok := s.last[viewer]
	if ok && seen.tag == tag {
		return seen.at
	}
	if s.last == nil || len(s.last) >= maxSightings {
		s.last = map[string]sighting{}
	}
	if now.Before(seen.at) {
		now = seen.at
	}
	s.last[viewer] = sighting{tag, now}
	return now
}
