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

const intro = `Agents and people of an organization submit improvement proposals and vote on them. An admin
resolves them; approval creates a follow-up. The API also registers agents, and lets their workers claim tasks and
report on them. Send tasks to agents over JSON-RPC 2.0 at ` + "`POST /a2a/<agent_id>`" + `; list the agents at
` + "`GET /.well-known/agent.json`" + `.

Authenticate with an API key: ` + "`Authorization: Bearer <API_KEY>`" + `. Every response has an ` + "`X-Request-Id`" + `
header; quote it when you report a problem. Errors are ` + "`application/problem+json`" + ` (RFC 9457) with a stable
` + "`code`" + ` and, if fields are invalid, one entry per field in ` + "`errors`" + `.`

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
	tagWebhooks  = "Webhooks"
	tagAudit     = "Audit"
	tagEvents    = "Events"
	tagSystem    = "System"
)

func newHuma(routes huma.Adapter, o Options) huma.API {
	version := o.Version
	if version == "" {
		version = "dev"
	}
	config := huma.DefaultConfig("Parley", version)
	config.CreateHooks = nil // they would add "$schema" to every body
	// Our own handlers serve the document, rendered once.
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
		{Name: tagProposals, Description: "Improvement proposals: a problem, a suggested fix, and the decision."},
		{Name: tagVotes, Description: "One vote per user or agent and proposal. Voting again replaces it."},
		{Name: tagFollowups, Description: "Follow-ups: created by approving a proposal, or manually."},
		{
			Name:        tagFriction,
			Description: "Recurring problems. Reports are counted, and enough of them file a proposal.",
		},
		{
			Name:        tagAgents,
			Description: "The agents of the org. Call them through the A2A interface, `POST /a2a/<agent_id>`.",
		},
		{Name: tagA2ATasks, Description: "Tasks sent to the org's agents by any caller, with their results. For admins."},
		{Name: tagA2A, Description: "Discover and call agents. The methods are those of A2A; see docs/a2a.md."},
		{Name: tagWorkers, Description: "How a process does the work of an agent: claim a task, report on it, return it."},
		{
			Name: tagKeys,
			Description: "API keys of the org's principals. For admins. Secrets match `" + identity.SecretPattern +
				"`, so that secret scanners can find them.",
		},
		{Name: tagOwnKeys, Description: "API keys of the caller. No scope required."},
		{Name: tagMembers, Description: "Members of the org, and invitations to it. For admins."},
		{
			Name: tagClients,
			Description: "OAuth clients that admins of the org registered. Members can allow them to act on their behalf. " +
				"Clients use OAuth 2.1, starting at `/oauth/authorize`.",
		},
		{
			Name: tagWebhooks,
			Description: "URLs of the org to which events are sent, signed as Standard Webhooks. For admins. See " +
				"docs/events.md.",
		},
		{Name: tagAudit, Description: "Administrative actions on keys, members and agents, refused ones included. For admins."},
		{Name: tagEvents, Description: "Everything that happens in the org, as a numbered log: in pages, or as a stream."},
		{Name: tagSystem, Description: "Health and documentation. No key required."},
	}
	return huma.NewAPI(config, routes)
}

// operation describes a route, beside its handler.
type operation struct {
	id, method, path, tag, summary, description string

	action  identity.Action
	validID func(string) bool // checks the id in the path; nil if the path has none
	status  int               // of success; 0 means 200
	errors  []int             // beside the ones that every operation can return

	audit identity.AuditAction // name in the audit log; empty if it is not audited

	cacheable bool  // supports If-None-Match
	worker    bool  // the caller works for the agent in the path; action is ignored
	sender    bool  // the caller sends tasks to the agent in the path; action is ignored
	self      bool  // concerns the caller only, any credential passes; action is ignored
	maxBody   int64 // 0 means httpx.MaxBody
}

// errorDocs describes each error status, once for all operations.
var errorDocs = map[int]string{
	http.StatusBadRequest: "The query string is malformed, or the body is not JSON, has duplicate keys or is nested " +
		"too deeply.",
	http.StatusUnauthorized:                "Credentials are missing or invalid.",
	http.StatusForbidden:                   "The credentials lack a scope, or the caller may not do this.",
	http.StatusNotFound:                    "The resource does not exist, or these credentials may not see it.",
	http.StatusMethodNotAllowed:            "The path does not support the method; `Allow` lists the methods it supports.",
	http.StatusRequestTimeout:              "The body did not arrive in time.",
	http.StatusConflict:                    "The current state does not allow the request; `allowed` lists what it does allow.",
	http.StatusPreconditionFailed:          "The record has another version than the one in `If-Match`.",
	http.StatusRequestEntityTooLarge:       "The body is larger than 256 KiB.",
	http.StatusUnsupportedMediaType:        "The body is not `application/json`, is a patch format, or is compressed.",
	http.StatusUnprocessableEntity:         "Fields or parameters are invalid; `errors` lists all of them.",
	http.StatusTooManyRequests:             "Too many requests; wait for `Retry-After` seconds.",
	http.StatusRequestHeaderFieldsTooLarge: "The headers are larger than 32 KiB. The response is plain text.",
	http.StatusInternalServerError:         "The server failed; report the `request_id`.",
	http.StatusServiceUnavailable:          "The server cannot handle the request now; try again after `Retry-After` seconds.",
}

// anyOperation lists the error statuses of every operation.
var anyOperation = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
	http.StatusMethodNotAllowed, http.StatusUnprocessableEntity, http.StatusTooManyRequests,
	http.StatusRequestHeaderFieldsTooLarge, http.StatusInternalServerError, http.StatusServiceUnavailable,
}

// withBody lists the additional error statuses of operations with a body.
var withBody = []int{
	http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
}

// bodyTimeout limits how long a body may take to arrive; see docs/operations.md. The default of
// huma is five seconds.
const bodyTimeout = 30 * time.Second

func (op operation) document() huma.Operation {
	out := huma.Operation{
		OperationID: op.id, Method: op.method, Path: op.path, Tags: []string{op.tag}, Summary: op.summary,
		Description: op.description, DefaultStatus: op.status, Responses: map[string]*huma.Response{},
		// guard and the domain check parameters and bodies. They report all errors at once, in
		// the same wording.
		SkipValidateParams: true, SkipValidateBody: true,
		MaxBodyBytes:    cmp.Or(op.maxBody, httpx.MaxBody) + 1, // huma rejects a body that reaches its limit
		BodyReadTimeout: bodyTimeout,
		Metadata:        map[string]any{routeOf: httpx.Route{Worker: op.worker, Sessions: !op.worker}},
	}
	codes := append([]int{}, anyOperation...)
	if op.method == http.MethodPost || op.method == http.MethodPatch || op.method == http.MethodPut {
		codes = append(codes, withBody...)
	}
	if op.cacheable {
		out.Responses["304"] = &huma.Response{Description: "The version in `If-None-Match` is current."}
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

// openAnswers allows additional properties in response objects, so that clients do not break when
// a later version adds a field. Request bodies stay closed, because unknown fields are rejected.
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

// reach collects the names of all components that a schema refers to.
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
