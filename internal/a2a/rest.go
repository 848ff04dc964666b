package a2a

import (
	"bytes"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/wire"
)

// The HTTP+JSON binding of the official protocol is below the agent's URL: version 1.0 directly,
// 0.3 below v1/. The path, query and body of a request become the params of the JSON-RPC method, so
// that both bindings share the rest.

// restRoute is the method that a request calls.
type restRoute struct {
	method  string            // name in the dialect
	members map[string]string // values from the path
}

// matchREST finds the method. segments is the path below the agent's URL. allowed lists the HTTP
// methods if only the HTTP method is wrong.
func matchREST(verb string, segments []string) (route restRoute, allowed []string) {
	prefix, names := "", v1Names
	if len(segments) > 0 && segments[0] == "v1" {
		prefix, names, segments = v03Prefix, v03Names, segments[1:]
	}
	for _, candidate := range restTable {
		members, ok := candidate.match(segments)
		name := names[candidate.operation]
		if !ok || name == "" {
			continue
		}
		if candidate.verb == verb {
			return restRoute{prefix + name, members}, nil
		}
		allowed = append(allowed, candidate.verb)
	}
	return restRoute{}, allowed
}

// v03Prefix begins the methods of version 0.3's HTTP+JSON binding.
const v03Prefix = "v03/"

// operation is an operation of the protocol, independent of its name.
type operation int

const (
	opSend operation = iota
	opStream
	opList
	opGet
	opCancel
	opSubscribe
	opSetPush
	opGetPush
	opListPush
	opDeletePush
	opCard
	opCard03
)

var v1Names = map[operation]string{
	opSend: "SendMessage", opStream: "SendStreamingMessage",
	opList: "ListTasks", opGet: "GetTask", opCancel: "CancelTask", opSubscribe: "SubscribeToTask",
	opSetPush: "CreateTaskPushNotificationConfig", opGetPush: "GetTaskPushNotificationConfig",
	opListPush: "ListTaskPushNotificationConfigs", opDeletePush: "DeleteTaskPushNotificationConfig",
	opCard: "GetExtendedAgentCard",
}

var v03Names = map[operation]string{
	opSend: "SendMessage", opStream: "SendStreamingMessage",
	opList: "ListTasks", opGet: "GetTask", opCancel: "CancelTask", opSubscribe: "SubscribeToTask",
	opSetPush: "SetPush", opGetPush: "GetPush", opListPush: "ListPush", opDeletePush: "DeletePush",
	opCard03: "Card",
}

// restPattern is one row of the binding's table. A segment in braces is a value, and the text after
// the braces is its suffix.
type restPattern struct {
	verb      string
	path      []string
	operation operation
}

var restTable = []restPattern{
	{http.MethodPost, []string{"message:send"}, opSend},
	{http.MethodPost, []string{"message:stream"}, opStream},
	{http.MethodGet, []string{"tasks"}, opList},
	{http.MethodPost, []string{"tasks", "{id}:cancel"}, opCancel},
	{http.MethodGet, []string{"tasks", "{id}:subscribe"}, opSubscribe},
	{http.MethodPost, []string{"tasks", "{id}:subscribe"}, opSubscribe},
	{http.MethodGet, []string{"tasks", "{id}"}, opGet},
	{http.MethodPost, []string{"tasks", "{taskId}", "pushNotificationConfigs"}, opSetPush},
	{http.MethodGet, []string{"tasks", "{taskId}", "pushNotificationConfigs"}, opListPush},
	{http.MethodGet, []string{"tasks", "{taskId}", "pushNotificationConfigs", "{id}"}, opGetPush},
	{http.MethodDelete, []string{"tasks", "{taskId}", "pushNotificationConfigs", "{id}"}, opDeletePush},
	{http.MethodGet, []string{"extendedAgentCard"}, opCard},
	{http.MethodGet, []string{"card"}, opCard03},
}

func (p *restPattern) match(segments []string) (map[string]string, bool) {
	if len(segments) != len(p.path) {
		return nil, false
	}
	members := map[string]string{}
	for i, want := range p.path {
		name, suffix, ok := strings.Cut(strings.TrimPrefix(want, "{"), "}")
		switch {
		case !ok:
			if want != segments[i] {
				return nil, false
			}
		default:
			value, ok := strings.CutSuffix(segments[i], suffix)
			if !ok || value == "" {
				return nil, false
			}
			members[name] = value
		}
	}
	return members, true
}

// restSegments splits the path below the agent's URL and unescapes each segment. A leading tenant
// that equals the agent, which the protocol allows, is dropped.
func restSegments(u *url.URL, agent string) ([]string, bool) {
	rest, ok := strings.CutPrefix(u.EscapedPath(), "/a2a/"+agent+"/")
	if !ok {
		return nil, false // the agent's id is escaped in the URL
	}
	segments := strings.Split(rest, "/")
	for i, s := range segments {
		plain, err := url.PathUnescape(s)
		if err != nil {
			return nil, false
		}
		segments[i] = plain
	}
	if len(segments) > 1 && segments[0] == agent {
		segments = segments[1:]
	}
	return segments, true
}

// rest serves the HTTP+JSON binding. As with JSON-RPC, the caller is authorized before anything
// else is parsed.
func (s *server) rest(w http.ResponseWriter, r *http.Request) {
	if c := s.answerREST(w, r); c != nil {
		httpx.ReleaseMemory(c)
		s.stream(c)
	}
}

func (s *server) answerREST(w http.ResponseWriter, r *http.Request) *call {
	agent := r.PathValue("agent")
	c := &call{Context: r.Context(), s: s, agent: agent, w: w, r: r}
	segments, ok := restSegments(r.URL, agent)
	if !ok {
		refuseREST(w, r, errs.ErrNotFound)
		return nil
	}
	var err error
	if c.to, err = s.Tasks.Reach(c, httpx.CallerOf(c), agent); err != nil {
		refuseREST(w, r, err)
		return nil
	}
	c.to = c.to.During(r.Header.Get(parentHeader))
	route, allowed := matchREST(r.Method, segments)
	switch {
	case route.method != "":
	case len(allowed) > 0:
		w.Header()["Allow"] = []string{strings.Join(allowed, ", ")}
		e := newError(codeNoMethod, "this URL allows "+strings.Join(allowed, " and ")+" only")
		writeRESTError(w, r, http.StatusMethodNotAllowed, e)
		return nil
	default:
		refuseREST(w, r, errs.New(errs.NotFound, "resource.not_found", "there is no such path below the agent's URL"))
		return nil
	}
	m, ok := s.table[route.method]
	if !ok {
		m = v03RESTDialect[route.method]
	}
	if e := checkVersion(askedVersion(r)); e != nil {
		writeRESTError(w, r, 0, e)
		return nil
	}
	body := buffers.Get().(*buffer)
	defer body.free()
	c.body = body
	if body.b, err = readBody(w, r, body.b); err != nil {
		refuseREST(w, r, err)
		return nil
	}
	params, bad := restParams(r, body.b, route.members)
	if bad != nil {
		writeRESTError(w, r, 0, bad)
		return nil
	}
	if m.stream != nil {
		c.stream, err = c.openTraced(rpcREST, route.method, &m, params)
		c.nameQuota()
		if err != nil {
			writeRESTError(w, r, 0, errorOf(c, err))
			return nil
		}
		return c
	}
	out := buffers.Get().(*buffer)
	defer out.free()
	span := c.startSpan(rpcREST, route.method)
	b, err := m.call(c, params, out.b)
	endSpan(span, err)
	c.nameQuota()
	if err != nil {
		writeRESTError(w, r, 0, errorOf(c, err))
		return nil
	}
	out.b = b
	writeBody(w, http.StatusOK, restType(r), out.b)
	return nil
}

// restType returns the media type of results: version 1.0 has its own.
func restType(r *http.Request) []string {
	if isV03REST(r) {
		return jsonType
	}
	return a2aType
}

var a2aType = jsonMedia[1:]

// isV03REST reports whether a request is for the HTTP+JSON binding of version 0.3.
func isV03REST(r *http.Request) bool {
	path := strings.TrimPrefix(r.PathValue("path"), r.PathValue("agent")+"/") // see restSegments
	return strings.HasPrefix(path, "v1/")
}

// restParams merges the body, the query and the values from the path into one object. The path
// takes precedence.
func restParams(r *http.Request, body []byte, members map[string]string) ([]byte, *rpcError) {
	inner, bad := restBody(r, body)
	if bad != nil {
		return nil, bad
	}
	b := append(make([]byte, 0, len(inner)+64), '{')
	b = append(b, inner...)
	member := func(name string) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = wire.AppendString(b, name)
		b = append(b, ':')
	}
	if r.Method == http.MethodGet || r.Method == http.MethodDelete {
		query := r.URL.Query()
		for _, name := range slices.Sorted(maps.Keys(query)) {
			member(name)
			b = appendQueryValue(b, name, query[name][len(query[name])-1])
		}
	}
	for name, value := range members {
		member(name)
		b = wire.AppendString(b, value)
	}
	return append(b, '}'), nil
}

// appendQueryValue appends a value with the JSON type that its name requires. A value of another
// type stays a string, which the method then refuses.
func appendQueryValue(b []byte, name, value string) []byte {
	switch name {
	case "historyLength", "history_length", "pageSize", "page_size", "status":
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			return strconv.AppendInt(b, n, 10)
		}
	case "includeArtifacts", "include_artifacts":
		if value == "true" || value == "false" {
			return append(b, value...)
		}
	}
	return wire.AppendString(b, value)
}

// restBody returns the members of the body's object, without its braces.
func restBody(r *http.Request, body []byte) ([]byte, *rpcError) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return nil, nil
	}
	if bad := checkContentType(r, jsonMedia); bad != nil {
		return nil, bad
	}
	if wire.TooDeep(body) {
		return nil, newError(codeInvalidRequest,
			"the body is nested deeper than "+strconv.Itoa(wire.MaxDepth)+" levels")
	}
	if _, err := jsontext.AppendFormat(nil, body); err != nil {
		return nil, newError(codeParse, syntaxMessage(err))
	}
	if body[0] != '{' {
		return nil, newError(codeInvalidRequest, "the body must be an object")
	}
	return bytes.TrimSpace(body[1 : len(body)-1]), nil
}

// jsonMedia are the media types of JSON bodies.
var jsonMedia = []string{"application/json", "application/a2a+json"}

// checkContentType refuses a body with another media type.
func checkContentType(r *http.Request, allowed []string) *rpcError {
	t := r.Header.Get("Content-Type")
	if t == "" || t == jsonMedia[0] {
		return nil
	}
	if media, _, err := mime.ParseMediaType(t); err == nil && slices.Contains(allowed, media) {
		return nil
	}
	e := newError(codeContentType, "the body must be application/json, not "+clip(t))
	e.official = true
	return e
}

// refuseREST responds to a request that is refused before it is parsed.
func refuseREST(w http.ResponseWriter, r *http.Request, err error) {
	p := httpx.Explain(w, r, err)
	e := &rpcError{code: codeInvalidRequest, message: p.Detail, problem: p}
	if p.Status >= http.StatusInternalServerError {
		e.code = codeInternal
	}
	writeRESTError(w, r, p.Status, e)
}

// writeRESTError writes an error as google.rpc.Status (AIP-193). A status of 0 means that of the
// error's kind. Version 0.3 does not define the form of errors: some clients look for that status,
// others for the members of JSON-RPC.
func writeRESTError(w http.ResponseWriter, r *http.Request, status int, e *rpcError) {
	k := e.kind()
	if e.problem != nil && k.reason == "" {
		if k.http = e.problem.Status; k.http == http.StatusUnprocessableEntity {
			k.http = http.StatusBadRequest // google.rpc has no other code for it
		}
		for name, v := range e.problem.GetHeaders() {
			w.Header()[name] = v
		}
	}
	if status == 0 {
		status = k.http
	}
	if s, ok := statusNames[status]; ok && k.reason == "" {
		k.status = s
	}
	body := restError{Error: rpcStatus{status, k.status, e.message, e.details()}}
	if isV03REST(r) {
		body.Code, body.Message = e.code, e.message
	}
	writeJSON(w, status, appendJSON(nil, body)) // the SDK for Go reads errors of this media type only
}

type restError struct {
	Code    int       `json:"code,omitzero"`
	Message string    `json:"message,omitzero"`
	Error   rpcStatus `json:"error"`
}

type rpcStatus struct {
	Code    int    `json:"code"`
	Status  string `json:"status"`
	Message string `json:"message"`
	Details []any  `json:"details"`
}

// statusNames maps HTTP statuses to the names of google.rpc.
var statusNames = map[int]string{
	http.StatusUnauthorized:       "UNAUTHENTICATED",
	http.StatusForbidden:          "PERMISSION_DENIED",
	http.StatusNotFound:           "NOT_FOUND",
	http.StatusTooManyRequests:    "RESOURCE_EXHAUSTED",
	http.StatusServiceUnavailable: "UNAVAILABLE",
}
