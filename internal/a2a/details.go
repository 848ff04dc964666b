package a2a

import (
	"net/http"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/wire"
)

// kind is an error of the official protocol as its three bindings name it.
type kind struct {
	reason string // of google.rpc.ErrorInfo; empty: the error is none of A2A's own
	status string // of google.rpc.Status
	http   int
}

// kinds is the table of errors (section 5.4 of the specification, as of 1.0.1), by
// JSON-RPC's code. 1.0.0 had other statuses for four of them.
var kinds = map[int]kind{
	codeParse:          {"", "INVALID_ARGUMENT", http.StatusBadRequest},
	codeInvalidRequest: {"", "INVALID_ARGUMENT", http.StatusBadRequest},
	codeNoMethod:       {"", "UNIMPLEMENTED", http.StatusNotFound},
	codeInvalidParams:  {"", "INVALID_ARGUMENT", http.StatusBadRequest},
	codeInternal:       {"", "INTERNAL", http.StatusInternalServerError},
	codeNoTask:         {"TASK_NOT_FOUND", "NOT_FOUND", http.StatusNotFound},
	codeNotCancelable:  {"TASK_NOT_CANCELABLE", "FAILED_PRECONDITION", http.StatusBadRequest},
	codeNoPush:         {"PUSH_NOTIFICATION_NOT_SUPPORTED", "FAILED_PRECONDITION", http.StatusBadRequest},
	codeUnsupported:    {"UNSUPPORTED_OPERATION", "FAILED_PRECONDITION", http.StatusBadRequest},
	codeContentType:    {"CONTENT_TYPE_NOT_SUPPORTED", "INVALID_ARGUMENT", http.StatusBadRequest},
	codeVersion:        {"VERSION_NOT_SUPPORTED", "FAILED_PRECONDITION", http.StatusBadRequest},
}

// kind is the error's line of the table. A quota is JSON-RPC's -32004, but none of
// A2A's own errors: the other bindings show its HTTP status.
func (e *rpcError) kind() kind {
	if e.quota {
		return kind{"", "FAILED_PRECONDITION", http.StatusConflict}
	}
	return kinds[e.code]
}

const (
	errorDomain = "a2a-protocol.org"
	ownDomain   = "parley"
	typePrefix  = `{"@type":"type.googleapis.com/google.rpc.`
)

// appendDetails appends what is known of an error beyond its message, as an array
// of google.protobuf.Any.
func appendDetails(b []byte, e *rpcError) []byte {
	reason, domain := e.reason()
	b = append(b, '[')
	start := len(b)
	next := func() {
		if len(b) > start {
			b = append(b, ',')
		}
	}
	if reason != "" {
		b = append(b, typePrefix+`ErrorInfo","reason":`...)
		b = wire.AppendString(b, reason)
		b = append(b, `,"domain":"`+domain+`"`...)
		if e.problem != nil && e.problem.Code != "" {
			b = append(b, `,"metadata":{"code":`...)
			b = wire.AppendString(b, e.problem.Code)
			if e.problem.Scope != "" {
				b = append(b, `,"scope":`...)
				b = wire.AppendString(b, e.problem.Scope)
			}
			b = append(b, '}')
		}
		b = append(b, '}')
	}
	if len(e.fields) > 0 {
		next()
		b = append(b, typePrefix+`BadRequest","fieldViolations":[`...)
		for i, f := range e.fields {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"field":`...)
			b = wire.AppendString(b, fieldPath(f.Path))
			b = append(b, `,"description":`...)
			b = wire.AppendString(b, f.Message)
			b = append(b, '}')
		}
		b = append(b, "]}"...)
	}
	if e.problem != nil && e.problem.RequestID != "" {
		next()
		b = append(b, typePrefix+`RequestInfo","requestId":`...)
		b = wire.AppendString(b, e.problem.RequestID)
		b = append(b, '}')
	}
	return append(b, ']')
}

// reason names the error, and who says so: the protocol, its SDKs, or else we.
func (e *rpcError) reason() (reason, domain string) {
	status := 0
	if e.problem != nil {
		status = e.problem.Status
	}
	switch k := e.kind(); {
	case e.quota:
	case k.reason != "":
		return k.reason, errorDomain
	case status == http.StatusUnauthorized:
		return "UNAUTHENTICATED", errorDomain
	case status == http.StatusForbidden:
		return "UNAUTHORIZED", errorDomain
	case e.code != codeInvalidRequest || e.problem == nil:
		return sdkReasons[e.code], errorDomain
	}
	return strings.ToUpper(strings.ReplaceAll(e.problem.Code, ".", "_")), ownDomain
}

// sdkReasons are the names that the SDKs have for errors which the protocol leaves
// to JSON-RPC.
var sdkReasons = map[int]string{
	codeParse:          "PARSE_ERROR",
	codeInvalidRequest: "INVALID_REQUEST",
	codeNoMethod:       "METHOD_NOT_FOUND",
	codeInvalidParams:  "INVALID_PARAMS",
	codeInternal:       "INTERNAL_ERROR",
}

// fieldPath is a path as google.rpc.BadRequest writes it.
func fieldPath(p errs.Path) string {
	return strings.ReplaceAll(strings.TrimPrefix(httpx.Pointer(p), "/"), "/", ".")
}
