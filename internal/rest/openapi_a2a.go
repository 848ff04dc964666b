package rest

import (
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/agent"
)

// documentA2A describes the platform's card and the endpoint of an agent, which package
// a2a serves. What the methods take and answer is said by the A2A specification and by
// docs/a2a.md; here are the envelopes.
func documentA2A(doc *huma.OpenAPI) {
	schemas := doc.Components.Schemas
	card := operationOf("get-platform-card", http.MethodGet, "/.well-known/agent.json", "Get the platform's card",
		"The agents that anybody may call; with credentials those of the own org come first. Needs no credentials.")
	card.Security = []map[string][]string{{}, {"bearer": {}}}
	card.Parameters = []*huma.Param{
		{Name: "after", In: "query", Description: "Continues the list: `next` of the page before.", Schema: stringSchema(length(0, 200))},
	}
	card.Responses["200"] = documented("The card.", "application/json", component(schemas, "PlatformCard", platformCardSchema))
	card.Responses["304"] = &huma.Response{Description: "What `If-None-Match` names is still right."}
	refusals(card, http.StatusBadRequest, http.StatusUnauthorized, http.StatusUnprocessableEntity)
	doc.AddOperation(card)

	one := operationOf("get-agent-card", http.MethodGet, "/a2a/{agent}", "Get the card of an agent",
		"In the form of A2A, also at `/a2a/<agent_id>/.well-known/agent-card.json`. That of a public agent needs no credentials.")
	one.Security = card.Security
	one.Parameters = []*huma.Param{agentParam()}
	one.Responses["200"] = documented("The card, as A2A defines it.", "application/json", component(schemas, "AgentCard", agentCardSchema))
	one.Responses["304"] = card.Responses["304"]
	refusals(one, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound)
	doc.AddOperation(one)

	rpc := operationOf("call-agent", http.MethodPost, "/a2a/{agent}", "Call an agent",
		"One JSON-RPC 2.0 request, or a batch of them. Methods: `tasks/send`, `tasks/get`, `tasks/cancel`, `tasks/sendSubscribe`, `message/send` and those of "+
			"A2A 1.0 and 0.3. What is wrong with a request is told in its `error`, with status 200. Needs svc:a2a:write that reaches the agent.")
	rpc.Parameters = []*huma.Param{agentParam()}
	request := component(schemas, "JSONRPCRequest", rpcRequestSchema)
	rpc.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: request}}}
	reply := component(schemas, "JSONRPCResponse", rpcResponseSchema)
	rpc.Responses["200"] = documented("The answer, or a stream of answers; to a batch, an array of answers.", "application/json", reply)
	rpc.Responses["200"].Content["text/event-stream"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	rpc.Responses["204"] = &huma.Response{Description: "The request has no id, so nobody waits for an answer."}
	for _, code := range []int{
		http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusServiceUnavailable,
	} {
		res := documented(errorDocs[code], "application/json", reply)
		res.Headers = problemResponse(code).Headers
		rpc.Responses[strconv.Itoa(code)] = res
	}
	refusals(rpc, http.StatusBadRequest, http.StatusRequestTimeout)
	doc.AddOperation(rpc)
}

func operationOf(id, method, path, summary, description string) *huma.Operation {
	return &huma.Operation{
		OperationID: id, Method: method, Path: path, Tags: []string{tagA2A}, Summary: summary, Description: description,
		Responses: map[string]*huma.Response{},
	}
}

// refusals adds the given problems, and those that every route can answer with.
func refusals(op *huma.Operation, codes ...int) {
	codes = append(codes, http.StatusMethodNotAllowed, http.StatusTooManyRequests, http.StatusRequestHeaderFieldsTooLarge,
		http.StatusInternalServerError, http.StatusServiceUnavailable)
	for _, code := range codes {
		if name := strconv.Itoa(code); op.Responses[name] == nil {
			op.Responses[name] = errorResponse(code)
		}
	}
}

func documented(description, media string, schema *huma.Schema) *huma.Response {
	return &huma.Response{Description: description, Content: map[string]*huma.MediaType{media: {Schema: schema}}}
}

func agentParam() *huma.Param {
	s := stringSchema(matching(agentIDPattern))
	s.Examples = []any{"scout"}
	return &huma.Param{Name: "agent", In: "path", Required: true, Description: "The agent's id.", Schema: s}
}

func platformCardSchema(r huma.Registry) *huma.Schema {
	entry := component(r, "PlatformCardAgent", func(huma.Registry) *huma.Schema {
		status := stringSchema(oneOf(agent.Presences))
		return object([]string{"id", "name", "description", "url", "skills", "status"}, map[string]*huma.Schema{
			"id": described("Its id."), "name": described("What people call it."), "description": described("What it does, in a sentence."),
			"url":    described("Where to call it, relative to the server."),
			"skills": {Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}, Description: "What it can do, as tags to choose by."},
			"status": explained(status, "Whether it can be expected to answer."),
		})
	})
	flag := func(doc string) *huma.Schema { return &huma.Schema{Type: huma.TypeBoolean, Description: doc} }
	return object([]string{"name", "version", "protocol", "agents", "capabilities"}, map[string]*huma.Schema{
		"name": described("The platform's name."), "version": described("The platform's version."), "protocol": described("Always a2a/1.0."),
		"agents": {Type: huma.TypeArray, Items: entry, Description: "The page of agents."},
		"capabilities": explained(object([]string{"tasks", "streaming", "discovery"}, map[string]*huma.Schema{
			"tasks": flag("Tasks are tracked."), "streaming": flag("Their events can be followed."), "discovery": flag("Agents are listed here."),
		}), "What the platform can do."),
		"authentication": anyObject("How to authenticate: the names of schemes."),
		"next":           described("Continues the list as the parameter after; left out on the last page."),
	})
}

func agentCardSchema(huma.Registry) *huma.Schema {
	return object([]string{"name", "description", "version", "capabilities", "skills"}, map[string]*huma.Schema{
		"name": described("What people call it."), "description": described("What it does."), "version": described("Its version."),
		"capabilities": anyObject("What it can do, as A2A defines it."),
		"skills":       {Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}, Description: "Its skills, as A2A defines them."},
	})
}

func rpcRequestSchema(huma.Registry) *huma.Schema {
	return object([]string{"jsonrpc", "method"}, map[string]*huma.Schema{
		"jsonrpc": {Type: huma.TypeString, Enum: []any{"2.0"}, Description: "The version of JSON-RPC."},
		"method":  {Type: huma.TypeString, Description: "What to do.", Examples: []any{"tasks/send"}},
		"params":  anyObject("What the method needs."),
		"id":      {Description: "A string, a number or null, which the answer has, too; without it there is no answer."},
	})
}

func rpcResponseSchema(huma.Registry) *huma.Schema {
	failure := object([]string{"code", "message"}, map[string]*huma.Schema{
		"code":    {Type: huma.TypeInteger, Format: "int32", Description: "What went wrong, as JSON-RPC and A2A number it."},
		"message": described("A sentence that says what went wrong."),
		"data":    {Description: "More about it; an object, or a list of them for clients of A2A 1.0."},
	})
	return object([]string{"jsonrpc", "id"}, map[string]*huma.Schema{
		"jsonrpc": {Type: huma.TypeString, Enum: []any{"2.0"}, Description: "The version of JSON-RPC."},
		"id":      {Description: "The id of the request; null if it could not be read."},
		"result":  {Description: "What the method answers with."},
		"error":   explained(failure, "Why there is no result."),
	})
}
