package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealthSaysWhetherAServerIsReady(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /good/readyz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /bad/readyz", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"title":"Unavailable","detail":"the server is stopping"}`))
	})
	mux.HandleFunc("GET /moved/readyz", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/good/readyz", http.StatusFound)
	})
	mux.HandleFunc("GET /slow/readyz", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	plain, secure := httptest.NewServer(mux), httptest.NewTLSServer(mux)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string // parts
	}{
		{[]string{"--server", plain.URL + "/good"}, exitOK, "/good is ready\n", ""},
		{[]string{"--server", plain.URL + "/good", "--json"}, exitOK, `"ready": true`, ""},
		{[]string{"--server", secure.URL + "/good/"}, exitOK, "/good is ready\n", ""}, // on this machine
		{[]string{"--server", plain.URL + "/bad"}, exitFailed, "", "/bad is not ready: the server is stopping\n"},
		{[]string{"--server", plain.URL + "/bad", "--json"}, exitFailed, `"reason": "the server is stopping"`, "not ready"},
		{[]string{"--server", plain.URL + "/moved"}, exitFailed, "", "it responds with 302 Found"},
		{[]string{"--server", plain.URL + "/slow", "--timeout", "20ms"}, exitFailed, "", "it did not respond in time"},
		{[]string{"--server", "http://127.0.0.1:1", "--json"}, exitFailed, `"ready": false`, "connection refused"},
		{[]string{"--server", "127.0.0.1:1"}, exitUsage, "", "--server must start with http://"},
		{[]string{"--server", plain.URL, "--timeout", "0s"}, exitUsage, "", "--timeout must be more than 0"},
	} {
		code, stdout, stderr := run(t, append([]string{"health"}, c.args...)...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) ||
			(c.stdout == "") != (stdout == "") || (c.stderr == "") != (stderr == "") {
			t.Errorf("health %v: code %d, stdout %q, stderr %q; want %+v", c.args, code, stdout, stderr, c)
		}
	}
}

func TestHealthFindsTheServerOfThisMachine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{nil, "http://127.0.0.1:8080"},
		{map[string]string{"PARLEY_LISTEN": ":9000"}, "http://127.0.0.1:9000"},
		{map[string]string{"PARLEY_LISTEN": "0.0.0.0:9000"}, "http://127.0.0.1:9000"},
		{map[string]string{"PARLEY_LISTEN": "[::]:9000"}, "http://127.0.0.1:9000"},
		{map[string]string{"PARLEY_LISTEN": "[::1]:9000"}, "http://[::1]:9000"},
		{map[string]string{"PARLEY_LISTEN": ":8443", "PARLEY_TLS_CERT": "cert.pem"}, "https://127.0.0.1:8443"},
		{map[string]string{"PARLEY_TLS_CERT": "cert.pem"}, "https://127.0.0.1:8080"},
		{map[string]string{"PARLEY_ACME": "parley.example"}, "https://127.0.0.1:443"},
		{map[string]string{"PARLEY_ACME": "parley.example", "PARLEY_LISTEN": ":8443"}, "https://127.0.0.1:8443"},
	} {
		if got := ownServer(func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("ownServer(%v) = %s, want %s", c.env, got, c.want)
		}
	}
}
