package a2a

import (
	"net/http"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
)

// agentCard serves the official card of one agent. The card of a public agent is public; other
// cards are for callers that may call the agent.
func (s *server) agentCard(w http.ResponseWriter, r *http.Request) {
	s.writeAgentCard(w, r, r.PathValue("agent"))
}

// onlyCard serves clients that cut the last segment off an agent's URL before they add the name of
// the card, as relative URLs do without a trailing slash. A caller that may call only one agent can
// mean no other.
func (s *server) onlyCard(w http.ResponseWriter, r *http.Request) {
	id, ok := "", false
	if caller := httpx.CallerOf(r.Context()); caller != nil {
		id, ok = caller.Scopes.OnlyAgent()
	}
	if !ok {
		httpx.WriteError(w, r, errs.New(errs.NotFound, "resource.not_found",
			"there is no card at this URL; end the agent's URL with a slash: /a2a/<agent_id>/"))
		return
	}
	s.writeAgentCard(w, r, id)
}

func (s *server) writeAgentCard(w http.ResponseWriter, r *http.Request, id string) {
	a, err := s.cardAgent(r, id)
	if err != nil {
		httpx.WriteError(w, r, err)
		return
	}
	version, err := cardVersion(r)
	if err != nil {
		httpx.WriteError(w, r, err)
		return
	}
	s.sendAgentCard(w, r, &a, formFor(r, version, false))
}

func (s *server) sendAgentCard(w http.ResponseWriter, r *http.Request, a *agent.Agent, f cardForm) {
	body, err := s.agentCardBody(r.Context(), a, f)
	if err != nil {
		httpx.WriteError(w, r, err)
		return
	}
	// The card of a public agent is the same for all callers, except for what Vary names, so shared
	// caches may keep it. Where the path has no id, the key selected the agent.
	cache := "public, max-age=60"
	if !a.Public || r.PathValue("agent") == "" {
		cache = "private, no-cache"
	}
	varyByCard(w.Header())
	// The time of the agent's last change is not that of the card, which also depends on the
	// settings and the signing key. So the ETag is the only validator.
	writeCard(w, r, body, tagOf(body), cache, time.Time{})
}

// varyByCard adds what the form of a card depends on to the Vary header, next to the credentials.
func varyByCard(h http.Header) {
	h["Vary"] = []string{h.Get("Vary") + ", " + versionHeader + ", User-Agent"}
}

// cardAgent finds the agent that the caller would call. A caller that may not call it sees the
// public agent of that id.
func (s *server) cardAgent(r *http.Request, id string) (agent.Agent, error) {
	ctx, org := r.Context(), ""
	var refused error
	if caller := httpx.CallerOf(ctx); caller != nil {
		_, refused = s.Tasks.Reach(ctx, caller, id)
		switch {
		case refused == nil:
			org = caller.Org
		case errs.KindOf(refused) != errs.Forbidden:
			return agent.Agent{}, refused
		}
	}
	a, _, err := s.Directory.Reach(ctx, org, id)
	if refused != nil && errs.KindOf(err) == errs.NotFound {
		err = refused
	}
	return a, err
}

// appendAgentCard appends the extended card of an agent that the caller may call.
func (s *server) appendAgentCard(c *call, b []byte, f cardForm) ([]byte, error) {
	a, _, err := s.Directory.Reach(c, httpx.CallerOf(c).Org, c.agent)
	if err != nil {
		return b, err
	}
	body, err := s.agentCardBody(c, &a, f)
	return append(b, body...), err
}

// writeCard responds with a card, or with 304 if the client has it. A zero modified means unknown.
func writeCard(w http.ResponseWriter, r *http.Request, body []byte, tag, cache string, modified time.Time) {
	h := w.Header()
	h["Cache-Control"] = []string{cache}
	h["Etag"] = []string{tag}
	if !modified.IsZero() {
		h["Last-Modified"] = []string{modified.UTC().Format(http.TimeFormat)}
	}
	if unchanged(r, tag, modified) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	writeJSON(w, http.StatusOK, body)
}

// unchanged reports whether the client's copy is still current (RFC 9110, section 13.2.2).
func unchanged(r *http.Request, tag string, modified time.Time) bool {
	if lines := r.Header["If-None-Match"]; len(lines) > 0 {
		return holds(lines, tag)
	}
	if modified.IsZero() {
		return false
	}
	since, err := http.ParseTime(r.Header.Get("If-Modified-Since"))
	return err == nil && !modified.Truncate(time.Second).After(since)
}
