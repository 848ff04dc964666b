package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/idptest"
	"github.com/parley-dev/parley/internal/relay"
	"github.com/parley-dev/parley/internal/task"
)

// keepStore makes a store of this schema with rows in every table, all of them written
// by a running server.
func keepStore(t *testing.T, engine string) {
	cfg := fixtureConfig(t, engine)
	is := idptest.New(t)
	is.Person = idptest.Claims{"sub": "s-1", "preferred_username": "ada", "name": "Ada Lovelace", "email": "ada@acme.example"}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request,
	) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer receiver.Close()
	cfg.Issuers, cfg.PushAllow = issuerFile(t, "", map[string]*idptest.Issuer{"acme": is}), []string{"127.0.0.1"}
	cfg.OutboundAllow = cfg.PushAllow
	s := startServer(t, cfg)
	out := kept{Key: s.First().Secret, Reads: map[string]json.RawMessage{}, Rows: map[string]int64{}}
	fillStore(t, s, receiver.URL)
	s.settle(t)
	for _, path := range fixtureReads(t, s, out.Key) {
		code, body := get(t, s.URL()+path, out.Key)
		if code != 200 {
			t.Fatal(path, code, body)
		}
		out.Reads[path] = json.RawMessage(body)
	}
	if err := s.Shutdown(); err != nil {
		t.Fatal(err)
	}
	for table, n := range countRows(t, cfg) {
		if bookkeeping[table] {
			continue
		}
		if out.Rows[table] = n; n == 0 {
			t.Errorf("the table %s is empty; add to fillStore what fills it", table)
		}
	}
	report, err := Migrate(t.Context(), cfg.Store, Migration{DryRun: true})
	if err != nil || t.Failed() {
		t.Fatal(err)
	}
	folder := filepath.Join(storesFolder, fmt.Sprintf("%04d", report.Schema))
	if _, err := os.Stat(filepath.Join(folder, engine+".json")); err == nil {
		t.Skipf("there is a store of schema %d already", report.Schema)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	dumpStore(t, cfg, folder)
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, engine+".json"), append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// fillStore does a little of everything.
func fillStore(t *testing.T, s *Server, receiver string) {
	t.Helper()
	const org = "/api/v1/orgs/main"
	key := s.First().Secret
	admin := s.admin(t)
	do := func(method, path, body string, headers ...string) (answer struct{ ID, Secret, Lease string }) {
		t.Helper()
		code, text := admin.call(method, path, body, headers...)
		if code/100 != 2 {
			t.Fatal(method, path, code, text)
		}
		_ = json.Unmarshal([]byte(text), &answer)
		return answer
	}
	admin.create("ada")
	if res, body := newBrowser(t, s).press("/login/sso/acme", url.Values{}); !at(res, body, "user:ada") {
		t.Fatal(res.Status, body)
	}
	ada := identity.Principal{Org: "main", Kind: identity.User, ID: "ada"}
	if _, _, err := account.NewOperator(s.store.Accounts(), Now).NewLink(t.Context(), ada); err != nil {
		t.Fatal(err)
	}
	do("POST", org+"/invitations", `{"user":"bob"}`)
	do("POST", org+"/members", `{"kind":"service","id":"crm"}`)
	do("POST", org+"/agents", `{"id":"helper","name":"Helper","description":"Helps.","skills":["help"],"public":true}`)
	worker := do("POST", org+"/keys", `{"principal":"agent:helper","name":"worker","scopes":["svc:a2a:serve"]}`)

	for i, category := range []string{"process", "security", "reliability", "process"} {
		p := do("POST", org+"/proposals", fmt.Sprintf(
			`{"title":"Proposal %d","category":%q,"problem":"It fails.","suggested_fix":"Repair it."}`, i, category),
			"Idempotency-Key", fmt.Sprintf("key-%d", i))
		do("POST", org+"/proposals/"+p.ID+"/vote", `{"vote":"for","comment":"Yes."}`)
		if i == 0 {
			do("PATCH", org+"/proposals/"+p.ID, `{"status":"approved","resolution_note":"Do it."}`)
		}
	}
	do("POST", org+"/followups", `{"title":"By hand","description":"Not from a proposal."}`)
	do("PUT", org+"/settings/friction", `{"threshold":5}`)
	do("POST", org+"/friction", `{"fingerprint":"registry:timeout","title":"The registry times out","category":"reliability",
		"problem":"Pulls fail.","evidence":"504 after 60 s","occurrence":"run-7"}`)

	do("POST", org+"/notes", `{"title":"Out of scope","text":"This is out of scope."}`)
	if code, body := post(t, s.URL()+org+"/webhooks", key, fmt.Sprintf(`{"url":%q}`, receiver)); code != 201 {
		t.Fatal(code, body)
	}
	linkAccounts(t, s)
	do("PATCH", org+"/agents/helper", `{"quota":{"tasks":100,"per":"day"}}`)
	callFromOtherOrg(t, s)

	caller, err := s.auth.Authenticate(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	relayTask(t, s, caller)
	if err := sendPushed(t, s, caller, "task-1", receiver); err != nil {
		t.Fatal(err)
	}
	parts := `"message":{"role":"user","parts":[{"type":"text","text":"hello"}]}`
	for _, call := range []string{
		`"method":"tasks/send","params":{"id":"task-2",` + parts + `}`,
		`"method":"message/send","params":{` + parts + `}`,
	} {
		if code, body := post(t, s.URL()+"/a2a/helper", key, `{"jsonrpc":"2.0","id":1,`+call+`}`); code != 200 ||
			strings.Contains(body, `"error"`) {
			t.Fatal(call, code, body)
		}
	}
	if code, body := post(t, s.URL()+"/api/v1/agents/helper/claim", worker.Secret,
		`{"worker":"host-1","max":1,"wait_seconds":0,"lease_seconds":30}`); code != 200 ||
		!strings.Contains(body, `"lease"`) {
		t.Fatal(code, body)
	}

	c := admin.ofTheOrg(``)
	tok := admin.token(c, nil, "svc:tasks:read")
	if _, err := c.TokenSource(t.Context(), &oauth2.Token{RefreshToken: tok.RefreshToken, Expiry: time.Unix(1,
		0)}).Token(); err != nil {
		t.Fatal(err)
	}
	own, _ := registered(t, s, "")
	if res, body := admin.do("GET", own.AuthCodeURL("undecided", oauth2.S256ChallengeOption(oauth2.GenerateVerifier())),
		nil); answerPath.FindString(body) == "" {
		t.Fatal(res.Status, body)
	}
}

// linkAccounts makes another org, one of whose users is the admin of the first.
func linkAccounts(t *testing.T, s *Server) {
	t.Helper()
	ctx := t.Context()
	operator := identity.NewOperator(s.store.IdentityStores(), Now, newIDs(Now).next)
	if _, err := operator.CreateOrg(ctx, "other", ""); err != nil {
		t.Fatal(err)
	}
	same := identity.Principal{Org: "other", Kind: identity.User, ID: "admin"}
	if _, err := operator.CreateMember(ctx, same, "", true); err != nil {
		t.Fatal(err)
	}
	first := identity.Principal{Org: "main", Kind: identity.User, ID: "admin"}
	if err := s.store.Accounts().LinkUsers(ctx, first, same, "account-1", Now(),
		func(_, _ []account.Standing) ([]identity.AuditEntry, error) {
			return []identity.AuditEntry{identity.NewEntry(ctx, Now(), "main", account.AccountLink, "user:admin", "")}, nil
		}); err != nil {
		t.Fatal(err)
	}
}

// callFromOtherOrg sends a task to an agent with a quota, which counts it.
func callFromOtherOrg(t *testing.T, s *Server) {
	t.Helper()
	operator := identity.NewOperator(s.store.IdentityStores(), Now, newIDs(Now).next)
	_, secret, err := operator.CreateKey(t.Context(), identity.KeyRequest{
		Principal: identity.Principal{Org: "other", Kind: identity.User, ID: "admin"}, Scopes: []string{"svc:a2a:write"},
	})
	if err != nil {
		t.Fatal(err)
	}
	code, body := post(t, s.URL()+"/a2a/helper", secret, `{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":"far",
		"message":{"role":"user","parts":[{"type":"text","text":"hello"}]}}}`)
	if code != 200 || strings.Contains(body, `"error"`) {
		t.Fatal(code, body)
	}
}

// relayTask registers a relay that is disabled, so that nothing changes by itself, with the link of a task.
func relayTask(t *testing.T, s *Server, caller *identity.Caller) {
	t.Helper()
	ctx := t.Context()
	if _, err := agent.NewOperator(s.agents).Create(ctx, agent.Agent{
		ID: "remote", Org: "main", Name: "Remote", Builtin: agent.Relayed, Disabled: true,
		Relay: &agent.Relay{URL: "https://remote.example/", Card: "{}"},
	}); err != nil {
		t.Fatal(err)
	}
	call, err := s.tasks.Reach(ctx, caller, "helper")
	if err != nil {
		t.Fatal(err)
	}
	sent, err := s.tasks.Send(ctx, call, dispatch.SendRequest{
		Message: task.Message{Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: "hello"}}},
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	link := relay.Link{Org: "main", UID: sent.UID, Agent: "remote", Attempt: 1, CreatedAt: Now()}
	if err := s.store.Relays().SaveLink(ctx, link); err != nil {
		t.Fatal(err)
	}
}

// settle waits until nothing changes by itself any more: the echo agent has answered,
// and the indexes have followed.
func (s *Server) settle(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		_, body := get(t, s.URL()+"/api/v1/orgs/main/a2a/tasks", s.First().Secret)
		if strings.Contains(body, `"completed"`) && strings.Contains(body, `"working"`) &&
			countRows(t, s.cfg)["search_waiting"] == 0 && countRows(t, s.cfg)["event_subjects"] > 0 &&
			countRows(t, s.cfg)["webhook_deliveries"] > 0 {
			return
		}
		get(t, s.URL()+"/api/v1/orgs/main/events?subject=agent:helper", s.First().Secret) // then its log is indexed
		if time.Now().After(deadline) {
			t.Fatal("the tasks do not settle: ", body)
		}
	}
}

// fixtureReads lists the URLs that are read from a store.
func fixtureReads(t *testing.T, s *Server, key string) []string {
	t.Helper()
	const org = "/api/v1/orgs/main/"
	out := []string{
		org + "followups", org + "friction", org + "friction/registry:timeout", org + "settings/friction",
		org + "members", org + "keys", org + "clients", org + "agents",
	}
	_, body := get(t, s.URL()+org+"proposals?status=all&sort=oldest", key)
	var page struct{ Proposals []struct{ ID string } }
	if err := json.Unmarshal([]byte(body), &page); err != nil || len(page.Proposals) == 0 {
		t.Fatal(body, err)
	}
	_, body = get(t, s.URL()+org+"a2a/tasks", key)
	var sent struct{ Tasks []struct{ UID, State string } }
	if err := json.Unmarshal([]byte(body), &sent); err != nil {
		t.Fatal(body, err)
	}
	for _, task := range sent.Tasks {
		if task.State == "completed" { // others change when their lease ends
			out = append(out, org+"a2a/tasks/"+task.UID)
		}
	}
	out = append(out, org+"proposals?status=all&sort=oldest", org+"proposals?status=all&q=fails")
	for _, p := range page.Proposals {
		one := org + "proposals/" + p.ID
		out = append(out, one, one+"/votes", one+"/history")
	}
	return out
}

// dumpStore writes the closed store into the folder.
func dumpStore(t *testing.T, cfg config.Config, folder string) {
	t.Helper()
	if cfg.Database == "" {
		data, err := os.ReadFile(filepath.Join(cfg.Data, "parley.db"))
		if err != nil {
			t.Fatal(err)
		}
		zipped(t, filepath.Join(folder, "sqlite.db.gz"), data)
		return
	}
	text, err := exec.Command("pg_dump", "--inserts", "--no-owner", "--no-privileges", "--no-comments", "--dbname",
		cfg.Database).Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	// Without what only psql or one version of PostgreSQL understands.
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "SET ") && !strings.HasPrefix(line, `\`) && !strings.HasPrefix(line, "--") &&
			!strings.HasPrefix(line, "SELECT pg_catalog.set_config") {
			kept.WriteString(line)
		}
	}
	zipped(t, filepath.Join(folder, "postgres.sql.gz"), []byte(kept.String()))
}
