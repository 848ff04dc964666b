package rest

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/identity"
)

// Member is one principal of the org.
type Member struct {
	Ref       string `json:"ref" doc:"Kind and id." example:"user:ada"`
	Kind      string `json:"kind" doc:"What sort of principal it is." example:"user"`
	ID        string `json:"id" doc:"Unique among those of its kind in the org." example:"ada"`
	Name      string `json:"name" doc:"What people call it." example:"Ada Lovelace"`
	Admin     bool   `json:"admin" doc:"Whether the user may administer the org when signed in. Keys carry their scopes by themselves." example:"false"`
	Disabled  bool   `json:"disabled" doc:"Whether it is refused everywhere, whatever its keys." example:"false"`
	CreatedAt string `json:"created_at" format:"date-time" doc:"When it was made." example:"2026-03-02T10:00:00.000000Z"`
}

// TransformSchema takes the list from the domain.
func (Member) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "kind", oneOf(identity.Kinds))
	return s
}

// MemberList is one page of principals.
type MemberList struct {
	Members    []Member `json:"members" nullable:"false" doc:"The page, by kind and id; empty past the end."`
	NextCursor *string  `json:"next_cursor" doc:"Continues the list as the parameter cursor; null on the last page."`
}

// MemberCreation is the body that makes a user or a service.
type MemberCreation struct {
	Kind  string  `json:"kind" enum:"user,service" doc:"What sort of principal." example:"user"`
	ID    string  `json:"id" pattern:"^[a-z0-9][a-z0-9._-]{0,63}$" doc:"Its id." example:"ada"`
	Name  *string `json:"name,omitempty" doc:"What people call it; the id if left out." example:"Ada Lovelace"`
	Admin bool    `json:"admin,omitempty" doc:"Users only: may administer the org when signed in." example:"false"`
}

// TransformSchema takes the limits from the domain.
func (MemberCreation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "name", length(1, identity.MaxName), matching(namePattern()))
	// Only users can be admins.
	service := &huma.Schema{Properties: map[string]*huma.Schema{"kind": {Enum: []any{string(identity.Service)}}}}
	extend(s, "if", service)
	extend(s, "then", &huma.Schema{Properties: map[string]*huma.Schema{"admin": {Enum: []any{false}}}})
	return s
}

// MemberPatch is the body of a change to a principal.
type MemberPatch struct {
	Name     *string `json:"name,omitempty" doc:"A new name."`
	Admin    *bool   `json:"admin,omitempty" doc:"Users only: may administer the org when signed in."`
	Disabled *bool   `json:"disabled,omitempty" doc:"Whether it is refused everywhere."`
}

// TransformSchema takes the limits from the domain.
func (MemberPatch) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "name", length(1, identity.MaxName), matching(namePattern()))
	one := 1
	s.MinProperties = &one
	return s
}

func memberOf(m *identity.Member) Member {
	return Member{
		Ref: m.Ref(), Kind: string(m.Kind), ID: m.ID, Name: m.Name, Admin: m.Admin, Disabled: m.Disabled, CreatedAt: stamp(m.CreatedAt),
	}
}

// MemberLinkCreation is the body that makes a link to set a password.
type MemberLinkCreation struct {
	ExpiresInSeconds *int `json:"expires_in_seconds,omitempty" doc:"How long the link can be used; a day if left out." example:"86400"`
}

// TransformSchema takes the limits from the domain.
func (MemberLinkCreation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "expires_in_seconds", between(1, int(account.MaxLinkLifetime/time.Second)))
	return s
}

// MemberLink is a link to set a password.
type MemberLink struct {
	URL       string `json:"url" doc:"Where to set the password, for the user alone; shown this once. Relative to the server unless that was told its public address."`
	ExpiresAt string `json:"expires_at" format:"date-time" doc:"Until when it can be used." example:"2026-03-03T10:00:00.000000Z"`
}

// Invitation lets one person join the org, once.
type Invitation struct {
	ID         string  `json:"id" doc:"Names the invitation; it is no secret." example:"inv-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	User       string  `json:"user" doc:"Id of the user that it makes." example:"ada"`
	Name       string  `json:"name" doc:"Name of the user." example:"Ada Lovelace"`
	Admin      bool    `json:"admin" doc:"Whether the user will be an admin." example:"false"`
	State      string  `json:"state" doc:"Whether it can be accepted." example:"open"`
	CreatedAt  string  `json:"created_at" format:"date-time" doc:"When it was made." example:"2026-03-02T10:00:00.000000Z"`
	CreatedBy  string  `json:"created_by" doc:"Who made it." example:"user:bob"`
	ExpiresAt  string  `json:"expires_at" format:"date-time" doc:"Until when it can be accepted." example:"2026-03-09T10:00:00.000000Z"`
	AcceptedAt *string `json:"accepted_at" format:"date-time" doc:"When it was accepted; null if it was not." example:"2026-03-03T10:00:00.000000Z"`
	RevokedAt  *string `json:"revoked_at" format:"date-time" doc:"When it was revoked; null if it was not." example:"2026-03-03T10:00:00.000000Z"`
}

// TransformSchema takes the list from the domain.
func (Invitation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "state", oneOf(identity.InvitationStates))
	return s
}

// InvitationWithURL is an invitation with its address.
type InvitationWithURL struct {
	URL string `json:"url" doc:"Where to accept it, for the invited alone; shown this once. Relative to the server unless that was told its public address."`
	Invitation
}

// TransformSchema takes the list from the domain.
func (InvitationWithURL) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "state", oneOf(identity.InvitationStates))
	return s
}

// InvitationList is one page of invitations.
type InvitationList struct {
	Invitations []Invitation `json:"invitations" nullable:"false" doc:"The page, newest first; empty past the end."`
	NextCursor  *string      `json:"next_cursor" doc:"Continues the list as the parameter cursor; null on the last page."`
}

// InvitationCreation is the body that makes an invitation.
type InvitationCreation struct {
	User             string  `json:"user" pattern:"^[a-z0-9][a-z0-9._-]{0,63}$" doc:"Id of the user that it makes." example:"ada"`
	Name             *string `json:"name,omitempty" doc:"Name of the user; the id if left out." example:"Ada Lovelace"`
	Admin            bool    `json:"admin,omitempty" doc:"Whether the user will be an admin." example:"false"`
	ExpiresInSeconds *int    `json:"expires_in_seconds,omitempty" doc:"How long it can be accepted; seven days if left out." example:"604800"`
}

// TransformSchema takes the limits from the domain.
func (InvitationCreation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "name", length(1, identity.MaxName), matching(namePattern()))
	property(s, "expires_in_seconds", between(1, int(identity.MaxInvitation/time.Second)))
	return s
}

func invitationOf(i *identity.Invitation) Invitation {
	return Invitation{
		ID: i.ID, User: i.User, Name: i.Name, Admin: i.Admin, State: i.State(time.Now()), CreatedAt: stamp(i.CreatedAt), CreatedBy: i.CreatedBy,
		ExpiresAt: stamp(i.ExpiresAt), AcceptedAt: stampOrNull(i.AcceptedAt), RevokedAt: stampOrNull(i.RevokedAt),
	}
}
