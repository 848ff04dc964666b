package e2e

import (
	"maps"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// scenarios lists what the official conformance suite can ask of a server: "" is run,
// anything else is why it is not. Most call tools, prompts or resources of the
// suite's own example server by their names.
var scenarios = map[string]string{
	"server-initialize":        "",
	"ping":                     "",
	"tools-list":               "",
	"dns-rebinding-protection": "",
	// Nothing of these is announced, and asking all the same does no harm.
	"logging-set-level": "",
	"resources-list":    "",
	"prompts-list":      "",

	"tools-call-simple-text":       exampleTool,
	"tools-call-image":             exampleTool,
	"tools-call-audio":             exampleTool,
	"tools-call-embedded-resource": exampleTool,
	"tools-call-mixed-content":     exampleTool,
	"tools-call-error":             exampleTool,
	"tools-call-with-logging":      exampleTool,
	"tools-call-with-progress":     exampleTool,
	"json-schema-2020-12":          exampleTool,

	"tools-call-sampling":          noSession,
	"tools-call-elicitation":       noSession,
	"elicitation-sep1034-defaults": noSession,
	"elicitation-sep1330-enums":    noSession,
	"server-sse-polling":           noSession,
	"server-sse-multiple-streams":  noSession,

	"completion-complete":           notOffered,
	"resources-read-text":           notOffered,
	"resources-read-binary":         notOffered,
	"resources-templates-read":      notOffered,
	"resources-subscribe":           notOffered,
	"resources-unsubscribe":         notOffered,
	"prompts-get-simple":            notOffered,
	"prompts-get-with-args":         notOffered,
	"prompts-get-embedded-resource": notOffered,
	"prompts-get-with-image":        notOffered,
}

const (
	exampleTool = "calls a tool of the suite's example server"
	noSession   = "needs a session, in which the server asks or streams by itself; ours has none"
	notOffered  = "is about a capability that the server does not announce: it has tools only"
)

// passed matches at least one check, and no failed one.
var passed = regexp.MustCompile(`Passed: [1-9]\d*/\d+, 0 failed`)

var scenarioLine = regexp.MustCompile(`(?m)^  - ([a-z0-9-]+)\b`)

// TestMCPConformance runs the official conformance suite against the built server.
// The suite sends no credentials, so a proxy in between adds the key.
func TestMCPConformance(t *testing.T) {
	t.Parallel()
	dir := nodePackages(t, "mcp")
	suite := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), "node", append([]string{
			"--import", "./node20.mjs", filepath.Join("node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"),
		}, args...)...)
		cmd.Dir = dir
		return cmd.CombinedOutput()
	}
	// A newer suite must not bring scenarios that nobody thought about.
	out, err := suite("list", "--server")
	if err != nil {
		t.Fatalf("list: %v\n%s", err, out)
	}
	var known []string
	for _, m := range scenarioLine.FindAllSubmatch(out, -1) {
		known = append(known, string(m[1]))
	}
	slices.Sort(known)
	if listed := slices.Sorted(maps.Keys(scenarios)); !slices.Equal(known, listed) {
		t.Errorf("the suite has %v\nthe test lists %v", known, listed)
	}

	s := serve(t, engine{"sqlite", []string{"--data", t.TempDir()}}, "--rate-limit", "0")
	target, err := url.Parse(s.base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+s.key)
	}})
	t.Cleanup(proxy.Close)
	for name, why := range scenarios {
		if why != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			out, err := suite("server", "--url", proxy.URL+"/mcp", "--scenario", name, "--output-dir", t.TempDir())
			if err != nil || !passed.Match(out) {
				t.Errorf("%v\n%s", err, out)
			}
			if testing.Verbose() {
				t.Logf("%s", out)
			}
		})
	}
}
