package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/text"
)

// Invitation lets one person become a user of the org, once.
type Invitation struct {
	ID         string
	Org        string
	User       string // id of the user that it creates
	Name       string
	Admin      bool
	CreatedAt  time.Time
	CreatedBy  string
	ExpiresAt  time.Time
	AcceptedAt time.Time // zero: not accepted
	RevokedAt  time.Time // zero: not revoked
}

// States of an invitation.
const (
	InvitationOpen     = "open"
	InvitationAccepted = "accepted"
	InvitationRevoked  = "revoked"
	InvitationExpired  = "expired"
)

// InvitationStates lists all states.
var InvitationStates = []string{InvitationOpen, InvitationAccepted, InvitationRevoked, InvitationExpired}

// State returns the state of the invitation.
func (i *Invitation) State(now time.Time) string {
	switch {
	case !i.AcceptedAt.IsZero():
		return InvitationAccepted
	case !i.RevokedAt.IsZero():
		return InvitationRevoked
	case !now.Before(i.ExpiresAt):
		return InvitationExpired
	}
	return InvitationOpen
}

// Lifetimes of an invitation.
const (
	DefaultInvitation = 7 * 24 * time.Hour
	MaxInvitation     = 30 * 24 * time.Hour
)

// InvitationRequest asks for an invitation.
type InvitationRequest struct {
	User    string
	Name    string // empty: the id
	Admin   bool
	Expires time.Duration // 0: DefaultInvitation
}

// Validate returns all problems of the request.
func (r *InvitationRequest) Validate() error {
	var wrong []errs.Field
	if !ValidAgentID(r.User) {
		wrong = append(wrong, errs.NewField("user", idRule))
	}
	if r.Name != "" {
		wrong = append(wrong, nameFields(r.Name)...)
	}
	if r.Expires < 0 || r.Expires > MaxInvitation {
		wrong = append(wrong, errs.NewField("expires_in",
			fmt.Sprintf("must be an integer between 1 and %d", int(MaxInvitation/time.Second))))
	}
	return invalid(wrong)
}

// newToken returns the secret of an invitation: 256 random bits.
func newToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// HashToken returns the stored form of an invitation's token.
func HashToken(token string) Hash { return sha256.Sum256([]byte("invitation:" + token)) }

const tokenLength = 43

var errBadInvitation = errs.New(errs.NotFound, "identity.bad_invitation",
	"the invitation is unknown, used, expired or revoked; ask an admin of the org for a new one")

// Invite creates an invitation and returns its token, which cannot be read again.
func (m *OrgAdmin) Invite(ctx context.Context, a Access, r InvitationRequest) (Invitation, string, error) {
	if err := a.For(ManageMembers); err != nil {
		return Invitation{}, "", err
	}
	if err := r.Validate(); err != nil {
		return Invitation{}, "", err
	}
	if r.Expires == 0 {
		r.Expires = DefaultInvitation
	}
	if r.Name == "" {
		r.Name = r.User
	}
	now, token := m.now(), newToken()
	inv := Invitation{
		ID: m.newID("inv-"), Org: a.Org(), User: r.User, Name: r.Name, Admin: r.Admin,
		CreatedAt: now, CreatedBy: a.Principal().Ref(), ExpiresAt: now.Add(r.Expires),
	}
	e := NewEntry(originFor(ctx, a), now, inv.Org, InvitationCreate, inv.ID, inv.says())
	once := idempotency.From(ctx)
	if err := once.Seal(token); err != nil {
		return Invitation{}, "", err
	}
	inv, err := m.invitations.CreateInvitation(ctx, inv, HashToken(token), e, m.quotas.invitations()...)
	if err == nil {
		token, err = once.Secret(token)
	}
	return inv, token, err
}

func (i *Invitation) says() string {
	s := string(User) + ":" + i.User
	if i.Admin {
		s += ", admin"
	}
	return s
}

// Invitations lists the org's invitations, newest first.
func (m *OrgAdmin) Invitations(ctx context.Context, a Access, before string, limit int) ([]Invitation, error) {
	if err := a.For(ReadMembers); err != nil {
		return nil, err
	}
	return m.invitations.Invitations(ctx, a.Org(), before, limit)
}

// RevokeInvitation ends an invitation. An accepted one is Conflict.
func (m *OrgAdmin) RevokeInvitation(ctx context.Context, a Access, id string) (Invitation, error) {
	if err := a.For(ManageMembers); err != nil {
		return Invitation{}, err
	}
	now := m.now()
	return m.invitations.ChangeInvitation(ctx, a.Org(), id, func(i *Invitation) ([]AuditEntry, error) {
		if changed, err := i.revoke(now); err != nil || !changed {
			return nil, err
		}
		return []AuditEntry{NewEntry(originFor(ctx, a), now, i.Org, InvitationRevoke, i.ID, i.says())}, nil
	})
}

// revoke ends the invitation, unless it is revoked already.
func (i *Invitation) revoke(now time.Time) (changed bool, err error) {
	switch i.State(now) {
	case InvitationAccepted:
		return false, errs.New(errs.Conflict, "identity.invitation_accepted",
			"the invitation was accepted; disable %s:%s instead", User, i.User)
	case InvitationRevoked:
		return false, nil
	}
	i.RevokedAt = now
	return true, nil
}

// Invitation returns an invitation that can be accepted, for the page that asks whether to
// accept it. It does not change the invitation.
func (m *OrgAdmin) Invitation(ctx context.Context, token string) (Invitation, error) {
	if len(token) != tokenLength {
		return Invitation{}, errBadInvitation
	}
	i, err := m.invitations.InvitationByHash(ctx, HashToken(token))
	if err == nil && i.State(m.now()) != InvitationOpen || err != nil && errs.KindOf(err) == errs.NotFound {
		return Invitation{}, errBadInvitation
	}
	return i, err
}

// Accept accepts an invitation and creates its user. The token is the proof, so it takes no
// Access. An invitation can be accepted once; all other attempts, concurrent or later, are
// NotFound. password is the hash of the user's first password, or empty.
func (m *OrgAdmin) Accept(ctx context.Context, token, password string) (Member, error) {
	if len(token) != tokenLength {
		return Member{}, errBadInvitation
	}
	now := m.now()
	out, err := m.invitations.AcceptInvitation(ctx, HashToken(token), password,
		func(i Invitation) (Member, AuditEntry, error) {
			made, err := i.accept(now)
			if err != nil {
				return Member{}, AuditEntry{}, err
			}
			e := NewEntry(ctx, now, i.Org, InvitationAccept, i.ID, i.says())
			e.Actor, e.KeyID = made.Ref(), ""
			return made, e, nil
		})
	if err != nil && errs.KindOf(err) == errs.NotFound {
		return Member{}, errBadInvitation
	}
	return out, err
}

// accept returns the user that the invitation is for.
func (i *Invitation) accept(now time.Time) (Member, error) {
	if i.State(now) != InvitationOpen {
		return Member{}, errBadInvitation
	}
	return NewMember(Principal{Org: i.Org, Kind: User, ID: i.User}, text.CleanName(i.Name), i.Admin, now)
}

// ValidInvitationID reports whether s can be the id of an invitation.
func ValidInvitationID(s string) bool { return validID("inv-", s) }

// ValidKeyID reports whether s can be the id of a key.
func ValidKeyID(s string) bool { return validID("key-", s) }

func validID(prefix, s string) bool {
	rest, ok := strings.CutPrefix(s, prefix)
	if !ok || rest == "" || len(rest) > 64 {
		return false
	}
	for _, r := range rest {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			return false
		}
	}
	return true
}
