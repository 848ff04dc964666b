package rest

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/identity"
)

// Key is an API key without its secret.
type Key struct {
	ID                string   `json:"id" doc:"Key id; not secret." example:"key-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Prefix            string   `json:"prefix" doc:"First characters of the secret." example:"parley_4fGh2k"`
	Principal         string   `json:"principal" doc:"Principal of the key." example:"agent:scout"`
	Name              string   `json:"name" doc:"Purpose of the key; may be empty." example:"production"`
	Scopes            []string `json:"scopes" nullable:"false" doc:"Scopes of the key." example:"[\"svc:tasks:read\"]"`
	State             string   `json:"state" doc:"Whether it can be used." example:"live"`
	PrincipalDisabled bool     `json:"principal_disabled" doc:"Whether the principal is disabled; then no key of it works." example:"false"`
	CreatedAt         string   `json:"created_at" format:"date-time" doc:"When it was created."`
	CreatedBy         string   `json:"created_by" doc:"Who created it." example:"user:ada"`
	LastUsedAt        *string  `json:"last_used_at" format:"date-time" doc:"When it was last used, to the minute; null if never."`
	ExpiresAt         *string  `json:"expires_at" format:"date-time" doc:"When it expires; null if never."`
	RevokedAt         *string  `json:"revoked_at" format:"date-time" doc:"When it was revoked; null if it was not."`
	ReplacedBy        *string  `json:"replaced_by" doc:"Key that replaced it in a rotation; null if none." example:"key-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Replaces          *string  `json:"replaces" doc:"Key that it replaced in a rotation; null if none." example:"key-01k5xb7d2n8f4j6s0a9g3r5w1c"`
}

// TransformSchema adds the enumeration of the domain.
func (Key) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "state", oneOf(identity.KeyStates))
	return s
}

// KeyWithSecret is a key with its secret.
type KeyWithSecret struct {
	Secret string `json:"secret" doc:"The API key, shown once."`
	Key
}

// TransformSchema adds the enumeration of the domain and the pattern of a secret.
func (KeyWithSecret) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "state", oneOf(identity.KeyStates))
	property(s, "secret", matching("^"+identity.SecretPattern+"$"))
	return s
}

// KeyList is a page of keys.
type KeyList struct {
	Keys       []Key   `json:"keys" nullable:"false" doc:"Keys, newest first; empty past the end."`
	NextCursor *string `json:"next_cursor" doc:"Cursor of the next page; null on the last page."`
}

// KeyCreation is the body that creates a key.
type KeyCreation struct {
	Principal string   `json:"principal" doc:"Principal of the key: agent:ID, service:ID, or yourself." example:"agent:scout"`
	Scopes    []string `json:"scopes" nullable:"false" example:"[\"svc:tasks:read\",\"svc:tasks:write\"]"`
	Name      *string  `json:"name,omitempty" doc:"Purpose of the key." example:"production"`
	ExpiresAt *string  `json:"expires_at,omitempty" format:"date-time" doc:"Expiry; default never." example:"2026-06-02T10:00:00Z"`
}

// TransformSchema adds the limits of the domain, and descriptions.
func (KeyCreation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "principal", matching(principalPattern))
	property(s, "name", length(1, identity.MaxName), matching(namePattern()))
	property(s, "scopes", items(1, identity.MaxScopes), eachItem(matching(scopePattern(identity.AllScopes...))),
		describedAs("Scopes of the key: svc:tasks:read, svc:tasks:write, svc:admin:admin, svc:a2a:write, svc:a2a:serve, "+
			"agent:ID or agent:*."))
	return s
}

// OwnKeyCreation is the body that creates a key for the caller.
type OwnKeyCreation struct {
	Scopes    []string `json:"scopes" nullable:"false" example:"[\"svc:tasks:read\",\"svc:tasks:write\"]"`
	Name      *string  `json:"name,omitempty" doc:"Purpose of the key." example:"laptop"`
	ExpiresAt *string  `json:"expires_at,omitempty" format:"date-time" example:"2026-06-02T10:00:00Z"`
}

// TransformSchema adds the limits of the domain, and descriptions.
func (OwnKeyCreation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "name", length(1, identity.MaxName), matching(namePattern()))
	property(s, "scopes", items(1, identity.MaxScopes), eachItem(matching(scopePattern(identity.AllScopes...))),
		describedAs("Scopes of the key, at most those of the credential of this request."))
	property(s, "expires_at",
		describedAs("Expiry; default: that of the credential of this request. The default in a session is never."))
	return s
}

// KeyRotation is the body that rotates a key.
type KeyRotation struct {
	OverlapSeconds *int `json:"overlap_seconds,omitempty" doc:"How long the old key keeps working; default 0." example:"3600"`
}

// TransformSchema adds the limits of the domain.
func (KeyRotation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "overlap_seconds", between(0, int(identity.MaxOverlap/time.Second)))
	return s
}

func between(low, high int) func(*huma.Schema) {
	return func(s *huma.Schema) {
		minimum, maximum := float64(low), float64(high)
		s.Minimum, s.Maximum = &minimum, &maximum
	}
}

func keyOf(k *identity.Key) Key {
	return Key{
		ID: k.ID, Prefix: k.Prefix, Principal: k.Principal.Ref(), Name: k.Name, Scopes: names(k.Scopes),
		State: string(k.State(time.Now())), PrincipalDisabled: k.Disabled,
		CreatedAt: stamp(k.CreatedAt), CreatedBy: k.CreatedBy,
		LastUsedAt: stampOrNull(k.LastUsedAt), ExpiresAt: stampOrNull(k.ExpiresAt), RevokedAt: stampOrNull(k.RevokedAt),
		ReplacedBy: orNull(k.ReplacedBy), Replaces: orNull(k.Replaces),
	}
}
