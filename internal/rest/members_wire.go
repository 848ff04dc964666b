package rest

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/identity"
)

// Member is a principal of the org.
type Member struct {
	Ref       string `json:"ref" doc:"Kind and id." example:"user:ada"`
	Kind      string `json:"kind" doc:"Kind of principal." example:"user"`
	ID        string `json:"id" doc:"Unique within the org and kind." example:"ada"`
	Name      string `json:"name" doc:"Display name." example:"Ada Lovelace"`
	Admin     bool   `json:"admin" doc:"Whether the user is an admin in sessions. Keys have their own scopes." example:"false"`
	Disabled  bool   `json:"disabled" doc:"Disabled principals are rejected, with all their keys." example:"false"`
	CreatedAt string `json:"created_at" format:"date-time" doc:"When it was created."`
}

// TransformSchema adds the enumeration of the domain.
func (Member) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "kind", oneOf(identity.Kinds))
	return s
}

// MemberList is a page of principals.
type MemberList struct {
	Members    []Member `json:"members" nullable:"false" doc:"Principals, sorted by kind and id; empty past the end."`
	NextCursor *string  `json:"next_cursor" doc:"Cursor of the next page; null on the last page."`
}

// MemberCreation is the body that creates a user or a service.
type MemberCreation struct {
	Kind  string  `json:"kind" enum:"user,service" doc:"Kind of principal." example:"user"`
	ID    string  `json:"id" pattern:"^[a-z0-9][a-z0-9._-]{0,63}$" doc:"Id." example:"ada"`
	Name  *string `json:"name,omitempty" doc:"Display name; default: the id." example:"Ada Lovelace"`
	Admin bool    `json:"admin,omitempty" doc:"For users: whether the user is an admin in sessions." example:"false"`
}

// TransformSchema adds the limits of the domain.
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
	Admin    *bool   `json:"admin,omitempty" doc:"For users: whether the user is an admin in sessions."`
	Disabled *bool   `json:"disabled,omitempty" doc:"Disabled principals are rejected, with all their keys."`
}

// TransformSchema adds the limits of the domain.
func (MemberPatch) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "name", length(1, identity.MaxName), matching(namePattern()))
	one := 1
	s.MinProperties = &one
	return s
}

func memberOf(m *identity.Member) Member {
	return Member{
		Ref: m.Ref(), Kind: string(m.Kind), ID: m.ID, Name: m.Name, Admin: m.Admin, Disabled: m.Disabled,
		CreatedAt: stamp(m.CreatedAt),
	}
}

// MemberLinkCreation is the body that creates a password link.
type MemberLinkCreation struct {
	ExpiresInSeconds *int `json:"expires_in_seconds,omitempty" doc:"Lifetime of the link; default one day." example:"86400"`
}

// TransformSchema adds the limits of the domain.
func (MemberLinkCreation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "expires_in_seconds", between(1, int(account.MaxLinkLifetime/time.Second)))
	return s
}

// MemberLink is a link to set a password.
type MemberLink struct {
	URL       string `json:"url" doc:"URL to set the password, shown once; relative without a public URL. For the user only."`
	ExpiresAt string `json:"expires_at" format:"date-time" doc:"When it expires." example:"2026-03-03T10:00:00.000000Z"`
}

// Invitation lets one person join the org, once.
type Invitation struct {
	ID         string  `json:"id" doc:"Invitation id; not secret." example:"inv-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	User       string  `json:"user" doc:"Id of the new user." example:"ada"`
	Name       string  `json:"name" doc:"Name of the new user." example:"Ada Lovelace"`
	Admin      bool    `json:"admin" doc:"Whether the user will be an admin." example:"false"`
	State      string  `json:"state" doc:"Whether it can be accepted." example:"open"`
	CreatedAt  string  `json:"created_at" format:"date-time" doc:"When it was created."`
	CreatedBy  string  `json:"created_by" doc:"Who created it." example:"user:bob"`
	ExpiresAt  string  `json:"expires_at" format:"date-time" doc:"When it expires." example:"2026-03-09T10:00:00.000000Z"`
	AcceptedAt *string `json:"accepted_at" format:"date-time" doc:"When it was accepted; null if it was not."`
	RevokedAt  *string `json:"revoked_at" format:"date-time" doc:"When it was revoked; null if it was not."`
}

// TransformSchema adds the enumeration of the domain.
func (Invitation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "state", oneOf(identity.InvitationStates))
	return s
}

// InvitationWithURL is an invitation with its URL.
type InvitationWithURL struct {
	URL string `json:"url" doc:"URL to accept it, shown once; relative without a public URL. For the invited person only."`
	Invitation
}

// TransformSchema adds the enumeration of the domain.
func (InvitationWithURL) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "state", oneOf(identity.InvitationStates))
	return s
}

// InvitationList is a page of invitations.
type InvitationList struct {
	Invitations []Invitation `json:"invitations" nullable:"false" doc:"Invitations, newest first; empty past the end."`
	NextCursor  *string      `json:"next_cursor" doc:"Cursor of the next page; null on the last page."`
}

// InvitationCreation is the body that creates an invitation.
type InvitationCreation struct {
	User             string  `json:"user" pattern:"^[a-z0-9][a-z0-9._-]{0,63}$" doc:"Id of the new user." example:"ada"`
	Name             *string `json:"name,omitempty" doc:"Name of the new user; default: the id." example:"Ada Lovelace"`
	Admin            bool    `json:"admin,omitempty" doc:"Whether the user will be an admin." example:"false"`
	ExpiresInSeconds *int    `json:"expires_in_seconds,omitempty" doc:"Lifetime; default seven days." example:"604800"`
}

// TransformSchema adds the limits of the domain.
func (InvitationCreation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "name", length(1, identity.MaxName), matching(namePattern()))
	property(s, "expires_in_seconds", between(1, int(identity.MaxInvitation/time.Second)))
	return s
}

func invitationOf(i *identity.Invitation) Invitation {
	return Invitation{
		ID: i.ID, User: i.User, Name: i.Name, Admin: i.Admin, State: i.State(time.Now()),
		CreatedAt: stamp(i.CreatedAt), CreatedBy: i.CreatedBy,
		ExpiresAt: stamp(i.ExpiresAt), AcceptedAt: stampOrNull(i.AcceptedAt), RevokedAt: stampOrNull(i.RevokedAt),
	}
}
