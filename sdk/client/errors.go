package client

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Error is a refusal by the server.
type Error struct {
	Status     int           // of HTTP; 200 if the refusal is a JSON-RPC error in a normal response
	RPCCode    int           // of JSON-RPC, such as -32001; 0 if the call is not JSON-RPC
	Code       string        // stable name of the reason, such as proposal.transition_not_allowed
	Detail     string        // a sentence; empty if the response is not from Parley
	Fields     []FieldError  // what is wrong with the request
	Allowed    []string      // what the state of the record allows instead
	Scope      string        // the scope that the key lacks
	RequestID  string        // for questions to the operator of the server
	RetryAfter time.Duration // how long the server asks to wait
	Location   string        // target of a redirect, which the client does not follow
}

// FieldError describes what is wrong with one field of a request.
type FieldError struct {
	In        string `json:"in"`        // body, query, path or header
	Pointer   string `json:"pointer"`   // JSON pointer into the body
	Parameter string `json:"parameter"` // name of a parameter
	Detail    string `json:"detail"`
}

// Name returns the parameter, or the pointer without its first slash.
func (f FieldError) Name() string {
	if f.Parameter != "" {
		return f.Parameter
	}
	return strings.TrimPrefix(f.Pointer, "/")
}

// Error implements error.
func (e *Error) Error() string {
	number := e.Status
	if e.Status == http.StatusOK {
		number = e.RPCCode
	}
	detail := e.Detail
	if detail == "" {
		detail = http.StatusText(e.Status)
	}
	s := fmt.Sprintf("the server responded with %d: %s", number, detail)
	if e.Code != "" {
		s += " (" + e.Code + ")"
	}
	if e.Location != "" {
		s += " to " + e.Location
	}
	return s
}

// problem is a problem document (RFC 9457).
type problem struct {
	Status    int          `json:"status"`
	Detail    string       `json:"detail"`
	Code      string       `json:"code"`
	RequestID string       `json:"request_id"`
	Allowed   []string     `json:"allowed"`
	Scope     string       `json:"scope"`
	Errors    []FieldError `json:"errors"`
}

func (p *problem) refusal() Error {
	return Error{
		Code: p.Code, Detail: p.Detail, Fields: p.Errors,
		Allowed: p.Allowed, Scope: p.Scope, RequestID: p.RequestID,
	}
}

// UnmarshalJSON reads the problem document of a part of a response.
func (e *Error) UnmarshalJSON(b []byte) error {
	var p problem
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	*e = p.refusal()
	e.Status = p.Status
	return nil
}

// newError reads a refusal: a problem document (RFC 9457), a JSON-RPC error, or anything else.
func newError(res *http.Response, body []byte) *Error {
	var p problem
	e := &Error{}
	var envelope rpcResponse
	switch {
	case json.Unmarshal(body, &envelope) == nil && envelope.Error != nil && envelope.Error.Message != "":
		e = envelope.Error.refusal()
	case json.Unmarshal(body, &p) == nil && p.Detail != "":
		*e = p.refusal()
	default:
		e.Location = res.Header.Get("Location")
	}
	return e.of(res)
}

// of adds the status and headers of the response.
func (e *Error) of(res *http.Response) *Error {
	e.Status = res.StatusCode
	if e.RequestID == "" {
		e.RequestID = res.Header.Get(requestIDHeader)
	}
	e.RetryAfter = parseRetryAfter(res.Header.Get("Retry-After"), time.Now())
	return e
}

// ConnectionError is a request that got no response, or only a part of it. The server may have
// carried it out; see [ConnectionError.NotSent].
type ConnectionError struct {
	Server string // its URL
	Err    error
}

// Error implements error.
func (e *ConnectionError) Error() string {
	if e.NotSent() || e.Permanent() {
		return fmt.Sprintf("cannot reach %s: %v", e.Server, e.Cause())
	}
	return fmt.Sprintf("no response from %s: %v", e.Server, e.Cause())
}

// Unwrap returns the underlying error.
func (e *ConnectionError) Unwrap() error { return e.Err }

// Cause returns the underlying error without the URL of the request.
func (e *ConnectionError) Cause() error {
	var ue *url.Error
	if errors.As(e.Err, &ue) {
		return ue.Err
	}
	return e.Err
}

// Permanent reports that the same request cannot succeed later: the server's certificate
// is not trusted, or one side speaks TLS and the other does not.
func (e *ConnectionError) Permanent() bool {
	var untrusted *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	return errors.As(e.Err, &untrusted) || errors.As(e.Err, &plain) || errors.Is(e.Err, http.ErrSchemeMismatch)
}

// NotSent reports that the request certainly did not reach the server.
func (e *ConnectionError) NotSent() bool {
	var op *net.OpError
	return errors.As(e.Err, &op) && op.Op == "dial"
}
