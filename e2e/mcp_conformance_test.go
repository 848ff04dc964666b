package e2e

import (
	"bytes"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/parley-dev/parley/internal/servertest"
)

// scenarios lists the scenarios of the official conformance suite. An empty value means that it is
// run; any other value is the reason why not. Most call tools, prompts or resources of the suite's
// own example server by name.
var scenarios = map[string]string{
	"server-initialize":        "",
	"server-stateless":         "", // except for the checks in excused
	"ping":                     "",
	"tools-list":               "",
	"dns-rebinding-protection": "",
	"http-header-validation":   "",
	"caching":                  "",
	"resources-list":           "",
	// None of these is announced, and calling them all the same does no harm.
	"logging-set-level":                         "",
	"prompts-list":                              "",
	"sep-2164-resource-not-found":               "",
	"input-required-result-unsupported-methods": "",

	"tools-call-simple-text":               exampleTool,
	"tools-call-image":                     exampleTool,
	"tools-call-audio":                     exampleTool,
	"tools-call-embedded-resource":         exampleTool,
	"tools-call-mixed-content":             exampleTool,
	"tools-call-error":                     exampleTool,
	"tools-call-with-logging":              exampleTool,
	"tools-call-with-progress":             exampleTool,
	"json-schema-2020-12":                  exampleTool,
	"http-custom-header-server-validation": exampleTool,

	"tools-call-sampling":          noSession,
	"tools-call-elicitation":       noSession,
	"elicitation-sep1034-defaults": noSession,
	"elicitation-sep1330-enums":    noSession,
	"server-sse-polling":           noSession,
	"server-sse-multiple-streams":  noSession,
	"server-session-lifecycle":     noSession,

	"completion-complete":           notOffered,
	"resources-read-text":           exampleResource,
	"resources-read-binary":         exampleResource,
	"resources-templates-read":      exampleResource,
	"resources-subscribe":           noSession,
	"resources-unsubscribe":         noSession,
	"prompts-get-simple":            notOffered,
	"prompts-get-with-args":         notOffered,
	"prompts-get-embedded-resource": notOffered,
	"prompts-get-with-image":        notOffered,

	"sep-2640-skills-directory":    noExtension,
	"sep-2640-skills-enumeration":  noExtension,
	"sep-2640-skills-manifest":     noExtension,
	"tasks-lifecycle":              noExtension,
	"tasks-capability-negotiation": noExtension,
	"tasks-wire-fields":            noExtension,
	"tasks-request-state-removal":  noExtension,
	"tasks-mrtr-input":             noExtension,
	"tasks-request-headers":        noExtension,
	"tasks-dispatch-and-envelope":  noExtension,
	"tasks-status-notifications":   noExtension,
	"tasks-required-task-error":    noExtension,
	"tasks-mrtr-composition":       noExtension,

	"input-required-result-basic-elicitation":       noQuestions,
	"input-required-result-basic-sampling":          noQuestions,
	"input-required-result-basic-list-roots":        noQuestions,
	"input-required-result-request-state":           noQuestions,
	"input-required-result-multiple-input-requests": noQuestions,
	"input-required-result-multi-round":             noQuestions,
	"input-required-result-missing-input-response":  noQuestions,
	"input-required-result-non-tool-request":        noQuestions,
	"input-required-result-result-type":             noQuestions,
	"input-required-result-tampered-state":          noQuestions,
	"input-required-result-capability-check":        noQuestions,
	"input-required-result-ignore-extra-params":     noQuestions,
	"input-required-result-validate-input":          noQuestions,
}

const (
	exampleTool = "calls a tool of the suite's example server"
	noSession   = "needs a session, in which the server asks or streams by itself; ours has none"
	notOffered  = "is about a capability that the server does not announce: it has tools and resources only"

	exampleResource = "reads a resource of the suite's example server"

	noExtension = "is about an extension that the server does not announce"
	noQuestions = "is about tools that ask the client for something before they answer; ours never do"
)

// excused lists single checks that may fail in a scenario, and why. The suite fails if one of them
// passes.
var excused = map[string]map[string]string{"server-stateless": {
	// An empty list, as the scenario prompts-list requires; clients ask without looking at what is
	// announced.
	"sep-2575-server-declares-prompts-in-discover": "takes an empty list of prompts for a support of prompts",

	"sep-2575-server-rejects-undeclared-capability":          exampleTool,
	"sep-2575-missing-capability-http-400":                   exampleTool,
	"sep-2575-http-server-no-independent-requests-on-stream": exampleTool,
	"sep-2575-server-no-log-without-loglevel":                exampleTool,
}}

// authScenarios is the same for authorization servers. The suite's scenarios under auth/ are about
// clients.
var authScenarios = map[string]string{
	"authorization-server-metadata-endpoint": "",
	"authorization-code-grant":               "",
}

// passed matches a result with at least one check and no failure or warning.
var passed = regexp.MustCompile(`Passed: [1-9]\d*/\d+, 0 failed, 0 warnings`)

var scenarioLine = regexp.MustCompile(`(?m)^  - ([a-z0-9-]+)\b`)

// suite runs the official conformance suite.
func suite(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", append([]string{
		"--import", "./node20.mjs", filepath.Join("node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"),
	}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "NO_PROXY=127.0.0.1")
	return cmd
}

// judged checks that the list covers every scenario of the suite.
func judged(t *testing.T, dir, kind string, scenarios map[string]string) {
	t.Helper()
	out, err := suite(t, dir, "list", kind).CombinedOutput()
	if err != nil {
		t.Fatalf("list: %v\n%s", err, out)
	}
	var known []string
	for _, m := range scenarioLine.FindAllSubmatch(out, -1) {
		known = append(known, string(m[1]))
	}
	slices.Sort(known)
	if listed := slices.Sorted(maps.Keys(scenarios)); !slices.Equal(known, listed) {
		t.Errorf("scenarios of the suite = %v\nwant %v, which this test lists", known, listed)
	}
}

// TestMCPConformance runs the official conformance suite against the built server.
// The suite sends no credentials, so a proxy in between adds the key.
func TestMCPConformance(t *testing.T) {
	t.Parallel()
	dir := nodePackages(t, "mcp")
	judged(t, dir, "--server", scenarios)
	s := serve(t, engine{"sqlite", []string{"--data", t.TempDir()}}, "--rate-limit", "0")
	target, err := url.Parse(s.base)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+s.key)
	}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Read the body before forwarding it. On a busy machine the response may arrive before the
		// proxy has noticed the end of the request, and then net/http cuts the response off. The
		// suite would wait for the rest forever.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	for name, why := range scenarios {
		if why != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			args := []string{"server", "--url", proxy.URL + "/mcp", "--scenario", name, "--output-dir", t.TempDir()}
			if len(excused[name]) > 0 {
				args = append(args, "--expected-failures", baseline(t, name))
			}
			out, err := suite(t, dir, args...).CombinedOutput()
			if err != nil || len(excused[name]) == 0 && !passed.Match(out) {
				t.Errorf("got %v, want the scenario to pass\n%s", err, out)
			}
			if testing.Verbose() {
				t.Logf("%s", out)
			}
		})
	}
}

// baseline writes the file of checks that may fail in a scenario.
func baseline(t *testing.T, scenario string) string {
	t.Helper()
	text := "server:\n"
	for _, check := range slices.Sorted(maps.Keys(excused[scenario])) {
		text += "  - " + scenario + ":" + check + "\n"
	}
	name := filepath.Join(t.TempDir(), "expected.yml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// ownPort finds a free port for a program that cannot choose one itself. It is outside of the
// range that the system assigns, so no other test gets it meanwhile.
func ownPort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		port := strconv.Itoa(20_000 + rand.IntN(5000))
		if free, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			_ = free.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

var question = regexp.MustCompile(`(?m)^http://\S+/oauth/authorize\?\S+$`)

// TestAuthorizationConformance lets the suite's OAuth client inspect the authorization server and
// request a token, while the test plays the person.
func TestAuthorizationConformance(t *testing.T) {
	t.Parallel()
	dir := nodePackages(t, "mcp")
	judged(t, dir, "--authorization", authScenarios)
	s := serve(t, engine{"sqlite", []string{"--data", t.TempDir()}}, "--rate-limit", "0")
	admin := s.firstAdmin(t)
	for name, resource := range map[string]string{"the tools": s.base + "/mcp", "everything": s.base} {
		t.Run(name, func(t *testing.T) {
			port := ownPort(t)
			c := s.registered(t, "http://127.0.0.1:"+port+"/callback")
			cmd := suite(t, dir, "authorization", "--url", s.base, "--client-id", c.ClientID, "--resource", resource, "--port",
				port, "--output-dir", t.TempDir())
			var out servertest.Output
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			// until waits for the suite, which may end early.
			until := func(what string, ok func() bool) {
				t.Helper()
				eventually(t, soon, what, func() bool {
					select {
					case err := <-ended:
						t.Fatalf("the suite ended (%v), want it to wait until %s:\n%s", err, what, out.String())
					default:
					}
					return ok()
				})
			}
			until("the suite names an address", func() bool { return question.MatchString(out.String()) })
			to := admin.consent(t, question.FindString(out.String()), "svc:tasks:read")
			// The suite prints the URL before it listens there.
			until("the suite listens", func() bool {
				c, err := net.Dial("tcp", to.Host)
				if err == nil {
					_ = c.Close()
				}
				return err == nil
			})
			if res, body := admin.do(t, "GET", to.String(), nil); res.StatusCode != 200 {
				t.Errorf("status = %s, want 200: %s", res.Status, body)
			}
			if err := <-ended; err != nil {
				t.Errorf("%v\n%s", err, out.String())
			}
			for scenario := range authScenarios {
				if ok := regexp.MustCompile(scenario + `: [1-9]\d* passed, 0 failed`); !ok.MatchString(out.String()) {
					t.Errorf("%s did not pass, want all of its checks to pass:\n%s", scenario, out.String())
				}
			}
			if testing.Verbose() {
				t.Log(out.String())
			}
		})
	}
}
