package rest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

const intro = `Agents and people of an organization submit improvement proposals, vote on them, and an admin
resolves them; approval creates a follow-up. Agents are registered here, and their workers claim and report tasks; tasks are sent
to agents over JSON-RPC 2.0 at ` + "`POST /a2a/<agent_id>`" + `, and the agents are listed at ` + "`GET /.well-known/agent.json`" + `.

Send your API key as ` + "`Authorization: Bearer <API_KEY>`" + `. Every answer has an ` + "`X-Request-Id`" + `; quote it when
you report a problem. Refusals are ` + "`application/problem+json`" + ` (RFC 9457) with a stable ` + "`code`" + ` and, where
fields are at fault, one entry for each in ` + "`errors`" + `.`

const (
	tagProposals = "Proposals"
	tagVotes     = "Votes"
	tagFollowups = "Follow-ups"
	tagFriction  = "Friction"
	tagAgents    = "Agents"
	tagA2A       = "A2A"
	tagWorkers   = "Workers"
	tagA2ATasks  = "A2A tasks"
	tagKeys      = "Keys"
	tagOwnKeys   = "Own keys"
	tagMembers   = "Members"
	tagClients   = "Clients"
	tagAudit     = "Audit"
	tagSystem    = "System"
)

func newHuma(routes huma.Adapter, o Options) huma.API {
	version := o.Version
	if version == "" {
		version = "dev"
	}
	config := huma.DefaultConfig("Parley", version)
	config.CreateHooks = nil // they would add "$schema" to every body
	// The document is rendered once, at the start, by our own handlers.
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.Formats = map[string]huma.Format{"application/json": jsonFormat, "json": jsonFormat}
	config.Info.Description = intro
	config.Info.License = &huma.License{Name: "Apache 2.0", URL: "https://www.apache.org/licenses/LICENSE-2.0"}
	config.Info.Contact = &huma.Contact{Name: "The operators of this server"}
	config.Servers = []*huma.Server{{URL: cmp.Or(o.PublicURL, "/"), Description: "This server."}}
	config.Components.SecuritySchemes = securitySchemes(o.PublicURL)
	config.Security = []map[string][]string{{"bearer": {}}}
	config.Components.Responses = errorResponses()
	config.Tags = []*huma.Tag{
		{Name: tagProposals, Description: "Improvement proposals: a problem, a suggested fix, and what became of it."},
		{Name: tagVotes, Description: "One vote for each user or agent and proposal; voting again replaces it."},
		{Name: tagFollowups, Description: "Follow-ups: created by approval, or by hand."},
		{Name: tagFriction, Description: "What gets in the way again and again: reports are counted, and enough of them file a proposal."},
		{Name: tagAgents, Description: "The agents of the org. They are called through the A2A interface, `POST /a2a/<agent_id>`."},
		{Name: tagA2ATasks, Description: "What the org's agents were asked to do, by whomever, and what came of it; for admins."},
		{Name: tagA2A, Description: "Agents as others see and call them. The methods are those of A2A; see docs/a2a.md."},
		{Name: tagWorkers, Description: "How a process does an agent's work: claim a task, report on it, hand it back."},
		{Name: tagKeys, Description: "API keys of the org's principals, for admins. A secret matches `" + identity.SecretPattern + "`, which secret scanners can look for."},
		{Name: tagOwnKeys, Description: "The API keys of the caller itself, without any scope."},
		{Name: tagMembers, Description: "Who belongs to the org, and invitations to it; for admins."},
		{Name: tagClients, Description: "Programs that members of the org may allow to act for them, registered by its admins. How they ask is OAuth 2.1, at `/oauth/authorize`."},
		{Name: tagAudit, Description: "Who did what to keys, members and agents, and who was refused; for admins."},
		{Name: tagSystem, Description: "Health and documentation; no key needed."},
	}
	return huma.NewAPI(config, routes)
}

// operation is what a route is, beside its handler.
type operation struct {
	id, method, path, tag, summary, description string

	action  identity.Action
	validID func(string) bool // of the path's id; nil: the path has none
	status  int               // of success; 0: 200
	errors  []int             // beside those that any operation can have

	audit identity.AuditAction // what the audit log calls it; empty: it is not told

	cacheable bool  // answers If-None-Match
	worker    bool  // the caller works for the agent in the path; action is not looked at
	self      bool  // about the caller alone: any credential will do; action is not looked at
	maxBody   int64 // 0: httpx.MaxBody
}

// errorDocs says what each status means, once for all operations.
var errorDocs = map[int]string{
	http.StatusBadRequest:                  "The query string cannot be read, or the body is not JSON, has duplicate keys or is nested too deeply.",
	http.StatusUnauthorized:                "No credentials, or bad ones.",
	http.StatusForbidden:                   "The key lacks a scope, or the caller may not do this.",
	http.StatusNotFound:                    "No such resource, or none that these credentials may see: the answer is the same.",
	http.StatusMethodNotAllowed:            "The path has no such method; `Allow` lists those that it has.",
	http.StatusRequestTimeout:              "The body did not arrive in time.",
	http.StatusConflict:                    "The current state does not allow it; `allowed` lists what it does allow.",
	http.StatusPreconditionFailed:          "The record is another version than `If-Match` names.",
	http.StatusRequestEntityTooLarge:       "The body is larger than 256 KiB.",
	http.StatusUnsupportedMediaType:        "The body is not `application/json`, is a patch format, or is compressed.",
	http.StatusUnprocessableEntity:         "Fields or parameters break a rule; `errors` names every one.",
	http.StatusTooManyRequests:             "Too many requests; wait as long as `Retry-After` says.",
	http.StatusRequestHeaderFieldsTooLarge: "The headers are larger than 32 KiB. The body is plain text.",
	http.StatusInternalServerError:         "A failure on our side; quote the `request_id`.",
	http.StatusServiceUnavailable:          "Try again later.",
}

// anyOperation lists what every operation can answer.
var anyOperation = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
	http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusRequestHeaderFieldsTooLarge,
	http.StatusInternalServerError, http.StatusServiceUnavailable,
}

// withBody lists what an operation with a body can answer beside that.
var withBody = []int{
	http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
}

// bodyTimeout is how long a body may take to arrive, as docs/operations.md says; huma
// gives it five seconds.
const bodyTimeout = 30 * time.Second

func (op operation) document() huma.Operation {
	out := huma.Operation{
		OperationID: op.id, Method: op.method, Path: op.path, Tags: []string{op.tag}, Summary: op.summary,
		Description: op.description, DefaultStatus: op.status, Responses: map[string]*huma.Response{},
		// Parameters and bodies are checked by guard and by the domain, which report
		// everything at once and in one wording.
		SkipValidateParams: true, SkipValidateBody: true,
		MaxBodyBytes:    cmp.Or(op.maxBody, httpx.MaxBody) + 1, // huma refuses a body that reaches its limit
		BodyReadTimeout: bodyTimeout,
		Metadata:        map[string]any{routeOf: httpx.Route{Worker: op.worker, Sessions: !op.worker}},
	}
	codes := append([]int{}, anyOperation...)
	if op.method == http.MethodPost || op.method == http.MethodPatch || op.method == http.MethodPut {
		codes = append(codes, withBody...)
	}
	if op.cacheable {
		out.Responses["304"] = &huma.Response{Description: "What `If-None-Match` names is still right."}
	}
	for _, code := range append(codes, op.errors...) {
		out.Responses[strconv.Itoa(code)] = errorResponse(code)
	}
	if op.maxBody > 0 {
		out.Responses["413"] = problemResponse(http.StatusRequestEntityTooLarge)
		out.Responses["413"].Description = fmt.Sprintf("The body is larger than %d MiB.", op.maxBody>>20)
	}
	return out
}

// openAnswers lets the objects of answers grow: a client must not break when a
// later version adds a field. Request bodies stay closed, as they are enforced.
func openAnswers(doc *huma.OpenAPI) {
	schemas := doc.Components.Schemas.Map()
	closed := map[string]bool{}
	for _, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Post, item.Patch, item.Put} {
			if op != nil && op.RequestBody != nil {
				reach(schemas, op.RequestBody.Content["application/json"].Schema, closed)
			}
		}
	}
	for name, s := range schemas {
		if !closed[name] {
			s.AdditionalProperties = nil
		}
	}
}

// reach notes the names of all components that a schema leads to.
func reach(schemas map[string]*huma.Schema, s *huma.Schema, seen map[string]bool) {
	if s == nil {
		return
	}
	if name := refName(s); name != "" && !seen[name] {
		seen[name] = true
		reach(schemas, schemas[name], seen)
	}
	reach(schemas, s.Items, seen)
	for _, p := range s.Properties {
		reach(schemas, p, seen)
	}
	for _, p := range slices.Concat(s.OneOf, s.AnyOf, s.AllOf) {
		reach(schemas, p, seen)
	}
}
