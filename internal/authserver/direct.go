package authserver

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/luikyv/go-oidc/pkg/goidc"

	"github.com/parley-dev/parley/internal/httpx"
)

// direct serves the endpoints that clients call directly, and corrects the responses of the
// library.
//
// Each IP address has a rate limit. A client that authenticates with a secret has one, too,
// independent of its address. It is charged after the secret was verified (see
// manager.verifySecret) and before any work is done: the id of a client is public, so a
// request that only names the client must not use up its budget. A wrong secret counts like a
// wrong key.
func (s *server) direct(w http.ResponseWriter, r *http.Request) {
	if err := s.limits.addresses.Take(s.router.ClientAddr(r).String()); err != nil {
		refuseCall(w, err)
		return
	}
	decodeBasic(r)
	if err := httpx.CheckLength(r, maxForm); err != nil {
		httpx.WriteError(w, r, err)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	var tooLarge *http.MaxBytesError
	if errors.As(r.ParseForm(), &tooLarge) { // the library responds to all other errors
		httpx.WriteError(w, r, httpx.ErrTooLarge(maxForm))
		return
	}
	proof := &proof{client: secretClient(r)}
	ctx := context.WithValue(r.Context(), styleKey{}, goidc.AuthnMethodSecretPost)
	ctx = context.WithValue(ctx, proofKey{}, proof)
	if _, _, ok := r.BasicAuth(); ok {
		ctx = context.WithValue(ctx, styleKey{}, goidc.AuthnMethodSecretBasic)
	}
	if r.URL.Path == TokenPath {
		ctx = context.WithValue(ctx, redeemKey{}, true)
	}
	b := &buffer{header: w.Header(), status: http.StatusOK}
	s.protocol.ServeHTTP(b, r.WithContext(ctx))
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case proof.refusal != nil:
		refuseCall(w, proof.refusal)
		return
	case b.status == http.StatusUnauthorized:
		if err := s.router.CountFailure(w.Header(), r); err != nil {
			refuseCall(w, err)
			return
		}
	}
	switch {
	case b.status == http.StatusForbidden && r.URL.Path == introspect:
		// A token that the client may not ask about is reported as inactive (RFC 7662, 2.2).
		b.status, b.body = http.StatusOK, *bytes.NewBufferString(`{"active":false}` + "\n")
	case b.status == http.StatusUnauthorized && bytes.Contains(b.body.Bytes(), []byte(`"unauthorized_client"`)):
		b.status = http.StatusBadRequest // RFC 6749, 5.2
	case b.status == http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Basic realm="Parley"`)
	}
	w.WriteHeader(b.status)
	_, _ = w.Write(b.body.Bytes()) // the client went away
}

// decodeBasic decodes the client credentials of an HTTP Basic header, which clients
// form-encode first (RFC 6749, 2.3.1). Some clients escape every character that is not a
// letter or a digit, including the "-" of our ids and the "_" of our secrets. Our ids and
// secrets contain neither "%" nor "+", so clients that do not encode work, too. What cannot be
// decoded belongs to no client.
func decodeBasic(r *http.Request) {
	id, secret, ok := r.BasicAuth()
	if !ok {
		return
	}
	plainID, badID := url.QueryUnescape(id)
	plainSecret, badSecret := url.QueryUnescape(secret)
	// A colon in the id would shift the border between id and secret. No client with a secret
	// has such an id, so the header stays as it is and is refused later.
	if badID != nil || badSecret != nil || strings.Contains(plainID, ":") {
		return
	}
	r.SetBasicAuth(plainID, plainSecret)
}

// proof carries the authentication of a request through the library.
type proof struct {
	client  string // id of the client
	refusal error  // set if the client has used up its budget
}

// buffer holds back a response of the library.
type buffer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (b *buffer) Header() http.Header         { return b.header }
func (b *buffer) WriteHeader(status int)      { b.status = status }
func (b *buffer) Write(p []byte) (int, error) { return b.body.Write(p) }
