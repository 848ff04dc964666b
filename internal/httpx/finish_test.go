package httpx

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-dev/parley/internal/errs"
)

// A disconnected client is not a server error, whatever error its request fails with; a bug still
// is.
func TestAClientsDisconnectIsNoError(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		context.Canceled: false,
		errs.Wrap(context.Canceled, errs.Internal, "x", "x"):         false,
		errs.New(errs.Unavailable, "store.unavailable", "try later"): false,
		errors.New("a bug"): true,
	} {
		var logs bytes.Buffer
		rt := NewRouter(Options{Authenticator: known{}, Logger: slog.New(slog.NewTextHandler(&logs, nil))})
		ctx, cancel := context.WithCancel(t.Context())
		rt.HandlePublic("GET /x", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			cancel()
			WriteError(w, r, err)
		}))
		rt.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/x", nil))
		if got := strings.Contains(logs.String(), "level=ERROR"); got != want {
			t.Errorf("%v: logged as an error = %v, want %v: %s", err, got, want, &logs)
		}
	}
}

// net/http logs a second WriteHeader; the recorder prevents that.
func TestTheFirstStatusCounts(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	rt := NewRouter(Options{Authenticator: known{}})
	rt.HandlePublic("GET /x", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = w.Write([]byte("half"))
		WriteError(w, r, errors.New("too late"))
	}))
	srv := httptest.NewUnstartedServer(rt)
	srv.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(&logs, nil), slog.LevelWarn)
	srv.Start()
	res, err := http.Get(srv.URL + "/x")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	srv.Close()
	if res.StatusCode != http.StatusOK || logs.Len() > 0 {
		t.Errorf("status = %s, want 200; log = %q, want none", res.Status, &logs)
	}
}

// The URL of an invitation contains a secret, which must not be logged.
func TestTheTokenOfAnInvitationIsNotLogged(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	rt := NewRouter(Options{Authenticator: known{}, AccessLog: true, Logger: slog.New(slog.NewTextHandler(&logs, nil))})
	rt.Area(Area{Secret: true}, "/join/", "/setup/", "/answer/")
	rt.HandlePublic("GET /join/{token}", http.NotFoundHandler())
	send(rt, "GET", "/join/s3cret")
	send(rt, "GET", "/join/s3cret/")
	send(rt, "POST", "/join/s3cret")
	send(rt, "GET", "/setup/s3cret")
	send(rt, "POST", "/answer/s3cret")
	if got := logs.String(); strings.Contains(got, "s3cret") || strings.Count(got, "/join/") < 3 {
		t.Errorf("log = %s, want /join/ without the token", got)
	}
}

// A refusal of a handler because the server is busy counts as shed, like the router's own refusals,
// and few of them are logged. Other failures are still logged.
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
		t.Errorf("log = %s, want one line without errors", got)
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
		t.Errorf("counted = %v, want 20 of memory and 20 of search", counted)
	}
	rt.HandlePublic("GET /both", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = NewProblem(r.Context(), errs.New(errs.Unavailable, "server.busy", "later"))
		_ = NewProblem(r.Context(), errors.New("the disk is gone"))
	}))
	send(rt, "GET", "/both")
	if got := logs.String(); !strings.Contains(got, "the disk is gone") {
		t.Errorf("log = %s, want the failure next to the refusal", got)
	}
}
