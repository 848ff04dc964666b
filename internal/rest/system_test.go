package rest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
)

func TestWhatNeedsNoKey(t *testing.T) {
	t.Parallel()
	down := errors.New("the disk is gone")
	var state error
	w := newWorld(t, func(_ *httpx.Options, o *Options) {
		o.Ready = func(context.Context) error { return state }
		o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("metrics")) })
	})
	for path, want := range map[string]string{
		"/healthz":      `{"status":"ok"}`,
		"/readyz":       `{"status":"ready"}`,
		"/metrics":      "metrics",
		"/openapi.json": `"openapi":"3.1.0"`,
		"/openapi.yaml": "openapi: 3.1.0",
		"/docs":         "<!doctype html>",
	} {
		if res := w.do("", "GET", path, "").want(200); !strings.Contains(res.Body, want) {
			t.Errorf("%s: got %.200s, want containing %s", path, res.Body, want)
		}
		w.do("", "GET", path, "", "Authorization", "Bearer of bad news").want(200)
		w.do("", "HEAD", path, "").want(200)
		res := w.do("", "POST", path, "{}").want(405)
		if p := res.problem(); p.Code != "request.method_not_allowed" || res.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: got %+v, Allow %q; want request.method_not_allowed, GET, HEAD", path, p, res.Header.Get("Allow"))
		}
	}
	state = down
	res := w.do("", "GET", "/readyz", "").want(503)
	if p := res.problem(); strings.Contains(p.Detail, "disk") || res.Header.Get("Retry-After") == "" {
		t.Errorf("got %+v %v, want without disk, Retry-After not empty", p, res.Header)
	}
	if !strings.Contains(w.logs.String(), "the disk is gone") {
		t.Error("the cause is not in the log")
	}
	// A public reason is shown.
	state = errs.New(errs.Unavailable, "store.migrated", "restart this node")
	if p := w.do("", "GET", "/readyz", "").want(503).problem(); p.Code != "store.migrated" ||
		p.Detail != "restart this node" {
		t.Errorf("got %+v, want Code store.migrated, Detail restart this node", p)
	}
	w.do("", "GET", "/healthz", "").want(200)
}

func TestUnknownPathsAreProblemsAndNeverRedirects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	for _, target := range []string{
		"/nope", "/api", "/api/v1", "/api/v1/orgs", "/api/v1/orgs/acme", "/api/v2/orgs/acme/proposals",
		proposals + "/", "/api/v1//orgs/acme/proposals", "/api/v1/./orgs/acme/proposals", "/api/v1/x/../orgs/acme/proposals",
		"/api/v1/orgs/acme%2Fproposals", "/api/v1/orgs/%2e%2e/proposals", "/api/v1/orgs//proposals", "//", "/docs/",
		"/healthz/",
		proposals + "/" + newID("prop-") + "/nope", "/%00", "/api/v1/orgs/acme/proposals%00",
		"/api/v1/orgs/acme/../globex/proposals",
	} {
		res := w.do(ada, "GET", target, "").want(404)
		if p := res.problem(); p.Code != "resource.not_found" {
			t.Errorf("%s: got %+v, want Code resource.not_found", target, p)
		}
	}
	for target, allow := range map[string]string{
		proposals:                                  "GET, HEAD, POST",
		proposals + "/" + newID("prop-"):           "GET, HEAD, PATCH",
		proposals + "/" + newID("prop-") + "/vote": "POST, DELETE",
	} {
		for _, method := range []string{"PUT", "OPTIONS", "TRACE", "FOO"} {
			if res := w.do(ada, method, target, "").want(405); res.Header.Get("Allow") != allow {
				t.Errorf("%s %s: Allow %q, want %q", method, target, res.Header.Get("Allow"), allow)
			}
		}
	}
}

func TestEveryAnswerHasItsHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	for _, target := range []string{proposals, proposals + "?page=0", "/nope", "/healthz", "/docs"} {
		res := w.do(ada, "GET", target, "", "X-Request-Id", "my.id_1-x")
		if res.Header.Get("X-Request-Id") != "my.id_1-x" || res.Header.Get("X-Content-Type-Options") != "nosniff" ||
			res.Header.Get("Content-Security-Policy") == "" || res.Header.Get("Cache-Control") == "" {
			t.Errorf("%s: got %v, want the request id and the security headers", target, res.Header)
		}
	}
}
