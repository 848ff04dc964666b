package a2a

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/parley-dev/parley/internal/chain"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/task"
)

// The error codes of JSON-RPC 2.0 and of A2A.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeNoTask         = -32001
	codeNotCancelable  = -32002
	codeNoPush         = -32003
	codeUnsupported    = -32004
	codeContentType    = -32005
	codeVersion        = -32009
)

// rpcError is the error member of a response.
type rpcError struct {
	code    int
	message string
	fields  []errs.Field   // become its data, or
	problem *httpx.Problem // whose code does

	official bool // its data has the form of version 1.0
	quota    bool // a quota or a share is used up
}

func newError(code int, message string) *rpcError { return &rpcError{code: code, message: message} }

// sheds reports whether the request was refused because there are too many. The HTTP status then
// shows it to plain HTTP clients too.
func (e *rpcError) sheds() bool {
	return e.problem != nil &&
		(e.problem.Status == http.StatusTooManyRequests || e.problem.Status == http.StatusServiceUnavailable)
}

// Error implements error.
func (e *rpcError) Error() string { return e.message }

// errorOf maps errors to JSON-RPC codes.
func errorOf(ctx context.Context, err error) *rpcError {
	if own, ok := err.(*rpcError); ok {
		return own
	}
	e := errs.As(err)
	if e.Kind == errs.Invalid && len(e.Fields) > 0 && !errors.As(err, new(*badParams)) {
		e = spelled(e)
		err = e
	}
	p := httpx.NewProblem(ctx, err) // also records server errors for the log
	out := &rpcError{code: codeInternal, message: p.Detail, problem: p}
	switch {
	case e.Code == task.CodeNotCancelable:
		out.code = codeNotCancelable
	case e.Code == task.CodeTerminal, e.Code == chain.CodeTooDeep, e.Code == chain.CodeLoop:
		out.code = codeUnsupported
	case e.Code == task.CodePushUnsupported:
		out.code = codeNoPush
	case usedUp(e):
		out.code, out.quota = codeUnsupported, true
	case e.Kind == errs.NotFound:
		out.code, out.message = codeNoTask, "not found: you have sent no task with this id to this agent"
	case e.Kind == errs.Invalid, e.Kind == errs.TooLarge:
		out.code, out.fields = codeInvalidParams, e.Fields
	case e.Kind == errs.RateLimited:
		out.code = codeInvalidRequest
	}
	return out
}

// usedUp reports whether an error is the refusal of a quota or a share: the request is valid, but
// this caller or its org has too much of something.
func usedUp(e *errs.Error) bool {
	if e.Kind != errs.RateLimited && e.Kind != errs.Conflict {
		return false
	}
	thing, _, _ := strings.Cut(e.Code, ".")
	return thing == "quota" || thing == "message" || thing == "push"
}

// refuse responds to a request that is refused before it is parsed, with an HTTP status for plain
// HTTP clients and a JSON-RPC body for others.
func refuse(w http.ResponseWriter, r *http.Request, err error) { refuseRequest(w, r, nullID, err) }

// refuseRequest is refuse for a request with a known id.
func refuseRequest(w http.ResponseWriter, r *http.Request, id []byte, err error) {
	p := httpx.Explain(w, r, err)
	e := &rpcError{code: codeInvalidRequest, message: p.Detail, problem: p}
	if p.Status >= http.StatusInternalServerError {
		e.code = codeInternal
	}
	e.official = askedVersion(r) != ""
	writeJSON(w, p.Status, appendError(nil, id, e))
}

func appendError(b, id []byte, e *rpcError) []byte {
	b = append(appendHead(b, id), `,"error":`...)
	return append(appendJSON(b, e.body()), '}')
}

// errorBody is the error member of a response.
type errorBody struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitzero"`
}

// fieldError is an error of one member.
type fieldError struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

// problemData has the details of any other error.
type problemData struct {
	Code      string `json:"code"`
	Scope     string `json:"scope,omitzero"`
	RequestID string `json:"request_id"`
}

func (e *rpcError) body() errorBody {
	out := errorBody{Code: e.code, Message: e.message}
	switch {
	case e.official:
		out.Data = e.details()
	case len(e.fields) > 0:
		fields := make([]fieldError, len(e.fields))
		for i, f := range e.fields {
			fields[i] = fieldError{httpx.Pointer(f.Path), f.Message}
		}
		out.Data = fields
	case e.problem != nil:
		out.Data = problemData{e.problem.Code, e.problem.Scope, e.problem.RequestID}
	}
	return out
}

// appendHead appends the beginning of every response.
func appendHead(b, id []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	return append(b, id...)
}
