package authserver

import (
	"encoding/json"
	"net/http"

	"github.com/parley-dev/parley/internal/oauth"
)

// serverDocument returns the metadata of the authorization server (RFC 8414).
func (s *server) serverDocument() any {
	methods := []string{string(oauth.Public), string(oauth.SecretBasic), string(oauth.SecretPost)}
	return map[string]any{
		"issuer":                   s.Issuer,
		"authorization_endpoint":   s.Issuer + AuthorizePath,
		"token_endpoint":           s.Issuer + TokenPath,
		"introspection_endpoint":   s.Issuer + introspect,
		"revocation_endpoint":      s.Issuer + revokePath,
		"registration_endpoint":    s.Issuer + registerPath,
		"scopes_supported":         oauth.Registrable,
		"response_types_supported": []string{"code"},
		"response_modes_supported": []string{"query"},
		"grant_types_supported": []string{
			oauth.AuthorizationCode, oauth.RefreshToken, oauth.ClientCredentials,
		},
		"code_challenge_methods_supported":               []string{"S256"},
		"token_endpoint_auth_methods_supported":          methods,
		"revocation_endpoint_auth_methods_supported":     methods,
		"introspection_endpoint_auth_methods_supported":  methods[1:],
		"authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported":          s.Documents != nil,
		"service_documentation":                          s.Issuer + "/docs",
	}
}

// resourceDocument returns the metadata of the service, or of one path, as a protected
// resource (RFC 9728).
func (s *server) resourceDocument(path string) any {
	return map[string]any{
		"resource":                 s.Issuer + path,
		"authorization_servers":    append([]string{s.Issuer}, s.Others...),
		"scopes_supported":         oauth.Registrable,
		"bearer_methods_supported": []string{"header"},
		"resource_name":            "Parley",
		"resource_documentation":   s.Issuer + "/docs",
	}
}

// document serves a document that does not change while the server runs. Pages of other
// origins may read it.
func document(v any) http.Handler {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic("authserver: a document cannot be encoded: " + err.Error()) // found at the start
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Cache-Control", "public, max-age=3600")
		h.Set("Access-Control-Allow-Origin", "*")
		_, _ = w.Write(body) // the client went away
	})
}
