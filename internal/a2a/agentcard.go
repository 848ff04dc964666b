package a2a

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/wire"
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
	version := askedVersion(r)
	if e := checkVersion(version); e != nil {
		httpx.WriteError(w, r, errs.New(errs.Malformed, "request.version", "%s", e.message))
		return
	}
	cache := "public, max-age=60"
	if !a.Public {
		cache = "private, no-cache"
	}
	h := w.Header()
	h["Vary"] = []string{h.Get("Vary") + ", " + versionHeader}
	body := s.appendCardOf(nil, &a, version, false)
	writeCard(w, r, body, tagOf(body), cache, a.UpdatedAt)
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
func (s *server) appendAgentCard(c *call, b []byte, id, version string, extended bool) ([]byte, error) {
	a, _, err := s.Agents.Reach(c, httpx.CallerOf(c).Org, id)
	if err != nil {
		return b, err
	}
	return s.appendCardOf(b, &a, version, extended), nil
}

// appendCardOf appends the card as one version wants it, or, if none is named, one
// that serves both: what they name alike they mean alike, but for the security
// schemes, which have the members of both.
func (s *server) appendCardOf(b []byte, a *agent.Agent, version string, extended bool) []byte {
	base := s.PublicURL
	address := base.String() + "/a2a/" + a.ID
	v1, v03 := version != version03, version != version1
	member := func(name, value string) {
		b = append(b, `,"`+name+`":`...)
		b = wire.AppendString(b, value)
	}
	b = append(b, `{"name":`...)
	b = wire.AppendString(b, a.Name)
	description := a.Description
	if description == "" {
		description = a.Name // it must not be empty
	}
	member("description", description)
	member("version", s.Version)
	if v03 {
		member("protocolVersion", "0.3.0")
		member("url", address)
		b = append(b, `,"preferredTransport":"JSONRPC","additionalInterfaces":[`...)
		b = appendInterface(b, address, "transport", "JSONRPC", "", "")
		b = append(b, ',')
		b = appendInterface(b, address, "transport", "HTTP+JSON", "", "")
		b = append(b, `],"supportsAuthenticatedExtendedCard":true,"security":[{"bearer":[]}]`...)
	}
	if v1 {
		b = append(b, `,"supportedInterfaces":[`...)
		b = appendInterface(b, address, "protocolBinding", "JSONRPC", version1, "")
		b = append(b, ',')
		b = appendInterface(b, address, "protocolBinding", "HTTP+JSON", version1, "")
		b = append(b, ',')
		b = appendInterface(b, hostPort(base), "protocolBinding", "GRPC", version1, a.ID)
		b = append(b, ',')
		b = appendInterface(b, address, "protocolBinding", "JSONRPC", version03, "")
		b = append(b, ',')
		b = appendInterface(b, address, "protocolBinding", "HTTP+JSON", version03, "")
		// Clients disagree on the form of securityRequirements, and some fail on the
		// other's; the schemes say what is needed.
		b = append(b, ']')
	}
	b = append(b, `,"securitySchemes":{"bearer":{`...)
	if v03 {
		b = append(b, `"type":"http","scheme":"bearer","description":"`+keyHint+`"`...)
	}
	if v1 && v03 {
		b = append(b, ',')
	}
	if v1 {
		b = append(b, `"httpAuthSecurityScheme":{"scheme":"Bearer","description":"`+keyHint+`"}`...)
	}
	b = append(b, `}},"capabilities":{"streaming":true,"pushNotifications":`...)
	b = appendBool(b, s.Tasks.PushURL != nil)
	if v03 {
		b = append(b, `,"stateTransitionHistory":false`...)
	}
	if v1 {
		b = append(b, `,"extendedAgentCard":true`...)
	}
	b = append(b, `},"defaultInputModes":`...)
	b = appendStrings(b, inputModes)
	b = append(b, `,"defaultOutputModes":`...)
	b = appendStrings(b, inputModes)
	b = appendSkills(b, a)
	member("documentationUrl", base.String()+"/docs")
	if extended {
		b = append(b, `,"provider":{"organization":`...)
		b = wire.AppendString(b, a.Org)
		member("url", base.String())
		b = append(b, '}')
	}
	return append(b, '}')
}

const keyHint = "What an admin of the calling org hands out."

// inputModes are what agents take and give, unless they say otherwise: any.
var inputModes = []string{"text/plain", "application/json", "*/*"}

func appendInterface(b []byte, address, name, binding, version, tenant string) []byte {
	b = append(b, `{"url":`...)
	b = wire.AppendString(b, address)
	b = append(b, `,"`+name+`":"`+binding+`"`...)
	if version != "" {
		b = append(b, `,"protocolVersion":"`+version+`"`...)
	}
	if tenant != "" {
		b = append(b, `,"tenant":`...)
		b = wire.AppendString(b, tenant)
	}
	return append(b, '}')
}

// appendSkills appends what the agent can do. A card must name something.
func appendSkills(b []byte, a *agent.Agent) []byte {
	b = append(b, `,"skills":[`...)
	skills := a.Skills
	if len(skills) == 0 {
		skills = []string{"general"}
	}
	for i, skill := range skills {
		if i > 0 {
			b = append(b, ',')
		}
		id := strings.ReplaceAll(strings.ToLower(skill), " ", "-")
		b = append(b, `{"id":`...)
		b = wire.AppendString(b, id)
		b = append(b, `,"name":`...)
		b = wire.AppendString(b, skill)
		b = append(b, `,"description":`...)
		b = wire.AppendString(b, a.Name+": "+skill)
		b = append(b, `,"tags":`...)
		b = appendStrings(b, []string{id})
		b = append(b, '}')
	}
	return append(b, ']')
}

func appendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(b, s)
	}
	return append(b, ']')
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, "true"...)
	}
	return append(b, "false"...)
}

// hostPort is an address as gRPC wants it: without a scheme, with a port.
func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	if u.Scheme == "https" {
		return u.Host + ":443"
	}
	return u.Host + ":80"
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
