package a2a

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/orgtest"
	"github.com/parley-dev/parley/internal/task"
)

func TestErrorsHaveOneMapping(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		code int
		data string
		log  bool
	}{
		"not found": {errs.ErrNotFound, codeNoTask, `"resource.not_found"`, false},
		"not cancelable": {
			errs.New(errs.Conflict, task.CodeNotCancelable, "x"), codeNotCancelable, task.CodeNotCancelable, false,
		},
		"terminal": {errs.New(errs.Conflict, task.CodeTerminal, "x"), codeUnsupported, task.CodeTerminal, false},
		"too large": {
			errs.New(errs.TooLarge, task.CodeTooLarge, "the limit is 7"), codeInvalidParams, task.CodeTooLarge, false,
		},
		"fields": {
			errs.InvalidFields(errs.Field{Path: errs.At("a"), Message: "b"}), codeInvalidParams,
			`[{"pointer":"/a","detail":"b"}]`, false,
		},
		"rate": {
			errs.New(errs.RateLimited, "request.rate_limited", "x"), codeInvalidRequest, "request.rate_limited", false,
		},
		"share": {
			errs.New(errs.RateLimited, dispatch.CodeSenderShare, "x"), codeUnsupported, dispatch.CodeSenderShare, false,
		},
		"quota": {
			errs.New(errs.Conflict, "quota.stored_tasks", "x"), codeUnsupported, "quota.stored_tasks", false,
		},
		"unavailable": {errs.New(errs.Unavailable, "store.unavailable", "x"), codeInternal, "store.unavailable", true},
		"ours":        {errors.New("secret detail"), codeInternal, `"internal"`, true},
		"own":         {newError(codeUnsupported, "x"), codeUnsupported, "", false},
	} {
		logs := &orgtest.Log{}
		rt := httpx.NewRouter(httpx.Options{Logger: slog.New(slog.NewTextHandler(logs, nil))})
		var got string
		rt.HandlePublic("GET /x", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			e := errorOf(r.Context(), c.err)
			if e.code != c.code {
				t.Errorf("%s: code = %d, want %d", name, e.code, c.code)
			}
			got = string(appendError(nil, nullID, e))
		}))
		rt.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil))
		if !strings.Contains(got, c.data) || strings.Contains(got, "secret") {
			t.Errorf("%s: got %s, want %s without the cause", name, got, c.data)
		}
		// The HTTP status is 200, so only the log shows a server error.
		if logged := strings.Contains(logs.String(), "request failed"); logged != c.log {
			t.Errorf("%s: logged = %v, want %v", name, logged, c.log)
		}
	}
}

// The other bindings show a quota with its HTTP status and its own code.
func TestQuotasInEveryBinding(t *testing.T) {
	t.Parallel()
	limited := errs.New(errs.RateLimited, task.CodeLiveTasks, "x")
	limited.RetryAfter = 7 * time.Second
	for name, c := range map[string]struct {
		err    error
		status int
		code   codes.Code
		retry  string
		body   string
	}{
		"live": {limited, 429, codes.ResourceExhausted, "7", `"status":"RESOURCE_EXHAUSTED"`},
		"stored": {
			errs.New(errs.Conflict, task.CodeStoredTasks, "x"), 409, codes.FailedPrecondition, "",
			`"status":"FAILED_PRECONDITION"`,
		},
	} {
		rt := httpx.NewRouter(httpx.Options{Logger: slog.New(slog.DiscardHandler)})
		rt.HandlePublic("GET /x", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			e := errorOf(r.Context(), c.err)
			if got := grpcStatus(e); got.Code() != c.code {
				t.Errorf("%s: gRPC status = %v, want %v", name, got, c.code)
			}
			writeRESTError(w, r, 0, e)
		}))
		w := httptest.NewRecorder()
		rt.ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
		code := `"code":"` + errs.As(c.err).Code + `"`
		if b := w.Body.String(); w.Code != c.status || w.Header().Get("Retry-After") != c.retry ||
			!strings.Contains(b, c.body) || !strings.Contains(b, code) || !strings.Contains(b, `"domain":"parley"`) {
			t.Errorf("%s: got %d %v %s, want %d with %s", name, w.Code, w.Header(), b, c.status, c.body)
		}
	}
}

// A client that names a version gets all errors in the form of 1.0, including those before a method
// runs.
func TestErrorsBeforeAMethodAreOfficial(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	none := w.key("acme", "user:bob", "svc:tasks:read")
	for name, c := range map[string]struct {
		secret, target, body string
		reason, domain, code string
	}{
		"no JSON": {ada, "/a2a/bot", "{", "PARSE_ERROR", errorDomain, ""},
		"no request": {
			ada, "/a2a/bot", `{"jsonrpc":"1.0","id":1,"method":"GetTask"}`, "INVALID_REQUEST", errorDomain, "",
		},
		"no method": {ada, "/a2a/bot", envelope("Nonesuch", "{}"), "METHOD_NOT_FOUND", errorDomain, ""},
		"in a batch": {
			ada, "/a2a/bot", "[" + envelope("SubscribeToTask", `{"id":"x"}`) + "]",
			"UNSUPPORTED_OPERATION", errorDomain, "",
		},
		"no credentials":  {"", "/a2a/bot", envelope("GetTask", "{}"), "UNAUTHENTICATED", errorDomain, "auth.missing"},
		"bad credentials": {"x", "/a2a/bot", envelope("GetTask", "{}"), "UNAUTHENTICATED", errorDomain, "auth.invalid"},
		"no right": {
			none, "/a2a/bot", envelope("GetTask", "{}"), "UNAUTHORIZED", errorDomain, "auth.scope_missing",
		},
		"no agent": {
			ada, "/a2a/nobody", envelope("GetTask", "{}"), "RESOURCE_NOT_FOUND", ownDomain, "resource.not_found",
		},
		"too large": {
			ada, "/a2a/bot", strings.Repeat(" ", maxBody+1), "REQUEST_TOO_LARGE", ownDomain, "request.too_large",
		},
	} {
		official := w.do(c.secret, "POST", c.target, c.body, "A2A-Version", "1.0")
		official.contains(`"data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"` + c.reason +
			`","domain":"` + c.domain + `"`)
		if c.code == "" {
			continue
		}
		official.contains(`"metadata":{"code":"` + c.code + `"`)
		plain := w.do(c.secret, "POST", c.target, c.body)
		if plain.contains(`"data":{"code":"` + c.code + `"`); plain.Status != official.Status {
			t.Errorf("%s: status = %d without a version, want %d", name, plain.Status, official.Status)
		}
	}
}

// The error table of 1.0.1, and the media type of 1.0, in the HTTP+JSON binding.
func TestRESTErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	w.rpc(ada, "bot", "tasks/send", hello("t-1")).state("submitted")
	w.rpc(ada, "bot", "tasks/cancel", `{"id":"t-1"}`).state("canceled")
	for _, c := range []struct{ method, path, body, media, reason string }{
		{"POST", "tasks/t-1:cancel", "", "", "TASK_NOT_CANCELABLE"},
		{"POST", "message:send", "x", "text/plain", "CONTENT_TYPE_NOT_SUPPORTED"},
		{"GET", "tasks?A2A-Version=7.0", "", "", "VERSION_NOT_SUPPORTED"},
	} {
		for _, prefix := range []string{"", "v1/"} {
			a := w.do(ada, c.method, "/a2a/bot/"+prefix+c.path, c.body, "Content-Type", c.media)
			a.contains(`"reason":"` + c.reason + `"`)
			if a.Status != 400 || a.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: status = %d, want 400 in JSON: %v", prefix+c.path, a.Status, a.Header)
			}
		}
	}
	for path, media := range map[string]string{
		"tasks/t-1": "application/a2a+json", "bot/tasks/t-1": "application/a2a+json",
		"v1/tasks/t-1": "application/json", "bot/v1/tasks/t-1": "application/json",
	} {
		if a := w.do(ada, "GET", "/a2a/bot/"+path, ""); a.Status != 200 || a.Header.Get("Content-Type") != media {
			t.Errorf("%s: status = %d, want 200 in %s: %v", path, a.Status, media, a.Header)
		}
	}
	a := w.do(ada, "POST", "/a2a/bot/message:send", atOnce(v1Hello("")), "Content-Type", "application/a2a+json")
	a.status(200)
}
