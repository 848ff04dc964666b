package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// rpcAnswer is a JSON-RPC 2.0 response.
type rpcAnswer struct {
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

// rpcError is a refusal by an agent's endpoint.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`

	requestID string
}

func (r *rpcError) Error() string {
	var b strings.Builder
	b.WriteString(r.Message)
	var fields []struct {
		Pointer string `json:"pointer"`
		Detail  string `json:"detail"`
	}
	if json.Unmarshal(r.Data, &fields) == nil {
		for _, f := range fields {
			fmt.Fprintf(&b, "\n  %s: %s", strings.TrimPrefix(f.Pointer, "/"), f.Detail)
		}
	}
	fmt.Fprintf(&b, "\n  code: %d", r.Code)
	if r.requestID != "" {
		fmt.Fprintf(&b, "\n  request id: %s", r.requestID)
	}
	return b.String()
}

// rpcProblem reads a refusal that came with an HTTP status and a JSON-RPC body.
func rpcProblem(body []byte) (problem, bool) {
	var a rpcAnswer
	if json.Unmarshal(body, &a) != nil || a.Error == nil || a.Error.Message == "" {
		return problem{}, false
	}
	var data struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(a.Error.Data, &data) // it stays empty if there is none
	return problem{Detail: a.Error.Message, Code: data.Code}, true
}

// rpcCall is a call of an agent's method. Sending a task again under its id, and
// reading it, do no harm.
func rpcCall(agent, method string, params any, safe bool) (call, error) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	return call{method: http.MethodPost, path: "/a2a/" + url.PathEscape(agent), global: true, body: body, safe: safe}, err
}

// rpc calls an agent's method and returns the result.
func (c *client) rpc(ctx context.Context, r call) (json.RawMessage, error) {
	var a rpcAnswer
	if _, err := c.into(ctx, r, &a); err != nil {
		return nil, err
	}
	if a.Error != nil {
		return nil, a.Error
	}
	return a.Result, nil
}
