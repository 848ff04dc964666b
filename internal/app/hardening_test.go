package app

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/identity"
)

// send makes a request with a key, and with a Host header if there is one.
func send(t *testing.T, method, addr, key, body, host string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, addr, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if r.Host = host; body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(out)
}

func TestADemotedAdminIsOutAtOnce(t *testing.T) {
	t.Parallel()
	s := running(t)
	root := s.First().Secret
	members, keys := s.URL()+"/api/v1/orgs/main/members", s.URL()+"/api/v1/orgs/main/keys"
	if res, body := send(t, "POST", members, root, `{"kind":"user","id":"eve","admin":true}`, ""); res.StatusCode != 201 {
		t.Fatal(res.Status, body)
	}
	eve := identity.Principal{Org: "main", Kind: identity.User, ID: "eve"}
	operator := identity.NewOperator(s.store.IdentityStores(), Now, newIDs(Now).next)
	_, admin, err := operator.CreateKey(t.Context(), identity.KeyRequest{Principal: eve, Scopes: []string{"svc:admin:admin"}})
	if err != nil {
		t.Fatal(err)
	}
	_, reader, err := operator.CreateKey(t.Context(), identity.KeyRequest{Principal: eve, Scopes: []string{"svc:tasks:read"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{admin, reader} { // both are in the cache now
		if res, body := send(t, "GET", s.URL()+"/api/v1/me", key, "", ""); res.StatusCode != 200 {
			t.Fatal(res.Status, body)
		}
	}
	if res, body := send(t, "PATCH", members+"/user:eve", root, `{"admin":false}`, ""); res.StatusCode != 200 {
		t.Fatal(res.Status, body)
	}
	if res, body := send(t, "PATCH", members+"/user:eve", admin, `{"admin":true}`, ""); res.StatusCode != 401 {
		t.Error("she promotes herself again:", res.Status, body)
	}
	if res, body := send(t, "GET", s.URL()+list, reader, "", ""); res.StatusCode != 200 {
		t.Error("her other key:", res.Status, body)
	}
	if _, body := send(t, "GET", s.URL()+"/api/v1/orgs/main/audit?action=key.revoke", root, "",
		""); !strings.Contains(body, "user:eve is no longer an admin") {
		t.Error(body)
	}
	// Not an admin, with a key that the operator gave her: no further one.
	_, again, err := operator.CreateKey(t.Context(), identity.KeyRequest{Principal: eve, Scopes: []string{"svc:admin:admin"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{
		`{"principal":"user:eve","scopes":["svc:admin:admin"]}`,
		`{"principal":"agent:echo","scopes":["svc:tasks:read","svc:admin:admin"]}`,
	} {
		if res, answer := send(t, "POST", keys, again, body, ""); res.StatusCode != 403 ||
			!strings.Contains(answer, "identity.not_an_admin") {
			t.Error(res.Status, answer)
		}
	}
	// Revoked, disabled: the next request knows.
	_, body := send(t, "POST", keys, root, `{"principal":"agent:echo","scopes":["svc:tasks:read"]}`, "")
	var made struct{ ID, Secret string }
	if err := json.Unmarshal([]byte(body), &made); err != nil {
		t.Fatal(err, body)
	}
	for _, step := range [][3]string{
		{"DELETE", keys + "/" + made.ID, ""},
		{"PATCH", members + "/user:eve", `{"disabled":true}`},
	} {
		key := map[string]string{"DELETE": made.Secret, "PATCH": reader}[step[0]]
		if res, _ := send(t, "GET", s.URL()+list, key, "", ""); res.StatusCode != 200 {
			t.Fatal(res.Status)
		}
		if res, body := send(t, step[0], step[1], root, step[2], ""); res.StatusCode >= 300 {
			t.Fatal(res.Status, body)
		}
		if res, _ := send(t, "GET", s.URL()+list, key, "", ""); res.StatusCode != 401 {
			t.Errorf("after %s the key still works: %s", step[0], res.Status)
		}
	}
}

func TestCardsDoNotBelieveTheHostHeader(t *testing.T) {
	t.Parallel()
	s := running(t)
	for _, path := range []string{"/a2a/echo/.well-known/agent-card.json", "/a2a/echo", "/.well-known/agent.json"} {
		res, body := send(t, "GET", s.URL()+path, "", "", "evil.example")
		if res.StatusCode != 200 || strings.Contains(body, "evil.example") {
			t.Error(path, res.Status, body)
		}
		if path == "/a2a/echo" && !strings.Contains(body, `"`+s.URL()+`/a2a/echo"`) {
			t.Error(body)
		}
	}
}

func TestBrowsersAreToldToStayWithHTTPS(t *testing.T) {
	t.Parallel()
	plain := running(t)
	if res, _ := send(t, "GET", plain.URL()+"/healthz", "", "", ""); res.Header.Get("Strict-Transport-Security") != "" {
		t.Error("HSTS without TLS")
	}
	cfg := testConfig(t)
	cfg.PublicURL = "https://parley.example"
	s := startServer(t, cfg)
	t.Cleanup(func() { _ = s.Shutdown() })
	for _, path := range []string{"/healthz", "/login", "/nowhere"} {
		if res, _ := send(t, "GET", s.URL()+path, "", "", ""); res.Header.Get("Strict-Transport-Security") != "max-age=31536000" {
			t.Error(path, res.Header)
		}
	}
	dir := t.TempDir()
	cfg = testConfig(t)
	cfg.TLSCert, cfg.TLSKey = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCert(t, cfg, 1, time.Now())
	if s := (&Server{cfg: cfg}); !s.hsts() {
		t.Error("no HSTS under TLS")
	}
}

func TestMetricsCanBeGuarded(t *testing.T) {
	t.Parallel()
	with := func(edit func(*config.Config)) *Server {
		cfg := testConfig(t)
		edit(&cfg)
		if err := cfg.Validate(); err != nil {
			t.Fatal(err)
		}
		s := startServer(t, cfg)
		t.Cleanup(func() { _ = s.Shutdown() })
		return s
	}
	want := func(addr, key string, status int) {
		t.Helper()
		res, body := send(t, "GET", addr, key, "", "")
		if res.StatusCode != status || strings.Contains(body, "parley_build_info") != (status == 200) {
			t.Errorf("%s with %q: %s; want %d", addr, key, res.Status, status)
		}
	}
	const key = "scrape-me-if-you-can"
	want(with(func(*config.Config) {}).URL()+"/metrics", "", 200)

	s := with(func(c *config.Config) { c.MetricsKey = key })
	for given, status := range map[string]int{"": 401, "wrong": 401, key + "x": 401, s.First().Secret: 401, key: 200} {
		want(s.URL()+"/metrics", given, status)
	}

	s = with(func(c *config.Config) { c.MetricsListen = "127.0.0.1:0" })
	own := strings.TrimSuffix(s.metricsSide.url(), "/metrics")
	want(own+"/metrics", "", 200)
	want(s.URL()+"/metrics", "", 404)
	want(own+"/healthz", "", 404) // nothing else is there

	s = with(func(c *config.Config) { c.MetricsListen, c.MetricsKey = "127.0.0.1:0", key })
	want(s.metricsSide.url(), "", 401)
	want(s.metricsSide.url(), key, 200)
}

// Profiles are served at their own address only.
func TestProfiles(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.DebugListen = "127.0.0.1:0"
	s := startServer(t, cfg)
	t.Cleanup(func() { _ = s.Shutdown() })
	own := s.sides[0].url()
	for addr, status := range map[string]int{
		own: 200, own + "goroutine?debug=1": 200, own + "profile?seconds=1": 200, own + "none": 404,
		s.URL() + "/debug/pprof/": 404, strings.Replace(own, "/debug/pprof/", "/metrics", 1): 404,
	} {
		if res, body := send(t, "GET", addr, "", "", ""); res.StatusCode != status {
			t.Errorf("%s: %s %.200s, want %d", addr, res.Status, body, status)
		}
	}
}

func TestNamesThatDeceiveAreRefusedEverywhere(t *testing.T) {
	t.Parallel()
	s := running(t)
	base := s.URL() + "/api/v1/orgs/main"
	const bad = `"Ada\u202egnp"`
	for _, c := range [][3]string{
		{"POST", "/members", `{"kind":"user","id":"ada","name":` + bad + `}`},
		{"POST", "/members", `{"kind":"service","id":"crm","name":` + bad + `}`},
		{"PATCH", "/members/user:admin", `{"name":` + bad + `}`},
		{"POST", "/agents", `{"id":"scout","name":` + bad + `}`},
		{"PATCH", "/agents/echo", `{"name":` + bad + `}`},
		{"POST", "/keys", `{"principal":"user:admin","scopes":["svc:tasks:read"],"name":` + bad + `}`},
		{"POST", "/invitations", `{"user":"ada","name":` + bad + `}`},
		{"POST", "/clients", `{"name":` + bad + `,"redirect_uris":["` + callback + `"]}`},
	} {
		if res, body := send(t, c[0], base+c[1], s.First().Secret, c[2], ""); res.StatusCode != 422 ||
			!strings.Contains(body, "U+202E") {
			t.Errorf("%s %s: %s %s", c[0], c[1], res.Status, body)
		}
	}
	res, body := send(t, "POST", s.URL()+"/oauth/register", "", `{"client_name":`+bad+`,"redirect_uris":["`+callback+`"]}`, "")
	if res.StatusCode != 400 || !strings.Contains(body, "U+202E") {
		t.Error(res.Status, body)
	}
	if _, body := s.admin(t).do("GET", "/account", nil); !strings.Contains(body, "<bdi>Admin</bdi>") {
		t.Error(body)
	}
}
