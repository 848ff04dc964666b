package app

import (
	"encoding/json"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/idptest"
	"github.com/parley-dev/parley/internal/orgtest"
)

func TestAnotherIssuersTokenOverHTTP(t *testing.T) {
	t.Parallel()
	is := idptest.New(t)
	is.Person = idptest.Claims{"sub": "s-1", "preferred_username": "ada"}
	s := withIssuers(t, "", map[string]*idptest.Issuer{"acme": is})
	admin := s.admin(t)
	sign := func(subject, scope string) string {
		return is.Sign(is.Access("https://parley.example", subject, idptest.Claims{"scope": scope}))
	}
	problem := func(token, want string, status int) {
		t.Helper()
		if code, body := get(t, s.URL()+list, token); code != status || !strings.Contains(body, want) {
			t.Error(code, body)
		}
	}
	read := sign("s-1", "read")
	problem(read, "auth.token_nobody", 401)
	admin.create("ada")
	problem(read, "auth.token_nobody", 401)
	b := newBrowser(t, s)
	if res, body := b.press("/login/sso/acme", url.Values{}); !at(res, body, "user:ada") {
		t.Fatal(res.Status, body)
	}
	problem(read, `"proposals"`, 200)
	problem(sign("s-1", "admin"), "auth.scope_missing", 403) // not an admin
	problem(sign("s-1", "nothing"), "svc:tasks:read", 403)
	problem(is.Sign(is.Access("https://other.example", "s-1", nil)), "auth.audience", 401)

	if code, body := admin.call("POST", "/api/v1/orgs/main/members", `{"kind":"service","id":"crm"}`); code != 201 {
		t.Fatal(code, body)
	}
	crm := sign("crm-backend", "read admin")
	problem(crm, `"proposals"`, 200)
	if code, body := get(t, s.URL()+"/api/v1/orgs/main/keys", crm); code != 200 {
		t.Error(code, body)
	}
	// MCP takes it as well, A2A does, and gRPC.
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_proposals","arguments":{}}}`
	if code, body := post(t, s.URL()+"/mcp", crm, list); code != 200 ||
		strings.Contains(body, `"isError":true`) || !strings.Contains(body, "proposals") {
		t.Error(code, body)
	}
	a2a := sign("crm-backend", "a2a")
	send := `{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":"t-1",` +
		`"message":{"role":"user","parts":[{"type":"text","text":"hello"}]}}}`
	if code, body := post(t, s.URL()+"/a2a/echo", a2a, send); code != 200 || !strings.Contains(body, `"id":"t-1"`) {
		t.Error(code, body)
	}
	if code, body := post(t, s.URL()+"/a2a/echo", crm, send); code != 403 || !strings.Contains(body, "svc:a2a:write") {
		t.Error(code, body)
	}
	_, addr, _ := strings.Cut(s.URL(), "://")
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for token, want := range map[string]codes.Code{a2a: codes.OK, crm: codes.PermissionDenied, a2a + "x": codes.Unauthenticated} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
		if _, err := a2apb.NewA2AServiceClient(conn).ListTasks(ctx,
			&a2apb.ListTasksRequest{Tenant: echo}); status.Code(err) != want {
			t.Error(err, want)
		}
	}
	var doc struct {
		Servers []string `json:"authorization_servers"`
	}
	_, text := get(t, s.URL()+"/.well-known/oauth-protected-resource/mcp", "")
	if err := json.Unmarshal([]byte(text), &doc); err != nil || len(doc.Servers) != 2 || doc.Servers[0] != s.URL() ||
		doc.Servers[1] != is.URL {
		t.Error(text, err)
	}
	// The log never has a token, only its name.
	if code, body := post(t, s.URL()+"/api/v1/orgs/main/members", crm, `{"kind":"service","id":"made-by-crm"}`); code != 201 {
		t.Error(code, body)
	}
	if _, body := admin.call("GET", "/api/v1/orgs/main/audit?actor=service:crm", ""); !strings.Contains(body, `"ext-acme-`) {
		t.Error(body)
	}
	if _, body := admin.call("GET", "/api/v1/orgs/main/audit?limit=100", ""); strings.Contains(body, crm) {
		t.Error("the log has a token")
	}
	// Disabled, it works no more as soon as the memory is emptied.
	if code, body := admin.call("PATCH", "/api/v1/orgs/main/members/service:crm", `{"disabled":true}`); code != 200 {
		t.Fatal(code, body)
	}
	if err := s.auth.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	problem(crm, "auth.token_disabled", 401)
	// Disconnected, the subject is nobody's again.
	ada := identity.Principal{Org: "main", Kind: identity.User, ID: "ada"}
	orgtest.SetPassword(t, s.store, s.accounts, ada, "four other words")
	problem(read, `"proposals"`, 200)
	if err := s.accounts.Disconnect(t.Context(), ada, is.URL, "The acme"); err != nil {
		t.Fatal(err)
	}
	if err := s.auth.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	problem(read, "auth.token_nobody", 401)
}

func TestABadFileOfIssuersIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.Data, cfg.Issuers = t.TempDir(), filepath.Join(t.TempDir(), "none.json")
	if _, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "--issuers") {
		t.Error(err)
	}
	if entries, err := os.ReadDir(cfg.Data); err != nil || len(entries) != 0 {
		t.Error("the data was touched:", entries, err)
	}
}
