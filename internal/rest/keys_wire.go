package rest

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/identity"
)

// Key is an API key without its secret.
type Key struct {
	ID                string   `json:"id" doc:"Names the key; it is no secret." example:"key-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Prefix            string   `json:"prefix" doc:"How the secret begins, to recognize it by." example:"parley_4fGh2k"`
	Principal         string   `json:"principal" doc:"Whom the key speaks for." example:"agent:scout"`
	Name              string   `json:"name" doc:"What the key is for; empty if nobody said." example:"production"`
	Scopes            []string `json:"scopes" nullable:"false" doc:"What the key may do." example:"[\"svc:tasks:read\"]"`
	State             string   `json:"state" doc:"Whether it can be used." example:"live"`
	PrincipalDisabled bool     `json:"principal_disabled" doc:"Whether the principal is disabled: then no key of it works, whatever its state." example:"false"`
	CreatedAt         string   `json:"created_at" format:"date-time" doc:"When it was made." example:"2026-03-02T10:00:00.000000Z"`
	CreatedBy         string   `json:"created_by" doc:"Who made it." example:"user:ada"`
	LastUsedAt        *string  `json:"last_used_at" format:"date-time" doc:"When it was last used, to the minute; null if never." example:"2026-03-02T10:00:00.000000Z"`
	ExpiresAt         *string  `json:"expires_at" format:"date-time" doc:"When it stops working; null if never." example:"2026-06-02T10:00:00.000000Z"`
	RevokedAt         *string  `json:"revoked_at" format:"date-time" doc:"When it was revoked; null if it was not." example:"2026-03-02T10:00:00.000000Z"`
	ReplacedBy        *string  `json:"replaced_by" doc:"The key that a rotation put in its place; null if none." example:"key-01k5xb7d2n8f4j6s0a9g3r5w1d"`
	Replaces          *string  `json:"replaces" doc:"The key in whose place a rotation put this one; null if none." example:"key-01k5xb7d2n8f4j6s0a9g3r5w1b"`
}

// TransformSchema takes the list from the domain.
func (Key) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "state", oneOf(identity.KeyStates))
	return s
}

// KeyWithSecret is a key with its secret.
type KeyWithSecret struct {
	Secret string `json:"secret" doc:"The API key itself, shown this once."`
	Key
}

// TransformSchema says what a secret looks like.
func (KeyWithSecret) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "state", oneOf(identity.KeyStates))
	property(s, "secret", func(p *huma.Schema) { p.Pattern = "^" + identity.SecretPattern + "$" })
	return s
}

// KeyList is one page of keys.
type KeyList struct {
	Keys       []Key   `json:"keys" nullable:"false" doc:"The page, newest first; empty past the end."`
	NextCursor *string `json:"next_cursor" doc:"Continues the list as the parameter cursor; null on the last page."`
}

// KeyCreation is the body that makes a key.
type KeyCreation struct {
	Principal string   `json:"principal" doc:"Whom the key speaks for: agent:ID, service:ID, or yourself." example:"agent:scout"`
	Scopes    []string `json:"scopes" nullable:"false" doc:"What the key may do: svc:tasks:read, svc:tasks:write, svc:admin:admin, svc:a2a:write, svc:a2a:serve, agent:ID or agent:*." example:"[\"svc:tasks:read\",\"svc:tasks:write\"]"`
	Name      *string  `json:"name,omitempty" doc:"What the key is for." example:"production"`
	ExpiresAt *string  `json:"expires_at,omitempty" format:"date-time" doc:"When it stops working; never if left out." example:"2026-06-02T10:00:00Z"`
}

// TransformSchema takes the limits from the domain.
func (KeyCreation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "principal", matching(principalPattern))
	property(s, "name", length(1, identity.MaxName), matching(namePattern()))
	property(s, "scopes", items(1, identity.MaxScopes), eachItem(matching(scopePattern(identity.AllScopes...))))
	return s
}

// OwnKeyCreation is the body that makes a key for oneself.
type OwnKeyCreation struct {
	Scopes    []string `json:"scopes" nullable:"false" doc:"What the key may do; nothing that the credential of this request may not." example:"[\"svc:tasks:read\",\"svc:tasks:write\"]"`
	Name      *string  `json:"name,omitempty" doc:"What the key is for." example:"laptop"`
	ExpiresAt *string  `json:"expires_at,omitempty" format:"date-time" doc:"When it stops working; with the credential of this request if left out, so never in a session and with a key that never expires." example:"2026-06-02T10:00:00Z"`
}

// TransformSchema takes the limits from the domain.
func (OwnKeyCreation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "name", length(1, identity.MaxName), matching(namePattern()))
	property(s, "scopes", items(1, identity.MaxScopes), eachItem(matching(scopePattern(identity.AllScopes...))))
	return s
}

// KeyRotation is the body that replaces a key.
type KeyRotation struct {
	OverlapSeconds *int `json:"overlap_seconds,omitempty" doc:"How long the old key works beside the new one; 0 if left out." example:"3600"`
}

// TransformSchema takes the limits from the domain.
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
		State: string(k.State(time.Now())), PrincipalDisabled: k.Disabled, CreatedAt: stamp(k.CreatedAt), CreatedBy: k.CreatedBy,
		LastUsedAt: stampOrNull(k.LastUsedAt), ExpiresAt: stampOrNull(k.ExpiresAt), RevokedAt: stampOrNull(k.RevokedAt),
		ReplacedBy: orNull(k.ReplacedBy), Replaces: orNull(k.Replaces),
	}
}
