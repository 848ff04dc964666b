package e2e

import (
	"bufio"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/parley-dev/parley/internal/servertest"
)

// TestMCPClientFindsItsWayIn runs the official TypeScript client with only the URL of the tools,
// while the test plays the person.
func TestMCPClientFindsItsWayIn(t *testing.T) {
	t.Parallel()
	dir := nodePackages(t, "mcp")
	eachEngine(t, func(t *testing.T, e engine) {
		s := serve(t, e, "--rate-limit", "0")
		admin := s.firstAdmin(t)
		useless := s.serviceToken(t, "main", "idle", "svc:a2a:serve")
		told := admin.guide(t, dir, "oauth.mjs", 9, []string{"PARLEY_MCP=" + s.base + "/mcp", "PARLEY_USELESS=" + useless},
			// The first time the person allows everything; the second time all but writing.
			[]string{"svc:tasks:read", "svc:tasks:write", "svc:a2a:write"}, []string{"svc:tasks:read"})

		var p struct {
			SubmittedBy string `json:"submitted_by"`
		}
		proposal := s.base + "/api/v1/orgs/main/proposals/" + told["proposal"]
		if err := json.Unmarshal(request(t, s.key, http.MethodGet, proposal, ""), &p); err != nil ||
			p.SubmittedBy != "user:admin" {
			t.Errorf("submitter = %q, %v; want user:admin", p.SubmittedBy, err)
		}
		// The token is for the tools only.
		if status := s.mcp(t, told["token"]); status != http.StatusOK {
			t.Errorf("token at /mcp: status = %d, want 200", status)
		}
		if status, err := api(t.Context(), http.MethodGet, proposal, told["token"], nil, nil); err != nil ||
			status != http.StatusUnauthorized {
			t.Errorf("token outside of /mcp: got %d, %v; want 401", status, err)
		}
		a := must(peer{s.base, told["token"]}.call(t.Context(), "echo", "tasks/get", object{"id": "x"}))(t)
		if a.status != http.StatusUnauthorized {
			t.Errorf("token at an agent: status = %d, want 401", a.status)
		}
	})
}

// TestMCPClientIsDescribedByItsDocument runs the current official TypeScript client, which uses a
// Client ID Metadata Document and asks for more scopes later.
func TestMCPClientIsDescribedByItsDocument(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "darwin" {
		t.Skip("Go on a Mac takes certificates from the key chain only, and the document's own is not in there")
	}
	dir := nodePackages(t, "mcp")
	eachEngine(t, func(t *testing.T, e engine) {
		var document string
		site := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(object{
				"client_id": document, "client_name": "Described",
				"redirect_uris": []string{callback},
			})
		}))
		t.Cleanup(site.Close)
		document = site.URL + "/client.json"
		roots := filepath.Join(t.TempDir(), "roots.pem")
		if err := os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: site.Certificate().Raw}),
			0o600); err != nil {
			t.Fatal(err)
		}
		s := serveIn(t, e, []string{"SSL_CERT_FILE=" + roots}, "--rate-limit", "0", "--client-documents-allow", "127.0.0.1")
		admin := s.firstAdmin(t)
		s.cli(t, "agent", "create", "reader", "--org", "main", "--name", "Reader")
		told := admin.guide(t, dir, "modern.mjs", 4,
			[]string{
				"PARLEY_MCP=" + s.base + "/mcp", "PARLEY_DOCUMENT=" + document,
				"PARLEY_KEY=" + s.newKey(t, "main", "agent:reader", "svc:tasks:read"),
			},
			[]string{"svc:tasks:read"}, []string{"svc:tasks:read", "svc:tasks:write"})
		var p struct {
			SubmittedBy string `json:"submitted_by"`
		}
		proposal := s.base + "/api/v1/orgs/main/proposals/" + told["proposal"]
		if err := json.Unmarshal(request(t, s.key, http.MethodGet, proposal, ""), &p); err != nil ||
			p.SubmittedBy != "user:admin" {
			t.Errorf("submitter = %q, %v; want user:admin", p.SubmittedBy, err)
		}
		// The consent page names the host of the document.
		host := strings.TrimPrefix(site.URL, "https://")
		c := &oauth2.Config{
			ClientID: document, RedirectURL: callback,
			Endpoint: oauth2.Endpoint{AuthURL: s.base + "/oauth/authorize"},
		}
		_, question := admin.do(t, http.MethodGet, c.AuthCodeURL("s", oauth2.S256ChallengeOption("v")), nil)
		if !strings.Contains(question, "is described at <code>"+host+"</code>") ||
			!strings.Contains(question, "can pretend to be it") {
			t.Errorf("consent page lacks the host %s and the warning, want both:\n%s", host, question)
		}
		if _, account := admin.do(t, http.MethodGet, s.base+"/account", nil); !strings.Contains(account,
			"Described ("+host+")") {
			t.Errorf("account page lacks the client described at %s, want it listed:\n%s", host, account)
		}
	})
}

// guide runs a script that sends this person to the authorization server, once for each list of
// scopes, which the person allows. It returns the script's values and expects the given number of
// checks.
func (p *person) guide(t *testing.T, dir, script string, checks int, env []string,
	allow ...[]string,
) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", script)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "NO_PROXY=127.0.0.1", "PARLEY_CALLBACK="+callback), env...)
	var said servertest.Output
	cmd.Stderr = &said
	stdin, stdout := must(cmd.StdinPipe())(t), must(cmd.StdoutPipe())(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	told, made := map[string]string{}, 0
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		_, _ = said.Write(append(lines.Bytes(), '\n'))
		what, value, _ := strings.Cut(lines.Text(), " ")
		switch what {
		case "ok":
			made++
		case "open":
			if len(allow) == 0 {
				t.Fatalf("the person was asked once more than expected:\n%s", said.String())
			}
			to := p.consent(t, value, allow[0]...)
			allow = allow[1:]
			if _, err := stdin.Write([]byte(to.String() + "\n")); err != nil {
				t.Fatal(err)
			}
		default:
			told[what] = value
		}
	}
	if err := cmd.Wait(); err != nil || made != checks || len(allow) > 0 {
		t.Fatalf("%s: %v; %d checks, want %d; %d consents left, want 0\n%s", script, err, made, checks, len(allow),
			said.String())
	}
	return told
}

// serviceToken creates a service with a key, and an access token for it.
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
	conf := clientcredentials.Config{
		ClientID: key.ID, ClientSecret: key.Secret, TokenURL: s.base + "/oauth/token",
		AuthStyle: oauth2.AuthStyleInHeader,
	}
	return must(conf.Token(t.Context()))(t).AccessToken
}

// mcp lists the tools and returns the status.
func (s *server) mcp(t *testing.T, credential string) int {
	t.Helper()
	res, err := post(t.Context(), s.base+"/mcp", credential, envelope("tools/list", object{}),
		"Accept: application/json, text/event-stream")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}
