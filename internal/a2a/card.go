package a2a

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/wire"
)

// protocol is the version of A2A that the card names (section 9 of the specification).
const protocol = "a2a/1.0"

// Bounds of one page of the card.
const (
	maxCardAgents = 1000
	maxCardBytes  = 1 << 20
)

// card answers with a page of the platform's card. Everybody sees the public agents;
// with credentials those of the own org that they reach come first.
func (s *server) card(w http.ResponseWriter, r *http.Request) {
	after := r.URL.Query().Get("after")
	if after != "" && !identity.ValidAgentID(after) {
		httpx.WriteError(w, r, errs.InvalidFields(errs.Field{
			In: errs.Query, Name: "after", Message: `must be the "next" of the page before`,
		}))
		return
	}
	caller := httpx.CallerOf(r.Context())
	page, err := s.cardPage(r.Context(), caller, after)
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

// cardPage is a page for a caller, or for everybody if it is nil: the latter is built at
// most once a second, however many ask for it.
func (s *server) cardPage(ctx context.Context, caller *identity.Caller, after string) (builtCard, error) {
	if caller == nil {
		pages := &s.firstPage
		if after != "" {
			pages = &s.laterPages // whoever invents cursors does not delay the first page
		}
		return pages.get(ctx, after, func(ctx context.Context) (builtCard, error) { return s.buildCard(ctx, nil, after) })
	}
	select {
	case s.building <- struct{}{}:
		defer func() { <-s.building }()
	case <-ctx.Done():
		return builtCard{}, ctx.Err()
	}
	return s.buildCard(ctx, caller, after)
}

func (s *server) buildCard(ctx context.Context, caller *identity.Caller, after string) (builtCard, error) {
	agents, next, err := s.visible(ctx, caller, after)
	if err != nil {
		return builtCard{}, err
	}
	body, err := s.appendCard(ctx, nil, agents, next)
	if err != nil {
		return builtCard{}, err
	}
	viewer := "/" + after
	if caller != nil {
		viewer = caller.KeyID + viewer
	}
	tag := tagOf(body)
	return builtCard{body, tag, s.seen.since(viewer, tag, time.Now())}, nil
}

func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// visible lists a page of agents: those of the own org by id, so that others cannot push
// them out, then the public ones of other orgs by id. next is where the next page begins.
func (s *server) visible(ctx context.Context, caller *identity.Caller, after string) (list []agent.Agent, next string, _ error) {
	org, limit := "", s.CardAgents
	if caller != nil {
		org = caller.Org
		own := after == ""
		if !own {
			a, err := s.Agents.Find(ctx, after)
			if err != nil && errs.KindOf(err) != errs.NotFound {
				return nil, "", err
			}
			own = err == nil && a.Org == org
		}
		if own {
			mine, err := s.Agents.Page(ctx, agent.Page{Org: org, After: after, Limit: limit + 1})
			if err != nil {
				return nil, "", err
			}
			mine, next = cut(mine, limit)
			access, denied := identity.Authorize(caller, org, identity.CallAgent)
			for _, a := range mine {
				// A key that may call nobody sees what everybody sees.
				if a.Public || denied == nil && access.ReachesAgent(a.ID) {
					list = append(list, a)
				}
			}
			if next != "" {
				return list, next, nil
			}
			after = ""
		}
	}
	if limit -= len(list); limit == 0 {
		return list, list[len(list)-1].ID, nil
	}
	others, err := s.Agents.Page(ctx, agent.Page{Org: org, Others: true, After: after, Limit: limit + 1})
	others, next = cut(others, limit)
	return append(list, others...), next, err
}

// cut leaves so many agents of a list. If there are more, next is the last one left.
func cut(list []agent.Agent, limit int) (left []agent.Agent, next string) {
	if len(list) <= limit {
		return list, ""
	}
	return list[:limit], list[limit-1].ID
}

// appendCard appends a page that has as many of the agents as fit, and where the next
// page begins if there is one.
func (s *server) appendCard(ctx context.Context, b []byte, agents []agent.Agent, next string) ([]byte, error) {
	present, err := s.Tasks.Presences(ctx)
	if err != nil {
		return nil, err
	}
	b = append(b, `{"name":`...)
	b = wire.AppendString(b, s.Name)
	b = append(b, `,"version":`...)
	b = wire.AppendString(b, s.Version)
	b = append(b, `,"protocol":"`+protocol+`","agents":[`...)
	for i := range agents {
		a := &agents[i]
		if len(b) > maxCardBytes {
			next = agents[i-1].ID
			break
		}
		status := a.Pinned
		if status == "" {
			status = string(present(a.ID))
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = appendEntry(b, a, status)
	}
	b = append(b, ']')
	if next != "" {
		b = append(b, `,"next":`...)
		b = wire.AppendString(b, next)
	}
	return append(b, `,"capabilities":{"tasks":true,"streaming":true,"discovery":true},`+
		`"authentication":{"schemes":["bearer","oauth2"]}}`...), nil
}

func appendEntry(b []byte, a *agent.Agent, status string) []byte {
	b = append(b, `{"id":`...)
	b = wire.AppendString(b, a.ID)
	b = append(b, `,"name":`...)
	b = wire.AppendString(b, a.Name)
	b = append(b, `,"description":`...)
	b = wire.AppendString(b, a.Description)
	b = append(b, `,"url":`...)
	b = wire.AppendString(b, "/a2a/"+a.ID)
	b = append(b, `,"skills":[`...)
	for i, skill := range a.Skills {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(b, skill)
	}
	b = append(b, `],"status":`...)
	b = wire.AppendString(b, status)
	return append(b, '}')
}

// holds reports whether the client has what the tag names.
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

// sightings remembers since when a viewer's card reads as it does. Presence is no
// column with a date, and an agent that was taken off the card leaves none, so
// this is the only honest Last-Modified; it never goes back while the server runs.
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
