package client

import (
	"context"
	"iter"
	"time"
)

// MembersService manages the principals of the org.
type MembersService struct{ service }

// PrincipalKind is a kind of principal.
type PrincipalKind string

// The kinds of principals.
const (
	KindUser    PrincipalKind = "user"
	KindAgent   PrincipalKind = "agent"
	KindService PrincipalKind = "service"
)

// Member is a principal of the org.
type Member struct {
	Ref       string        `json:"ref"` // such as user:ada
	Kind      PrincipalKind `json:"kind"`
	ID        string        `json:"id"`
	Name      string        `json:"name"`
	Admin     bool          `json:"admin"`
	Disabled  bool          `json:"disabled"`
	CreatedAt time.Time     `json:"created_at"`
}

// MemberListParams filters a list of members. Zero fields do not filter.
type MemberListParams struct {
	Kind   string `url:"kind"`  // user, agent, service or all
	State  string `url:"state"` // enabled, disabled or all
	Cursor string `url:"cursor"`
	Limit  int    `url:"limit"`
}

func (s *MembersService) list(p MemberListParams) listing[Member] {
	r := read("members")
	r.query = values(p)
	return listing[Member]{c: s.c, call: r, member: "members"}
}

// List returns one page of members.
func (s *MembersService) List(ctx context.Context, p MemberListParams, opts ...Option) (*Page[Member], error) {
	return s.list(p).page(ctx, opts)
}

// All iterates over the members of all pages.
func (s *MembersService) All(ctx context.Context, p MemberListParams, opts ...Option) iter.Seq2[Member, error] {
	return s.list(p).all(ctx, opts)
}

// MemberCreation is a new user or service.
type MemberCreation struct {
	Kind  PrincipalKind `json:"kind"`
	ID    string        `json:"id"`
	Name  string        `json:"name,omitempty"` // the id if empty
	Admin bool          `json:"admin,omitempty"`
}

// Create creates a user or a service.
func (s *MembersService) Create(ctx context.Context, m MemberCreation, opts ...Option) (*Member, error) {
	return fetch[Member](ctx, s.c, post(m, "members"), opts)
}

// Get returns one member by its reference, such as user:ada.
func (s *MembersService) Get(ctx context.Context, ref string, opts ...Option) (*Member, error) {
	return fetch[Member](ctx, s.c, read("members", ref), opts)
}

// MemberPatch changes a member. Nil fields do not change.
type MemberPatch struct {
	Name     *string `json:"name,omitempty"`
	Admin    *bool   `json:"admin,omitempty"`
	Disabled *bool   `json:"disabled,omitempty"`
}

// Update changes a member.
func (s *MembersService) Update(ctx context.Context, ref string, p MemberPatch, opts ...Option) (*Member, error) {
	return fetch[Member](ctx, s.c, patch(p, "members", ref), opts)
}

// Erase replaces a user by a pseudonym, which it returns: the id, the name and every way to sign in go, and
// what the user did stays.
func (s *MembersService) Erase(ctx context.Context, ref string, opts ...Option) (*Member, error) {
	return fetch[Member](ctx, s.c, remove(false, "members", ref), opts)
}

// MemberLink is a link with which a user sets a new password.
type MemberLink struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// MemberLinkCreation is a new link.
type MemberLinkCreation struct {
	ExpiresInSeconds int `json:"expires_in_seconds,omitempty"`
}

// CreateLink makes a link with which a user sets a new password. It replaces earlier ones.
func (s *MembersService) CreateLink(
	ctx context.Context, ref string, l MemberLinkCreation, opts ...Option,
) (*MemberLink, error) {
	return fetch[MemberLink](ctx, s.c, post(l, "members", ref, "link"), opts)
}

// InvitationsService invites people to the org.
type InvitationsService struct{ service }

// Invitation lets a person become a user of the org.
type Invitation struct {
	ID         string    `json:"id"`
	URL        string    `json:"url"` // in the response to Create only
	User       string    `json:"user"`
	Name       string    `json:"name"`
	Admin      bool      `json:"admin"`
	State      string    `json:"state"` // open, accepted, revoked or expired
	CreatedBy  string    `json:"created_by"`
	CreatedAt  time.Time `json:"created_at"`
	ExpiresAt  time.Time `json:"expires_at"`
	AcceptedAt time.Time `json:"accepted_at"` // zero: not accepted
	RevokedAt  time.Time `json:"revoked_at"`  // zero: not revoked
}

// InvitationCreation is a new invitation.
type InvitationCreation struct {
	User             string `json:"user"`
	Name             string `json:"name,omitempty"`
	Admin            bool   `json:"admin,omitempty"`
	ExpiresInSeconds int    `json:"expires_in_seconds,omitempty"`
}

// Create makes an invitation. The person who opens its URL first becomes the user.
func (s *InvitationsService) Create(ctx context.Context, i InvitationCreation, opts ...Option) (*Invitation, error) {
	return fetch[Invitation](ctx, s.c, post(i, "invitations"), opts)
}

func (s *InvitationsService) list(p CursorParams) listing[Invitation] {
	r := read("invitations")
	r.query = values(p)
	return listing[Invitation]{c: s.c, call: r, member: "invitations"}
}

// List returns one page of invitations, newest first.
func (s *InvitationsService) List(ctx context.Context, p CursorParams, opts ...Option) (*Page[Invitation], error) {
	return s.list(p).page(ctx, opts)
}

// All iterates over the invitations of all pages.
func (s *InvitationsService) All(ctx context.Context, opts ...Option) iter.Seq2[Invitation, error] {
	return s.list(CursorParams{}).all(ctx, opts)
}

// Revoke revokes an invitation that was not accepted.
func (s *InvitationsService) Revoke(ctx context.Context, id string, opts ...Option) (*Invitation, error) {
	return fetch[Invitation](ctx, s.c, remove(true, "invitations", id), opts)
}
