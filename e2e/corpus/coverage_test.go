package corpus

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// coverage collects the recorded exchanges that succeeded, over all topics.
type coverage struct {
	mu    sync.Mutex
	ran   int             // topics
	lines map[string]bool // "METHOD /path"
	rpcs  map[string]bool // JSON-RPC methods
	tools map[string]bool // of MCP
	grpcs map[string]bool // gRPC methods
}

func newCoverage() *coverage {
	return &coverage{lines: map[string]bool{}, rpcs: map[string]bool{}, tools: map[string]bool{}, grpcs: map[string]bool{}}
}

func (c *coverage) finished() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ran++
}

// http records a request that succeeded.
func (c *coverage) http(line, body, response string, status int) {
	if status >= http.StatusBadRequest {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	path, _, _ := strings.Cut(line, "?")
	c.lines[path] = true
	var req struct {
		Method string
		Params struct{ Name string }
	}
	failed := strings.Contains(response, `"error":`) || strings.Contains(response, `"isError":true`)
	if json.Unmarshal([]byte(body), &req) != nil || failed {
		return
	}
	switch {
	case path == "POST /mcp" && req.Method == "tools/call":
		c.tools[req.Params.Name] = true
	case strings.HasPrefix(path, "POST /a2a/"):
		c.rpcs[req.Method] = true
	}
}

func (c *coverage) grpc(method string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok {
		c.grpcs[method] = true
	}
}

// check fails for operations without a successful exchange.
func (c *coverage) check(t *testing.T, s *server) {
	n := newSession(t, s, "", newCoverage())
	want := func(kind string, all []string, has func(string) bool) {
		t.Helper()
		if len(all) == 0 {
			t.Errorf("coverage: got no %s, want some; their list has moved", kind)
		}
		for _, name := range all {
			if !has(name) {
				t.Errorf("coverage: no exchange of %s %s succeeds, want at least one", kind, name)
			}
		}
	}
	want("operation", operations(t, n.quiet("", "GET /openapi.json", "").body), c.served)
	want("JSON-RPC method", jsonRPCMethods(t), func(m string) bool { return c.rpcs[m] })
	want("gRPC method", grpcMethods(t), func(m string) bool { return c.grpcs[m] })
	want("address of HTTP+JSON", bindings(), c.served)
	n.names.set("key", s.Key)
	tools := n.quiet("key", "POST /mcp", call("tools/list", "{}"), "Accept: application/json, text/event-stream")
	want("tool", toolNames(t, tools.body), func(name string) bool { return c.tools[name] })
}

// served reports whether a request matched the pattern, "METHOD /path/{param}".
func (c *coverage) served(pattern string) bool {
	const value = "\x00" // stands for a parameter while the rest is quoted
	quoted := regexp.QuoteMeta(param.ReplaceAllString(pattern, value))
	re := regexp.MustCompile("^" + strings.ReplaceAll(quoted, value, "[^/]+") + "$")
	for line := range c.lines {
		if re.MatchString(line) {
			return true
		}
	}
	return false
}

// operations returns those of the OpenAPI document.
func operations(t *testing.T, doc string) []string {
	t.Helper()
	var d struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(doc), &d); err != nil {
		t.Fatal(err)
	}
	var all []string
	for path, verbs := range d.Paths {
		for verb := range verbs {
			all = append(all, strings.ToUpper(verb)+" "+path)
		}
	}
	slices.Sort(all)
	return all
}

// jsonRPCMethods returns the keys of the tables of type dialect in the program, except those of
// HTTP+JSON in version 0.3, which are no names on the wire.
func jsonRPCMethods(t *testing.T) []string {
	t.Helper()
	all := map[string]bool{}
	err := filepath.WalkDir("../../internal", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			if name, ok := lit.Type.(*ast.Ident); !ok || name.Name != "dialect" {
				return true
			}
			for _, e := range lit.Elts {
				if key, ok := e.(*ast.KeyValueExpr).Key.(*ast.BasicLit); ok {
					if name, err := strconv.Unquote(key.Value); err == nil && !strings.HasPrefix(name, "v03/") {
						all[name] = true
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(all))
}

// grpcMethods returns those of the services of both versions.
func grpcMethods(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, service := range []string{grpcV1, grpcV03} {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
		if err != nil {
			t.Fatal(err)
		}
		methods := d.(protoreflect.ServiceDescriptor).Methods()
		for i := range methods.Len() {
			all = append(all, service+"/"+string(methods.Get(i).Name()))
		}
	}
	return all
}

// bindings returns the HTTP+JSON paths that both versions define, below an agent.
func bindings() []string {
	all := []string{"GET /a2a/{agent}/extendedAgentCard", "GET /a2a/{agent}/v1/card"}
	for _, version := range []string{"/a2a/{agent}", "/a2a/{agent}/v1"} {
		for _, s := range []string{
			"POST /message:send", "POST /message:stream", "GET /tasks", "GET /tasks/{id}", "POST /tasks/{id}:cancel",
			"GET /tasks/{id}:subscribe",
			"POST /tasks/{id}/pushNotificationConfigs", "GET /tasks/{id}/pushNotificationConfigs",
			"GET /tasks/{id}/pushNotificationConfigs/{push}", "DELETE /tasks/{id}/pushNotificationConfigs/{push}",
		} {
			verb, path, _ := strings.Cut(s, " ")
			all = append(all, verb+" "+version+path)
		}
	}
	return all
}

func toolNames(t *testing.T, body string) []string {
	t.Helper()
	var list struct {
		Result struct{ Tools []struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, tool := range list.Result.Tools {
		all = append(all, tool.Name)
	}
	return all
}
