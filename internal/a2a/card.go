package a2a

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/wire"
)

// protocol is the version of A2A that the card names (section 9 of the specification).
const protocol = "a2a/1.0"

// card answers with the platform's card. Everybody sees the public agents; who
// comes with a key also sees those of the own org that the key reaches.
func (s *server) card(w http.ResponseWriter, r *http.Request) {
	caller := httpx.CallerOf(r.Context())
	agents, err := s.visible(r.Context(), caller)
	if err != nil {
		httpx.WriteError(w, r, err)
		return
	}
	body, err := s.appendCard(r.Context(), nil, agents)
	if err != nil {
		httpx.WriteError(w, r, err)
		return
	}
	viewer, cache := "", "public, max-age=5"
	if caller != nil {
		viewer, cache = caller.KeyID, "private, no-cache"
	}
	writeCard(w, r, body, cache, s.seen.since(viewer, tagOf(body), time.Now()))
}

func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// visible lists the agents by id.
func (s *server) visible(ctx context.Context, caller *identity.Caller) ([]agent.Agent, error) {
	list, err := s.Agents.Public(ctx)
	if err != nil || caller == nil {
		return list, err
	}
	access, err := identity.Authorize(caller, caller.Org, identity.CallAgent)
	if err != nil {
		return list, nil // a key that may call nobody sees what everybody sees
	}
	own, err := s.Agents.List(ctx, access.Org())
	if err != nil {
		return nil, err
	}
	for _, a := range own {
		if !a.Disabled && !a.Public && access.ReachesAgent(a.ID) {
			list = append(list, a)
		}
	}
	slices.SortFunc(list, func(a, b agent.Agent) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

func (s *server) appendCard(ctx context.Context, b []byte, agents []agent.Agent) ([]byte, error) {
	b = append(b, `{"name":`...)
	b = wire.AppendString(b, s.Name)
	b = append(b, `,"version":`...)
	b = wire.AppendString(b, s.Version)
	b = append(b, `,"protocol":"`+protocol+`","agents":[`...)
	for i := range agents {
		a := &agents[i]
		status := a.Pinned
		if status == "" {
			p, err := s.Tasks.Presence(ctx, a.ID)
			if err != nil {
				return nil, err
			}
			status = string(p)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = appendEntry(b, a, status)
	}
	return append(b, `],"capabilities":{"tasks":true,"streaming":true,"discovery":true},`+
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
