package client

import (
	"encoding/json"
	"net/http"
	"strings"
)

// rpcRequest is a JSON-RPC 2.0 request.
type rpcRequest struct {
	Version string `json:"jsonrpc"`
	ID      int    `json:"id"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
}

// rpcResponse is a JSON-RPC 2.0 response.
type rpcResponse struct {
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// rpcResult returns the result in a response, or the error.
func (c *Client) rpcResult(res *http.Response, body []byte) (json.RawMessage, error) {
	var a rpcResponse
	if err := c.decode(body, &a); err != nil {
		return nil, err
	}
	if a.Error != nil {
		return nil, a.Error.refusal().of(res)
	}
	return a.Result, nil
}

// refusal converts an error. Its data is an object with a code, a list of fields, or the details of
// A2A 1.0.
func (r *rpcError) refusal() *Error {
	e := &Error{RPCCode: r.Code, Detail: r.Message}
	var own struct {
		Code      string `json:"code"`
		Scope     string `json:"scope"`
		RequestID string `json:"request_id"`
	}
	if json.Unmarshal(r.Data, &own) == nil {
		e.Code, e.Scope, e.RequestID = own.Code, own.Scope, own.RequestID
		return e
	}
	var details []struct {
		FieldError
		Type     string `json:"@type"`
		Metadata struct {
			Code  string `json:"code"`
			Scope string `json:"scope"`
		} `json:"metadata"`
		RequestID  string `json:"requestId"`
		Violations []struct {
			Field       string `json:"field"`
			Description string `json:"description"`
		} `json:"fieldViolations"`
	}
	if json.Unmarshal(r.Data, &details) != nil {
		return e
	}
	for _, d := range details {
		switch {
		case d.Type == "":
			e.Fields = append(e.Fields, d.FieldError)
		case d.Metadata.Code != "":
			e.Code, e.Scope = d.Metadata.Code, d.Metadata.Scope
		case d.RequestID != "":
			e.RequestID = d.RequestID
		}
		for _, v := range d.Violations {
			pointer := "/" + strings.ReplaceAll(v.Field, ".", "/")
			e.Fields = append(e.Fields, FieldError{In: "body", Pointer: pointer, Detail: v.Description})
		}
	}
	return e
}
