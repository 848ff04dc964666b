package rest

import (
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/agent"
)

// documentA2A describes the platform card and the endpoint of an agent, which package a2a serves.
// It documents the envelopes only; the A2A specification and docs/a2a.md describe the methods.
func documentA2A(doc *huma.OpenAPI) {
	schemas := doc.Components.Schemas
	card := operationOf("get-platform-card", http.MethodGet, "/.well-known/agent.json", "Get the platform card",
		"Lists the public agents. With credentials, the agents of the caller's org come first. No credentials required.")
	card.Security = []map[string][]string{{}, {"bearer": {}}}
	card.Parameters = []*huma.Param{
		{
			Name: "after", In: "query", Description: "Cursor: `next` of the previous page.",
			Schema: stringSchema(length(0, 200)),
		},
	}
	card.Responses["200"] = documented("The card.", "application/json", component(schemas, "PlatformCard", platformCardSchema))
	card.Responses["304"] = &huma.Response{Description: "The version in `If-None-Match` is current."}
	refusals(card, http.StatusBadRequest, http.StatusUnauthorized, http.StatusUnprocessableEntity)
	doc.AddOperation(card)

	one := operationOf("get-agent-card", http.MethodGet, "/a2a/{agent}", "Get an agent card",
		"The card as A2A defines it, also at `/a2a/<agent_id>/.well-known/agent-card.json`. "+
			"No credentials required for a public agent.")
	one.Security = card.Security
	one.Parameters = []*huma.Param{agentParam()}
	one.Responses["200"] = documented("The card, as A2A defines it.", "application/json",
		component(schemas, "AgentCard", agentCardSchema))
	one.Responses["304"] = card.Responses["304"]
	refusals(one, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound)
	doc.AddOperation(one)

	rpc := operationOf("call-agent", http.MethodPost, "/a2a/{agent}", "Call an agent",
		"Takes a JSON-RPC 2.0 request or a batch. Methods: `tasks/send`, `tasks/get`, `tasks/cancel`, "+
			"`tasks/sendSubscribe`, `message/send`, and the methods of A2A 1.0 and 0.3. JSON-RPC errors are returned in "+
			"`error` with status 200. Requires svc:a2a:write that includes the agent.")
	rpc.Parameters = []*huma.Param{agentParam()}
	request := component(schemas, "JSONRPCRequest", rpcRequestSchema)
	rpc.RequestBody = &huma.RequestBody{
		Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: request}},
	}
	reply := component(schemas, "JSONRPCResponse", rpcResponseSchema)
	rpc.Responses["200"] = documented("The response, or a stream of responses. For a batch, an array of responses.",
		"application/json", reply)
	rpc.Responses["200"].Content["text/event-stream"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	rpc.Responses["204"] = &huma.Response{Description: "The request is a notification: it has no id, so there is no response."}
	for _, code := range []int{
		http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestEntityTooLarge,
		http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable,
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
		OperationID: id, Method: method, Path: path, Tags: []string{tagA2A}, Summary: summary,
		Description: description, Responses: map[string]*huma.Response{},
	}
}

// refusals adds the given errors, and the ones that every route can return.
func refusals(op *huma.Operation, codes ...int) {
	codes = append(codes, http.StatusMethodNotAllowed, http.StatusTooManyRequests,
		http.StatusRequestHeaderFieldsTooLarge, http.StatusInternalServerError, http.StatusServiceUnavailable)
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
			"id": described("Agent id."), "name": described("Display name."),
			"description": described("What the agent does, in a sentence."),
			"url":         described("URL to call the agent, relative to the server."),
			"skills": {
				Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}, Description: "Skills of the agent, as tags.",
			},
			"status": explained(status, "Whether the agent has workers with free capacity."),
		})
	})
	flag := func(doc string) *huma.Schema { return &huma.Schema{Type: huma.TypeBoolean, Description: doc} }
	return object([]string{"name", "version", "protocol", "agents", "capabilities"}, map[string]*huma.Schema{
		"name": described("Name of the platform."), "version": described("Version of the platform."),
		"protocol": described("Always a2a/1.0."),
		"agents":   {Type: huma.TypeArray, Items: entry, Description: "The page of agents."},
		"capabilities": explained(object([]string{"tasks", "streaming", "discovery"}, map[string]*huma.Schema{
			"tasks": flag("Tasks are tracked."), "streaming": flag("Task events can be streamed."),
			"discovery": flag("Agents are listed here."),
		}), "What the platform can do."),
		"authentication": anyObject("Names of the supported authentication schemes."),
		"next":           described("Cursor of the next page, for the parameter after; omitted on the last page."),
	})
}

func agentCardSchema(huma.Registry) *huma.Schema {
	return object([]string{"name", "description", "version", "capabilities", "skills"}, map[string]*huma.Schema{
		"name": described("Display name."), "description": described("What the agent does."),
		"version":      described("Version of the agent."),
		"capabilities": anyObject("Capabilities, as A2A defines them."),
		"skills": {
			Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true},
			Description: "Skills, as A2A defines them.",
		},
	})
}

func rpcRequestSchema(huma.Registry) *huma.Schema {
	return object([]string{"jsonrpc", "method"}, map[string]*huma.Schema{
		"jsonrpc": {Type: huma.TypeString, Enum: []any{"2.0"}, Description: "Version of JSON-RPC."},
		"method":  {Type: huma.TypeString, Description: "Method name.", Examples: []any{"tasks/send"}},
		"params":  anyObject("Parameters of the method."),
		"id":      {Description: "A string, a number or null, repeated in the response. Without an id there is no response."},
	})
}

func rpcResponseSchema(huma.Registry) *huma.Schema {
	failure := object([]string{"code", "message"}, map[string]*huma.Schema{
		"code":    {Type: huma.TypeInteger, Format: "int32", Description: "Error code of JSON-RPC or A2A."},
		"message": described("What went wrong."),
		"data":    {Description: "Details: an object, or a list of objects for A2A 1.0 clients."},
	})
	return object([]string{"jsonrpc", "id"}, map[string]*huma.Schema{
		"jsonrpc": {Type: huma.TypeString, Enum: []any{"2.0"}, Description: "Version of JSON-RPC."},
		"id":      {Description: "Id of the request; null if it could not be read."},
		"result":  {Description: "Result of the method."},
		"error":   explained(failure, "The error, if there is no result."),
	})
}
