package a2a

import (
	"net/http"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
)

// agentCard answers with the official card of one agent: everybody sees that of a
// public agent, others only who may call the agent.
func (s *server) agentCard(w http.ResponseWriter, r *http.Request) {
	s.writeAgentCard(w, r, r.PathValue("agent"))
}

// onlyCard answers clients that cut the last segment off an agent's address
// before they add the card's name, as relative URLs do without a trailing slash:
// who may call one agent only can mean no other.
func (s *server) onlyCard(w http.ResponseWriter, r *http.Request) {
	id, ok := "", false
	if caller := httpx.CallerOf(r.Context()); caller != nil {
		id, ok = caller.Scopes.OnlyAgent()
	}
	if !ok {
		httpx.WriteError(w, r, errs.New(errs.NotFound, "resource.not_found",
			"there is no card here; end the agent's address with a slash, as in /a2a/<agent_id>/"))
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
	cache := "public, max-age=60"
	if !a.Public {
		cache = "private, no-cache"
	}
	varyByCard(w.Header())
	writeCard(w, r, body, tagOf(body), cache, a.UpdatedAt)
}

// varyByCard adds to what the response depends on, beside the credentials, what the form
// of a card depends on.
func varyByCard(h http.Header) {
	h["Vary"] = []string{h.Get("Vary") + ", " + versionHeader + ", User-Agent"}
}

// cardAgent finds the agent that the caller would call. Who may not call it sees the
// public agent of that id, as everybody does.
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
	a, _, err := s.Agents.Reach(ctx, org, id)
	if refused != nil && errs.KindOf(err) == errs.NotFound {
		err = refused
	}
	return a, err
}

// appendAgentCard appends the extended card of an agent that the caller may call.
func (s *server) appendAgentCard(c *call, b []byte, version string) ([]byte, error) {
	a, _, err := s.Agents.Reach(c, httpx.CallerOf(c).Org, c.agent)
	if err != nil {
		return b, err
	}
	body, err := s.agentCardBody(c, &a, formFor(c.r, version, true))
	return append(b, body...), err
}

// writeCard answers with a card, or with 304 if the client has it.
func writeCard(w http.ResponseWriter, r *http.Request, body []byte, tag, cache string, modified time.Time) {
	h := w.Header()
	h["Cache-Control"] = []string{cache}
	h["Etag"] = []string{tag}
	h["Last-Modified"] = []string{modified.UTC().Format(http.TimeFormat)}
	if unchanged(r, tag, modified) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	writeJSON(w, http.StatusOK, body)
}

// unchanged reports whether the client's copy is still right (RFC 9110, 13.2.2).
func unchanged(r *http.Request, tag string, modified time.Time) bool {
	if lines := r.Header["If-None-Match"]; len(lines) > 0 {
		return holds(lines, tag)
	}
	since, err := http.ParseTime(r.Header.Get("If-Modified-Since"))
	return err == nil && !modified.Truncate(time.Second).After(since)
}
