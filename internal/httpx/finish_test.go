package httpx

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
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
