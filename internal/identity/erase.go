package identity

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// Erasure is what replaces a user who is erased.
type Erasure struct {
	Member Member // under a pseudonym, and disabled
	Entry  AuditEntry
}

// EraseMember erases a user of the org: the name, the id and every way to sign in go, and what the user
// did stays under a pseudonym. It returns the member that remains. Erasing the user or that one again
// continues an erasure that was interrupted.
func (m *OrgAdmin) EraseMember(ctx context.Context, a Access, p Principal) (Member, error) {
	if err := a.For(EraseMembers); err != nil {
		return Member{}, err
	}
	if p.Org != a.Org() {
		return Member{}, errs.ErrNotFound
	}
	if p == a.Principal() {
		return Member{}, errs.New(errs.Conflict, "identity.not_oneself", "%s cannot erase itself; ask another admin", p.Ref())
	}
	return eraseMember(originFor(ctx, a), m.members, p, m.now())
}

// EraseMember is OrgAdmin.EraseMember for the operator.
func (o *Operator) EraseMember(ctx context.Context, p Principal) (Member, error) {
	return eraseMember(ctx, o.members, p, o.now())
}

func eraseMember(ctx context.Context, s MemberStore, p Principal, now time.Time) (Member, error) {
	if p.Kind != User {
		return Member{}, errs.New(errs.Conflict, "identity.only_users_are_erased",
			"%s is not a person; only users are erased. Disable it, or change its name", p.Ref())
	}
	return s.EraseMember(ctx, p, func(scene MemberScene) (Erasure, error) {
		return decideErasure(ctx, scene, newPseudonym(), now)
	})
}

// decideErasure returns what replaces a user.
func decideErasure(ctx context.Context, scene MemberScene, pseudonym string, now time.Time) (Erasure, error) {
	cur := scene.Member
	if cur.Admin && !cur.Disabled && scene.OtherAdmins == 0 {
		return Erasure{}, errs.New(errs.Conflict, "identity.last_admin",
			"%s is the last enabled admin of the org; make another user an admin first", cur.Ref())
	}
	next := Member{
		Principal: Principal{Org: cur.Org, Kind: User, ID: "former-" + pseudonym}, Name: "Former member " + pseudonym,
		Disabled: true, CreatedAt: cur.CreatedAt,
	}
	return Erasure{next, NewEntry(ctx, now, cur.Org, MemberErase, next.Ref(), "")}, nil
}

// newPseudonym returns a random name that does not depend on the user.
func newPseudonym() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
