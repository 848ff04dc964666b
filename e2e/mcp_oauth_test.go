package e2e

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// TestMCPClientFindsItsWayIn runs the official TypeScript client, which is told the
// address of the tools and nothing else, while the test plays its person.
func TestMCPClientFindsItsWayIn(t *testing.T) {
	t.Parallel()
	dir := nodePackages(t, "mcp")
	eachEngine(t, func(t *testing.T, e engine) {
		s := serve(t, e, "--rate-limit", "0")
		admin := s.firstAdmin(t)
		useless := s.serviceToken(t, "main", "idle", "svc:a2a:serve")
		cmd := exec.CommandContext(t.Context(), "node", "oauth.mjs")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "NO_PROXY=127.0.0.1", "PARLEY_MCP="+s.base+"/mcp", "PARLEY_CALLBACK="+callback, "PARLEY_USELESS="+useless)
		var said output
		cmd.Stderr = &said
		stdin, stdout := must(cmd.StdinPipe())(t), must(cmd.StdoutPipe())(t)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The first time everything is allowed that is asked for; the second time the
		// person takes writing away.
		allow := [][]string{{"svc:tasks:read", "svc:tasks:write", "svc:a2a:write"}, {"svc:tasks:read"}}
		told := map[string]string{}
		checks := 0
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			_, _ = said.Write(append(lines.Bytes(), '\n'))
			what, value, _ := strings.Cut(lines.Text(), " ")
			switch what {
			case "ok":
				checks++
			case "open":
				if len(allow) == 0 {
					t.Fatalf("the person is asked once more:\n%s", said.String())
				}
				to := admin.consent(t, value, allow[0]...)
				allow = allow[1:]
				if _, err := stdin.Write([]byte(to.String() + "\n")); err != nil {
					t.Fatal(err)
				}
			default:
				told[what] = value
			}
		}
		if err := cmd.Wait(); err != nil || checks != 9 {
			t.Fatalf("oauth.mjs: %v; %d checks were made\n%s", err, checks, said.String())
		}

		var p struct {
			SubmittedBy string `json:"submitted_by"`
		}
		proposal := s.base + "/api/v1/orgs/main/proposals/" + told["proposal"]
		if err := json.Unmarshal(request(t, s.key, http.MethodGet, proposal, ""), &p); err != nil || p.SubmittedBy != "user:admin" {
			t.Errorf("the proposal was filed by %q, %v", p.SubmittedBy, err)
		}
		// What the client got is for the tools only.
		if status := s.mcp(t, told["token"]); status != http.StatusOK {
			t.Errorf("the token at /mcp: %d", status)
		}
		if status, err := api(t.Context(), http.MethodGet, proposal, told["token"], nil, nil); err != nil || status != http.StatusUnauthorized {
			t.Errorf("the token outside of /mcp: %d %v", status, err)
		}
		a := must(peer{s.base, told["token"]}.call(t.Context(), "echo", "tasks/get", object{"id": "x"}))(t)
		if a.status != http.StatusUnauthorized {
			t.Errorf("the token at an agent: %d", a.status)
		}
	})
}

// serviceToken makes a service with a key, and an access token for it.
func (s *server) serviceToken(t *testing.T, org, service string, scopes ...string) string {
	t.Helper()
	s.cli(t, "service", "create", service, "--org", org)
	args := []string{"key", "create", "--org", org, "--as", "service:" + service, "--json"}
	for _, scope := range scopes {
		args = append(args, "--scope", scope)
	}
	var key struct{ ID, Secret string }
	if err := json.Unmarshal([]byte(s.cli(t, args...)), &key); err != nil {
		t.Fatal(err)
	}
	conf := clientcredentials.Config{ClientID: key.ID, ClientSecret: key.Secret, TokenURL: s.base + "/oauth/token", AuthStyle: oauth2.AuthStyleInHeader}
	return must(conf.Token(t.Context()))(t).AccessToken
}

// mcp asks the tools for their list, and returns the status.
func (s *server) mcp(t *testing.T, credential string) int {
	t.Helper()
	res, err := post(t.Context(), s.base+"/mcp", credential, envelope("tools/list", object{}), "Accept: application/json, text/event-stream")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}
