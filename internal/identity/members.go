package identity

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// States of a member.
const (
	MemberEnabled  = "enabled"
	MemberDisabled = "disabled"
)

// MemberStates lists all states.
var MemberStates = []string{MemberEnabled, MemberDisabled}

// MemberFilter selects principals of an org, in the order of kind and id.
type MemberFilter struct {
	Kind  Kind      // empty: all
	State string    // empty: all
	After Principal // the last one of the previous page; its org is ignored
	Limit int       // 0: all
}

// MemberEdit changes the fields that are not nil.
type MemberEdit struct {
	Name     *string
	Admin    *bool
	Disabled *bool
}

// Validate returns all problems of the edit of a principal of the kind.
func (e *MemberEdit) Validate(kind Kind) error {
	var wrong []errs.Field
	if e.Name == nil && e.Admin == nil && e.Disabled == nil {
		wrong = append(wrong, errs.Field{Message: "must contain at least one of name, admin and disabled"})
	}
	if e.Name != nil {
		wrong = append(wrong, nameFields(*e.Name)...)
	}
	if e.Admin != nil && *e.Admin && kind != User {
		wrong = append(wrong, errs.NewField("admin", onlyUsers))
	}
	return invalid(wrong)
}

const (
	onlyUsers = "can be true for users only; give an agent or a service a key with svc:admin:admin instead"
	idRule    = "must have 1 to 64 of a-z, 0-9, '.', '_' and '-', and start with a letter or digit"
)

// ValidateMember returns all problems of a new user or service. Package agent creates
// agents, because they have more than a name.
func ValidateMember(p Principal, name string, admin bool) error {
	var wrong []errs.Field
	if p.Kind != User && p.Kind != Service {
		wrong = append(wrong, errs.NewField("kind", "must be user or service"))
	}
	if !ValidAgentID(p.ID) {
		wrong = append(wrong, errs.NewField("id", idRule))
	}
	if name != "" {
		wrong = append(wrong, nameFields(name)...)
	}
	if admin && p.Kind == Service {
		wrong = append(wrong, errs.NewField("admin", onlyUsers))
	}
	return invalid(wrong)
}

// Members lists principals of the org.
func (m *OrgAdmin) Members(ctx context.Context, a Access, f MemberFilter) ([]Member, error) {
	if err := a.For(ReadMembers); err != nil {
		return nil, err
	}
	return m.members.Members(ctx, a.Org(), f)
}

// Member returns one principal of the org.
func (m *OrgAdmin) Member(ctx context.Context, a Access, p Principal) (Member, error) {
	if err := a.For(ReadMembers, ManageMembers, EraseMembers); err != nil {
		return Member{}, err
	}
	if p.Org != a.Org() {
		return Member{}, errs.ErrNotFound
	}
	return m.members.Member(ctx, p)
}

// CreateMember creates a user or a service of the org.
func (m *OrgAdmin) CreateMember(ctx context.Context, a Access, kind Kind, id, name string, admin bool) (Member, error) {
	if err := a.For(ManageMembers); err != nil {
		return Member{}, err
	}
	p := Principal{Org: a.Org(), Kind: kind, ID: id}
	if err := ValidateMember(p, name, admin); err != nil {
		return Member{}, err
	}
	now := m.now()
	out, err := NewMember(p, name, admin, now)
	if err != nil {
		return Member{}, err
	}
	e := NewEntry(originFor(ctx, a), now, a.Org(), MemberCreate, p.Ref(), out.says())
	return m.members.CreateMember(ctx, out, e)
}

func (m *Member) says() string {
	if m.Admin {
		return "admin"
	}
	return ""
}

// UpdateMember changes, disables or enables a principal of the org. A disabled principal
// cannot authenticate with any key until it is enabled again. A user who stops being an
// admin loses every key and grant that carries svc:admin:admin.
func (m *OrgAdmin) UpdateMember(ctx context.Context, a Access, p Principal, e MemberEdit) (Member, error) {
	if err := a.For(ManageMembers); err != nil {
		return Member{}, err
	}
	if p.Org != a.Org() {
		return Member{}, errs.ErrNotFound
	}
	if err := e.Validate(p.Kind); err != nil {
		return Member{}, err
	}
	if e.Disabled != nil && *e.Disabled {
		if err := NotOneself(a, p); err != nil {
			return Member{}, err
		}
	}
	out, err := updateMember(originFor(ctx, a), m.members, p, e, m.now())
	return out.Member, err
}

// updateMember is shared with Operator.
func updateMember(
	ctx context.Context, s MemberStore, p Principal, e MemberEdit, now time.Time,
) (MemberOutcome, error) {
	return s.UpdateMember(ctx, p, now, func(scene MemberScene) (MemberOutcome, error) {
		out := MemberOutcome{Member: scene.Member}
		next, changes, err := decideMember(scene.Member, e, scene.OtherAdmins)
		if err != nil {
			return out, err
		}
		for _, c := range changes {
			out.Entries = append(out.Entries, NewEntry(ctx, now, p.Org, c.action, p.Ref(), c.detail))
		}
		if scene.Member.Admin && !next.Admin {
			out.End = scene.Rights
			out.Entries = append(out.Entries, out.End.End(ctx, p, now)...)
		}
		out.Member = next
		return out, nil
	})
}

// NotOneself returns an error if callers disable themselves: there may be no one else to
// undo it.
func NotOneself(a Access, p Principal) error {
	if p == a.Principal() {
		return errs.New(errs.Conflict, "identity.not_oneself", "%s cannot disable itself; ask another admin", p.Ref())
	}
	return nil
}

type memberChange struct {
	action AuditAction
	detail string
}

// decideMember applies an edit to a member. others is the number of other enabled admin
// users of the org.
func decideMember(cur Member, e MemberEdit, others int) (Member, []memberChange, error) {
	next := cur
	set(&next.Name, e.Name)
	set(&next.Admin, e.Admin)
	set(&next.Disabled, e.Disabled)
	admin := func(m Member) bool { return m.Kind == User && m.Admin && !m.Disabled }
	if admin(cur) && !admin(next) && others == 0 {
		return cur, nil, errs.New(errs.Conflict, "identity.last_admin",
			"%s is the last enabled admin of the org; make another user an admin first", cur.Ref())
	}
	var changes []memberChange
	var edits []string
	if next.Name != cur.Name {
		edits = append(edits, fmt.Sprintf("name %q", next.Name))
	}
	if next.Admin != cur.Admin {
		edits = append(edits, fmt.Sprintf("admin %t", next.Admin))
	}
	if len(edits) > 0 {
		changes = append(changes, memberChange{MemberUpdate, strings.Join(edits, ", ")})
	}
	switch {
	case next.Disabled && !cur.Disabled:
		changes = append(changes, memberChange{MemberDisable, ""})
	case cur.Disabled && !next.Disabled:
		changes = append(changes, memberChange{MemberEnable, ""})
	}
	return next, changes, nil
}

func set[T any](old, val *T) {
	if val != nil {
		*old = *val
	}
}

// NewMember validates a principal and returns its record. An empty name becomes the id.
func NewMember(p Principal, name string, admin bool, now time.Time) (Member, error) {
	if _, err := ParseRef(p.Org, p.Ref()); err != nil {
		return Member{}, err
	}
	if name == "" {
		name = p.ID
	}
	if err := checkName(name); err != nil {
		return Member{}, err
	}
	return Member{Principal: p, Name: name, Admin: admin, CreatedAt: now}, nil
}

// invalid returns nil if there are no fields.
func invalid(fields []errs.Field) error {
	if len(fields) == 0 {
		return nil
	}
	return errs.InvalidFields(fields...)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
