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

// direct serves what clients call themselves, and puts right how the library answers.
//
// Each address has a budget of requests. A client that authenticates with a secret has
// one, too, wherever it calls from. It is charged when the secret has been verified (see
// manager.verifySecret) and before any work is done: its id is no secret, so a request
// that only names the client must not use up its budget. A wrong secret counts as a bad
// key does.
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
	if errors.As(r.ParseForm(), &tooLarge) { // the library sees and answers whatever else is wrong with it
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
		// What a client may not know about does not exist for it (RFC 7662, 2.2).
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
// form-encode first (RFC 6749, 2.3.1): some escape every character that is not a letter
// or a digit, also the "-" of our ids and the "_" of our secrets. Ids and secrets of this
// server contain neither "%" nor "+", so those of clients that do not encode are read
// alike, and what cannot be decoded names no client.
func decodeBasic(r *http.Request) {
	id, secret, ok := r.BasicAuth()
	if !ok {
		return
	}
	plainID, badID := url.QueryUnescape(id)
	plainSecret, badSecret := url.QueryUnescape(secret)
	// A colon in an id would move the border between id and secret. No client with a
	// secret has such an id, so the header is left as it is, and refused.
	if badID != nil || badSecret != nil || strings.Contains(plainID, ":") {
		return
	}
	r.SetBasicAuth(plainID, plainSecret)
}

// proof follows the authentication of one request through the library.
type proof struct {
	client  string // that the request authenticates as
	refusal error  // set: the client has used up its budget
}

// buffer holds an answer back until it is known.
type buffer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (b *buffer) Header() http.Header         { return b.header }
func (b *buffer) WriteHeader(status int)      { b.status = status }
func (b *buffer) Write(p []byte) (int, error) { return b.body.Write(p) }
