package a2a

import (
	"net/http"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
)

// kind is an error of the official protocol in its three bindings.
type kind struct {
	reason string // of google.rpc.ErrorInfo; empty: not an error of A2A
	status string // of google.rpc.Status
	http   int
}

// kinds is the table of errors by JSON-RPC code (section 5.4 of the specification, as of 1.0.1).
// 1.0.0 had other statuses for four of them.
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

// kind returns the error's row of the table. A quota is -32004 in JSON-RPC, but not an error of
// A2A: the other bindings show its HTTP status.
func (e *rpcError) kind() kind {
	if e.quota {
		return kind{"", "FAILED_PRECONDITION", http.StatusConflict}
	}
	return kinds[e.code]
}

const (
	errorDomain = "a2a-protocol.org"
	ownDomain   = "parley"
	typePrefix  = "type.googleapis.com/google.rpc."
)

// The details of an error are messages of google.rpc as google.protobuf.Any.
type (
	errorInfo struct {
		Type     string         `json:"@type"`
		Reason   string         `json:"reason"`
		Domain   string         `json:"domain"`
		Metadata *errorMetadata `json:"metadata,omitzero"`
	}
	errorMetadata struct {
		Code  string `json:"code"`
		Scope string `json:"scope,omitzero"`
	}
	badRequest struct {
		Type       string           `json:"@type"`
		Violations []fieldViolation `json:"fieldViolations"`
	}
	fieldViolation struct {
		Field       string `json:"field"`
		Description string `json:"description"`
	}
	requestInfo struct {
		Type      string `json:"@type"`
		RequestID string `json:"requestId"`
	}
)

// details returns the details of an error in addition to its message.
func (e *rpcError) details() []any {
	out := []any{}
	if reason, domain := e.reason(); reason != "" {
		info := errorInfo{Type: typePrefix + "ErrorInfo", Reason: reason, Domain: domain}
		if e.problem != nil && e.problem.Code != "" {
			info.Metadata = &errorMetadata{e.problem.Code, e.problem.Scope}
		}
		out = append(out, info)
	}
	if len(e.fields) > 0 {
		bad := badRequest{Type: typePrefix + "BadRequest"}
		for _, f := range e.fields {
			bad.Violations = append(bad.Violations, fieldViolation{fieldPath(f.Path), f.Message})
		}
		out = append(out, bad)
	}
	if e.problem != nil && e.problem.RequestID != "" {
		out = append(out, requestInfo{typePrefix + "RequestInfo", e.problem.RequestID})
	}
	return out
}

// reason returns the name of the error and its domain: the protocol, its SDKs, or Parley.
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

// sdkReasons are the names that the SDKs have for errors of JSON-RPC.
var sdkReasons = map[int]string{
	codeParse:          "PARSE_ERROR",
	codeInvalidRequest: "INVALID_REQUEST",
	codeNoMethod:       "METHOD_NOT_FOUND",
	codeInvalidParams:  "INVALID_PARAMS",
	codeInternal:       "INTERNAL_ERROR",
}

// fieldPath returns a path as google.rpc.BadRequest writes it.
func fieldPath(p errs.Path) string {
	return strings.ReplaceAll(strings.TrimPrefix(httpx.Pointer(p), "/"), "/", ".")
}
