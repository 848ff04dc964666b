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
		"not found":      {errs.ErrNotFound, codeNoTask, `"resource.not_found"`, false},
		"not cancelable": {errs.New(errs.Conflict, task.CodeNotCancelable, "x"), codeNotCancelable, task.CodeNotCancelable, false},
		"terminal":       {errs.New(errs.Conflict, task.CodeTerminal, "x"), codeUnsupported, task.CodeTerminal, false},
		"too large":      {errs.New(errs.TooLarge, task.CodeTooLarge, "the limit is 7"), codeInvalidParams, task.CodeTooLarge, false},
		"fields":         {errs.InvalidFields(errs.Field{Name: "/a", Message: "b"}), codeInvalidParams, `[{"pointer":"/a","detail":"b"}]`, false},
		"rate":           {errs.New(errs.RateLimited, "request.rate_limited", "x"), codeInvalidRequest, "request.rate_limited", false},
		"share":          {errs.New(errs.RateLimited, task.CodeSenderShare, "x"), codeUnsupported, task.CodeSenderShare, false},
		"quota":          {errs.New(errs.Conflict, "quota.stored_tasks", "x"), codeUnsupported, "quota.stored_tasks", false},
		"unavailable":    {errs.New(errs.Unavailable, "store.unavailable", "x"), codeInternal, "store.unavailable", true},
		"ours":           {errors.New("secret detail"), codeInternal, `"internal"`, true},
		"own":            {newError(codeUnsupported, "x"), codeUnsupported, "", false},
	} {
		logs := &orgtest.Log{}
		rt := httpx.NewRouter(httpx.Options{Logger: slog.New(slog.NewTextHandler(logs, nil))})
		var got string
		rt.HandlePublic("GET /x", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			e := errorOf(r.Context(), c.err)
			if e.code != c.code {
				t.Errorf("%s: %d", name, e.code)
			}
			got = string(appendError(nil, nullID, e))
		}))
		rt.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil))
		if !strings.Contains(got, c.data) || strings.Contains(got, "secret") {
			t.Errorf("%s: %s", name, got)
		}
		// Answered with 200, a failure of ours would go unnoticed but for the log.
		if logged := strings.Contains(logs.String(), "request failed"); logged != c.log {
			t.Errorf("%s: logged %v", name, logged)
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
		"live":   {limited, 429, codes.ResourceExhausted, "7", `"status":"RESOURCE_EXHAUSTED"`},
		"stored": {errs.New(errs.Conflict, task.CodeStoredTasks, "x"), 409, codes.FailedPrecondition, "", `"status":"FAILED_PRECONDITION"`},
	} {
		rt := httpx.NewRouter(httpx.Options{Logger: slog.New(slog.DiscardHandler)})
		rt.HandlePublic("GET /x", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			e := errorOf(r.Context(), c.err)
			if got := grpcStatus(e); got.Code() != c.code {
				t.Errorf("%s: gRPC %v", name, got)
			}
			writeRESTError(w, r, 0, e)
		}))
		w := httptest.NewRecorder()
		rt.ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
		code := `"code":"` + errs.As(c.err).Code + `"`
		if b := w.Body.String(); w.Code != c.status || w.Header().Get("Retry-After") != c.retry || !strings.Contains(b, c.body) ||
			!strings.Contains(b, code) || !strings.Contains(b, `"domain":"parley"`) {
			t.Errorf("%s: %d %v %s", name, w.Code, w.Header(), b)
		}
	}
}
