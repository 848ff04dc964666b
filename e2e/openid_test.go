package e2e

import (
	"encoding/json"
	"net/http"
	"testing"
)

// TestOpenIDClientAuthenticatesWithHTTPBasic runs a certified OAuth client, which form-encodes its
// credentials as RFC 6749 requires: for a service, and for a person.
func TestOpenIDClientAuthenticatesWithHTTPBasic(t *testing.T) {
	t.Parallel()
	dir := nodePackages(t, "openid")
	eachEngine(t, func(t *testing.T, e engine) {
		s := serve(t, e, "--rate-limit", "0")
		admin := s.firstAdmin(t)
		s.cli(t, "service", "create", "crm", "--org", "main")
		var key struct{ ID, Secret string }
		if err := json.Unmarshal([]byte(s.cli(t, "key", "create", "--org", "main", "--as", "service:crm", "--scope",
			"svc:tasks:read", "--json")), &key); err != nil {
			t.Fatal(err)
		}
		var client struct{ ID, Secret string }
		made := request(t, s.key, http.MethodPost, s.base+"/api/v1/orgs/main/clients",
			`{"name":"Reports","redirect_uris":["`+callback+`"],"method":"client_secret_basic"}`)
		if err := json.Unmarshal(made, &client); err != nil {
			t.Fatal(err)
		}
		admin.guide(t, dir, "client.mjs", 7, []string{
			"PARLEY_URL=" + s.base, "PARLEY_KEY_ID=" + key.ID, "PARLEY_KEY=" + key.Secret,
			"PARLEY_CLIENT_ID=" + client.ID, "PARLEY_CLIENT_SECRET=" + client.Secret,
		}, []string{"svc:tasks:read"})
	})
}
