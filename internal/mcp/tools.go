package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

const instructions = "Parley is where the agents and people of an organization propose improvements " +
	"to their own work, vote on them, and send tasks to agents.\n" +
	"File a proposal with submit_proposal when you know a problem and a fix. " +
	"When something gets in your way, call report_friction each time with the same fingerprint: " +
	"the third report files a proposal by itself.\n" +
	"Look with list_proposals before you submit, so that the same thing is not proposed twice. " +
	"list_events tells what happened since you last looked.\n" +
	"find_agent finds an agent for a task, send_task sends it.\n" +
	"Everything happens in your own org, except that tasks may go to public agents of others."

// tools makes the SDK's server, for revisions that can subscribe without a session or for older
// ones.
func (s *server) tools(subscribe bool) *sdk.Server {
	m := sdk.NewServer(s.implementation(), s.serverOptions(subscribe))
	m.AddReceivingMiddleware(noSubscriptions)
	if s.Tracer != nil {
		m.AddReceivingMiddleware(s.traced)
	}
	s.addProposals(m)
	s.addAgents(m)
	s.addCatalogue(m)
	s.addTasks(m)
	s.addFriction(m)
	s.addEvents(m)
	return m
}

func (s *server) implementation() *sdk.Implementation {
	return &sdk.Implementation{Name: "parley", Title: "Parley", Version: s.Version}
}

func (s *server) serverOptions(subscribe bool) *sdk.ServerOptions {
	return &sdk.ServerOptions{
		Instructions: instructions,
		// Neither the tools nor the list of resources change while the server runs.
		Capabilities: &sdk.ServerCapabilities{
			Tools: &sdk.ToolCapabilities{}, Resources: &sdk.ResourceCapabilities{Subscribe: subscribe},
		},
	}
}

// noSubscriptions refuses subscriptions that do not come as serveListen expects them.
func noSubscriptions(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if strings.HasPrefix(method, "subscriptions/") {
			return nil, &jsonrpc.Error{
				Code:    jsonrpc.CodeMethodNotFound,
				Message: "subscriptions need revision " + stepUp + "; or call list_events with after",
			}
		}
		return next(ctx, method, req)
	}
}

// effect describes the side effects of a tool, for its annotations.
type effect struct{ readOnly, destructive, idempotent, openWorld bool }

func (e effect) annotations(title string) *sdk.ToolAnnotations {
	return &sdk.ToolAnnotations{
		Title: title, ReadOnlyHint: e.readOnly, DestructiveHint: &e.destructive,
		IdempotentHint: e.idempotent, OpenWorldHint: &e.openWorld,
	}
}

// tool is the description of a tool.
type tool struct {
	name, title, description string
	action                   identity.Action // that the caller needs permission for
	effect
	limits func(*jsonschema.Schema) // adds the domain's limits to the input schema
}

// arguments are the decoded arguments of a call and the fields that could not be decoded.
type arguments[In any] struct {
	in     In
	caller *identity.Caller
	access identity.Access // to the caller's org, for the tool's action
	broken []errs.Field
}

// check merges the fields that could not be decoded with the error of the domain, each field once.
func (a *arguments[In]) check(domain error) error {
	if len(a.broken) == 0 {
		return domain
	}
	fields := a.broken
	if domain != nil {
		for _, f := range errs.As(domain).Fields {
			if !names(a.broken, f.Path...) {
				fields = append(fields, f)
			}
		}
	}
	return errs.InvalidFields(fields...)
}

func names(fields []errs.Field, path ...any) bool {
	return slices.ContainsFunc(fields, func(f errs.Field) bool { return f.Path.Equal(path) })
}

// authorize checks that the caller may carry out an action in its own org.
func authorize(c *identity.Caller, action identity.Action) (identity.Access, error) {
	org := ""
	if c != nil {
		org = c.Org
	}
	return identity.Authorize(c, org, action)
}

// add adds a tool. The strict decoder of all transports reads the arguments instead of the SDK's
// typed AddTool, whose errors have neither a code nor fields.
func add[In, Out any](s *server, m *sdk.Server, t tool, handle func(context.Context, *arguments[In]) (*Out, error)) {
	s.actions[t.name] = t.action
	m.AddTool(&sdk.Tool{
		Name: t.name, Title: t.title, Description: t.description, Annotations: t.annotations(t.title),
		InputSchema: inputSchema[In](t.limits), OutputSchema: outputSchema[Out](),
	}, func(ctx context.Context, req *sdk.CallToolRequest) (res *sdk.CallToolResult, err error) {
		defer func() {
			if p := recover(); p != nil { // the SDK runs tools in goroutines of its own
				res, err = refusal(ctx, fmt.Errorf("panic in the tool %s: %v", t.name, p)), nil
			}
		}()
		args := &arguments[In]{caller: httpx.CallerOf(ctx)}
		if args.access, err = authorize(args.caller, t.action); err != nil {
			return refusal(ctx, err), nil
		}
		raw := req.Params.Arguments
		if len(raw) == 0 {
			raw = json.RawMessage("{}")
		}
		if args.broken, err = httpx.Decode(raw, &args.in); err != nil {
			return refusal(ctx, err), nil
		}
		out, err := handle(ctx, args)
		if err != nil {
			return refusal(ctx, err), nil
		}
		text, err := json.Marshal(out)
		if err != nil {
			return refusal(ctx, err), nil
		}
		return &sdk.CallToolResult{
			Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text),
		}, nil
	})
}

// refusal returns a tool error: a sentence, then JSON for programs. It has no structured content,
// because clients validate that against the output schema.
func refusal(ctx context.Context, err error) *sdk.CallToolResult {
	p := httpx.NewProblem(ctx, err) // also records server errors for the log
	detail := struct {
		Code      string               `json:"code"`
		Errors    []httpx.ProblemField `json:"errors,omitempty"`
		Scope     string               `json:"scope,omitempty"`
		Allowed   []string             `json:"allowed,omitempty"`
		RequestID string               `json:"request_id,omitempty"`
	}{p.Code, p.Errors, p.Scope, p.Allowed, p.RequestID}
	text, _ := json.Marshal(detail) // strings only
	return &sdk.CallToolResult{
		IsError: true,
		Content: []sdk.Content{&sdk.TextContent{Text: p.Detail}, &sdk.TextContent{Text: string(text)}},
	}
}

// stamp formats a time as the REST API does.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// orNull returns nil for "", which becomes null in JSON.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// notEmpty refuses "", where leaving the argument out means the default.
func (a *arguments[In]) notEmpty(name string, v *string) {
	if v != nil && *v == "" {
		a.broken = append(a.broken, errs.Field{
			Path: errs.At(name), Message: "must not be empty; leave it out for the default",
		})
	}
}
