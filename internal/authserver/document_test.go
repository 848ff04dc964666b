package authserver

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/outbound"
)

// reader reads documents of the site, and from where else the list says.
func reader(t *testing.T, site *httptest.Server, allow ...string) *server {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(site.Certificate())
	g, err := outbound.New(outbound.Options{Allow: allow, Flag: "--client-documents-allow", TLS: &tls.Config{RootCAs: roots}})
	if err != nil {
		t.Fatal(err)
	}
	return &server{Options: Options{Documents: g, Logger: slog.Default()}, documents: g.Client(documentTimeout)}
}

func TestDocumentsAreReadWithCare(t *testing.T) {
	t.Parallel()
	var site *httptest.Server
	var elsewhere atomic.Bool
	site = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := site.URL + r.URL.Path
		kind, body := "application/json", fmt.Sprintf(`{"client_id":%q,"client_name":"App","redirect_uris":["https://app.example/done"]}`, id)
		switch r.URL.Path {
		case "/plus":
			kind = "application/vnd.app+json; charset=utf-8"
		case "/page":
			kind = "text/html"
		case "/untyped":
			kind = ""
		case "/moved":
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return
		case "/elsewhere":
			elsewhere.Store(true)
		case "/gone":
			w.WriteHeader(http.StatusGone)
			return
		case "/other":
			body = strings.Replace(body, id, site.URL+"/fine", 1)
		case "/nameless":
			body = `{"redirect_uris":["https://app.example/done"]}`
		case "/secret":
			body = strings.Replace(body, "{", `{"client_secret":"x",`, 1)
		case "/broken":
			body = body[:20]
		case "/list":
			body = "[" + body + "]"
		case "/large":
			body = strings.Replace(body, "App", strings.Repeat("x", maxDocument), 1)
		case "/cut":
			w.Header().Set("Content-Length", "5000")
		}
		w.Header()["Content-Type"] = []string{kind}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(site.Close)
	s := reader(t, site, "127.0.0.1")
	for path, says := range map[string]string{
		"/fine": "", "/plus": "",
		"/page": "not application/json", "/untyped": "not application/json", "/moved": "redirects are not followed",
		"/gone":  "410",
		"/other": "not its own URL", "/nameless": "not its own URL", "/secret": "client_secret", "/broken": "JSON object",
		"/list": "JSON object", "/large": "larger than", "/cut": "could not be reached",
	} {
		m, err := s.readDocument(t.Context(), site.URL+path)
		switch {
		case says == "" && (err != nil || m.ClientName != "App" || len(m.RedirectURIs) != 1):
			t.Errorf("%s: %+v %v", path, m, err)
		case says != "" && (errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), site.URL)):
			t.Errorf("%s: %v", path, err)
		}
	}
	if elsewhere.Load() {
		t.Error("the redirect was followed")
	}
	// What is not public is not asked, by its number or by a name that leads there.
	closed := reader(t, site)
	for _, address := range []string{
		site.URL + "/fine", "https://localhost/fine", "https://10.0.0.1/fine",
		"https://[::1]/fine",
	} {
		if _, err := closed.readDocument(t.Context(), address); err == nil ||
			!strings.Contains(err.Error(), "--client-documents-allow") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := s.readDocument(t.Context(), "https://127.0.0.1:1/fine"); err == nil ||
		!strings.Contains(err.Error(), "could not be reached") {
		t.Error(err)
	}
}
