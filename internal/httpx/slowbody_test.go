package httpx

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// fickle authenticates until its caller changes.
type fickle struct {
	caller atomic.Pointer[identity.Caller]
}

func (f *fickle) Authenticate(context.Context, string) (*identity.Caller, error) {
	if c := f.caller.Load(); c != nil {
		return c, nil
	}
	return nil, errs.New(errs.Unauthenticated, "auth.unknown", "the key is unknown")
}

// A client that sends its body slowly cannot act after its rights ended.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	ann := identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"}
	admin := &identity.Caller{Principal: ann, KeyID: "key-1", Scopes: identity.AllScopes}
	member := &identity.Caller{Principal: ann, KeyID: "key-1", Scopes: identity.Scopes{identity.TasksRead}}
	for _, c := range []struct {
		name  string
		later *identity.Caller
		pause time.Duration
		code  string
	}{
		{"unchanged", admin, 5 * time.Second, ""},
		{"revoked at once", nil, 0, ""}, // the request was complete before
		{"revoked", nil, 2 * time.Second, "auth.unknown"},
		{"demoted", member, 2 * time.Second, "auth.changed"},
	} {
		auth := &fickle{}
		auth.caller.Store(admin)
		now := time.Now()
		var passed atomic.Int64
		rt := NewRouter(Options{
			Authenticator: auth, Logger: quiet(),
			Now: func() time.Time { return now.Add(time.Duration(passed.Load())) },
		})
		var got string
		rt.Handle("POST /x", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			if err != nil {
				got = errs.As(err).Code
			}
		}))
		body, send := io.Pipe()
		r := httptest.NewRequest("POST", "/x", body)
		r.ContentLength = 8
		r.Header.Set("Authorization", "Bearer x")
		go func() {
			_, _ = io.Copy(send, strings.NewReader("half"))
			auth.caller.Store(c.later)
			passed.Add(int64(c.pause))
			_, _ = io.Copy(send, strings.NewReader("done"))
			_ = send.Close()
		}()
		rt.ServeHTTP(httptest.NewRecorder(), r)
		if got != c.code {
			t.Errorf("%s: the handler got the error %q, want %q", c.name, got, c.code)
		}
	}
}
