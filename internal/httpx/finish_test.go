package httpx

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-dev/parley/internal/errs"
)

// An invitation's address is a secret, and so it is not logged.
func TestTheTokenOfAnInvitationIsNotLogged(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	rt := NewRouter(Options{Authenticator: known{}, AccessLog: true, Logger: slog.New(slog.NewTextHandler(&logs, nil))})
	rt.HandlePublic("GET /join/{token}", http.NotFoundHandler())
	send(rt, "GET", "/join/s3cret")
	send(rt, "GET", "/join/s3cret/")
	send(rt, "POST", "/join/s3cret")
	send(rt, "GET", "/setup/s3cret")
	send(rt, "POST", "/oauth/authorize/s3cret")
	if got := logs.String(); strings.Contains(got, "s3cret") || strings.Count(got, "/join/") < 3 {
		t.Errorf("logged: %s", got)
	}
}

// What a handler refuses because the server is busy is shed, as what the router refuses:
// it is counted, and the log has few lines of it. A failure beside it is still logged.
func TestRefusalsOfABusyHandlerAreShed(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	reg := prometheus.NewRegistry()
	rt := NewRouter(Options{Authenticator: known{}, Registerer: reg, Logger: slog.New(slog.NewTextHandler(&logs, nil))})
	for _, code := range []string{"server.busy", "search.busy"} {
		rt.HandlePublic("GET /"+code, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			WriteError(w, r, errs.New(errs.Unavailable, code, "later"))
		}))
		for range 20 {
			send(rt, "GET", "/"+code)
		}
	}
	if got := logs.String(); strings.Contains(got, "level=ERROR") || strings.Count(got, "\n") != 1 {
		t.Errorf("logged: %s", got)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "parley_http_requests_shed_total" {
				counted[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	if counted["memory"] != 20 || counted["search"] != 20 || counted["overload"] != 0 {
		t.Errorf("counted: %v; want 20 of memory and 20 of search", counted)
	}
	rt.HandlePublic("GET /both", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = NewProblem(r.Context(), errs.New(errs.Unavailable, "server.busy", "later"))
		_ = NewProblem(r.Context(), errors.New("the disk is gone"))
	}))
	send(rt, "GET", "/both")
	if got := logs.String(); !strings.Contains(got, "the disk is gone") {
		t.Errorf("a failure beside a refusal was not logged: %s", got)
	}
}
