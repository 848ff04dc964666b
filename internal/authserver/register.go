package authserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/oauth"
)

// clientMetadata is the client metadata of RFC 7591, as far as it is supported.
type clientMetadata struct {
	ClientID              string   `json:"client_id,omitempty"`
	ClientIDIssuedAt      int64    `json:"client_id_issued_at,omitempty"`
	ClientSecret          string   `json:"client_secret,omitempty"`
	ClientSecretExpiresAt *int     `json:"client_secret_expires_at,omitempty"`
	ClientName            string   `json:"client_name,omitempty"`
	RedirectURIs          []string `json:"redirect_uris"`
	GrantTypes            []string `json:"grant_types,omitempty"`
	ResponseTypes         []string `json:"response_types,omitempty"`
	AuthMethod            string   `json:"token_endpoint_auth_method,omitempty"`
	Scope                 string   `json:"scope,omitempty"`
}

func (m *clientMetadata) registration() oauth.Registration {
	return oauth.Registration{
		Name: m.ClientName, RedirectURIs: m.RedirectURIs, GrantTypes: m.GrantTypes, ResponseTypes: m.ResponseTypes,
		Method: oauth.Method(m.AuthMethod), Scope: m.Scope,
	}
}

type protocolError struct {
	Error       string `json:"error"`
	Description string `json:"error_description,omitempty"`
}

// register is the dynamic client registration endpoint (RFC 7591). The endpoint of the library
// is not used: it allows client_credentials and any scope, and stores tokens in clear.
func (s *server) register(w http.ResponseWriter, r *http.Request) {
	if err := s.registers.Take(s.router.ClientAddr(r).String()); err != nil {
		httpx.WriteError(w, r, err)
		return
	}
	if err := httpx.CheckLength(r, maxForm); err != nil {
		httpx.WriteError(w, r, err)
		return
	}
	var m clientMetadata
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxForm)).Decode(&m); err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			httpx.WriteError(w, r, httpx.ErrTooLarge(maxForm))
			return
		}
		writeJSON(w, http.StatusBadRequest, protocolError{"invalid_client_metadata", "the body must be a JSON object"})
		return
	}
	c, secret, err := s.Service.Register(r.Context(), m.registration())
	if err != nil {
		if errs.KindOf(err) != errs.Invalid {
			httpx.WriteError(w, r, err)
			return
		}
		known := errs.As(err)
		code := "invalid_client_metadata"
		if strings.HasSuffix(known.Code, "bad_redirect_uri") {
			code = "invalid_redirect_uri"
		}
		writeJSON(w, http.StatusBadRequest, protocolError{code, known.Message})
		return
	}
	out := clientMetadata{
		ClientID: c.ID, ClientIDIssuedAt: c.CreatedAt.Unix(), ClientSecret: secret,
		ClientName: c.Name, RedirectURIs: c.RedirectURIs,
		GrantTypes: []string{oauth.AuthorizationCode, oauth.RefreshToken}, ResponseTypes: []string{"code"},
		AuthMethod: string(c.Method), Scope: c.Scopes.String(),
	}
	if secret != "" {
		out.ClientSecretExpiresAt = new(int) // 0: never
	}
	writeJSON(w, http.StatusCreated, out)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client went away
}
