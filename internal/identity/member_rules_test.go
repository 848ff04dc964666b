package identity

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/errs/errstest"
)

var ruleNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

// hall is a store that holds one member and runs the decision on it.
type hall struct {
	MemberStore
	scene MemberScene
}

func (h *hall) UpdateMember(
	_ context.Context, _ Principal, _ time.Time, decide func(MemberScene) (MemberOutcome, error),
) (MemberOutcome, error) {
	return decide(h.scene)
}

// Every member × every edit × with and without another admin.
func TestEveryChangeOfAMember(t *testing.T) {
	t.Parallel()
	choices := []*bool{nil, ptr(false), ptr(true)}
	rights := AdminRights{
		Keys:   []Key{{ID: "key-1", Scopes: Scopes{Admin}}},
		Grants: []AdminGrant{{ID: "grant-1", Left: Scopes{TasksRead}}, {ID: "grant-2"}},
	}
	for _, kind := range Kinds {
		for state := range 4 {
			for others := range 3 {
				for _, name := range []*string{nil, ptr("Ann"), ptr("Anna")} {
					for _, admin := range choices {
						for _, disabled := range choices {
							before := Member{
								Principal: Principal{Org: "acme", Kind: kind, ID: "ann"}, Name: "Ann",
								Admin: state&1 != 0, Disabled: state&2 != 0, CreatedAt: ruleNow,
							}
							scene := MemberScene{Member: before, OtherAdmins: others, Rights: rights}
							checkMemberChange(t, scene, MemberEdit{Name: name, Admin: admin, Disabled: disabled})
						}
					}
				}
			}
		}
	}
}

func checkMemberChange(t *testing.T, scene MemberScene, e MemberEdit) {
	t.Helper()
	before, want := scene.Member, scene.Member
	if e.Name != nil {
		want.Name = *e.Name
	}
	if e.Admin != nil {
		want.Admin = *e.Admin
	}
	if e.Disabled != nil {
		want.Disabled = *e.Disabled
	}
	name := fmt.Sprintf("%s, admin %v, disabled %v, beside %d admins, to %q, admin %v, disabled %v",
		before.Kind, before.Admin, before.Disabled, scene.OtherAdmins, want.Name, want.Admin, want.Disabled)
	got, err := updateMember(t.Context(), &hall{scene: scene}, before.Principal, e, ruleNow)
	acts := func(m Member) bool { return m.Kind == User && m.Admin && !m.Disabled }
	if acts(before) && !acts(want) && scene.OtherAdmins == 0 {
		if code := errstest.Code(err); code != "identity.last_admin" || len(got.Entries) > 0 || len(got.End.Keys) > 0 {
			t.Errorf("%s: got %q, %+v; want identity.last_admin and no change", name, code, got)
		}
		return
	}
	var told []string
	tell := func(action AuditAction, target, detail string) {
		told = append(told, strings.TrimSpace(fmt.Sprint(action, " ", target, " ", detail)))
	}
	var edits []string
	if want.Name != before.Name {
		edits = append(edits, fmt.Sprintf("name %q", want.Name))
	}
	if want.Admin != before.Admin {
		edits = append(edits, fmt.Sprintf("admin %v", want.Admin))
	}
	if len(edits) > 0 {
		tell(MemberUpdate, before.Ref(), strings.Join(edits, ", "))
	}
	switch {
	case want.Disabled && !before.Disabled:
		tell(MemberDisable, before.Ref(), "")
	case !want.Disabled && before.Disabled:
		tell(MemberEnable, before.Ref(), "")
	}
	var end AdminRights
	if before.Admin && !want.Admin { // what carries the right ends with the role
		end = scene.Rights
		tell(KeyRevoke, "key-1", "for :: svc:admin:admin; "+before.Ref()+" is no longer an admin")
		tell(GrantNarrow, "grant-1", "to svc:tasks:read; "+before.Ref()+" is no longer an admin")
		tell(GrantRevoke, "grant-2", before.Ref()+" is no longer an admin")
	}
	var entries []string
	for _, e := range got.Entries {
		entries = append(entries, strings.TrimSpace(fmt.Sprint(e.Action, " ", e.Target, " ", e.Detail)))
		if e.Org != "acme" || !e.At.Equal(ruleNow) || e.Outcome != Done {
			t.Errorf("%s: the entry is %+v, want one of acme that is done", name, e)
		}
	}
	if diff := cmp.Diff(want, got.Member) + cmp.Diff(end, got.End) + cmp.Diff(told, entries); diff != "" || err != nil {
		t.Errorf("%s: %v (-want +got)\n%s", name, err, diff)
	}
}

// A grant keeps every right but the one that went with the role.
func TestWhatIsLeftOfAGrantAfterADemotion(t *testing.T) {
	t.Parallel()
	for scopes, want := range map[string]struct {
		carries bool
		left    string
	}{
		"":                                     {false, ""},
		"svc:tasks:read":                       {false, ""},
		"svc:admin:admin":                      {true, ""},
		"svc:admin:admin agent:a":              {true, ""}, // a restriction is no right
		"agent:* svc:admin:admin":              {true, ""},
		"svc:tasks:read svc:admin:admin":       {true, "svc:tasks:read"},
		"svc:admin:admin svc:a2a:write":        {true, "svc:a2a:write"},
		"svc:a2a:write svc:admin:admin agent:": {true, "svc:a2a:write agent:"},
		"svc:tasks:read svc:tasks:write svc:admin:admin svc:a2a:write svc:a2a:serve": {
			true, "svc:tasks:read svc:tasks:write svc:a2a:write svc:a2a:serve",
		},
	} {
		g, ok := NewAdminGrant("grant-1", SplitScopes(scopes))
		if ok != want.carries || ok && g.ID != "grant-1" || g.Left.String() != want.left {
			t.Errorf("%q: got %v, %q; want %v, %q", scopes, ok, g.Left, want.carries, want.left)
		}
	}
}

func TestWhoMustBeAnAdminToGrant(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds {
		for _, scopes := range []Scopes{nil, {TasksRead}, {Admin}, {TasksRead, Admin}} {
			p := Principal{Org: "acme", Kind: kind, ID: "ann"}
			want := Principal{}
			if kind == User && scopes.Has(Admin) {
				want = p
			}
			if got := grantor(Access{caller: &Caller{Principal: p}}, scopes); got != want {
				t.Errorf("a %s that grants %q: got %+v, want %+v", kind, scopes, got, want)
			}
		}
	}
}

// Whom a caller may make a key for: anybody that is no other person.
func TestWhoMayHoldAKeyForWhom(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds {
		a := Access{caller: &Caller{Principal: Principal{Org: "acme", Kind: kind, ID: "ann"}}}
		for _, p := range []Principal{
			{Org: "acme", Kind: User, ID: "ann"},
			{Org: "acme", Kind: User, ID: "bob"},
			{Org: "other", Kind: User, ID: "ann"},
			{Org: "acme", Kind: Agent, ID: "ann"},
			{Org: "acme", Kind: Agent, ID: "bob"},
			{Org: "acme", Kind: Service, ID: "ann"},
			{Org: "acme", Kind: Service, ID: "bob"},
		} {
			want := ""
			if p.Kind == User && p != a.Principal() {
				want = "identity.key_of_another_user"
			}
			if got := errstest.Code(mayHold(a, p)); got != want {
				t.Errorf("%s for %s of %s: got %q, want %q", a.Principal().Ref(), p.Ref(), p.Org, got, want)
			}
			want = ""
			if p == a.Principal() {
				want = "identity.not_oneself"
			}
			if got := errstest.Code(NotOneself(a, p)); got != want {
				t.Errorf("%s disables %s of %s: got %q, want %q", a.Principal().Ref(), p.Ref(), p.Org, got, want)
			}
		}
	}
}

func TestWhatAPersonMayGiveAway(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds {
		for state := range 4 {
			m := Member{Principal: Principal{Kind: kind}, Admin: state&1 != 0, Disabled: state&2 != 0}
			want := ""
			switch {
			case kind != User || m.Disabled:
			case m.Admin:
				want = "svc:tasks:read svc:tasks:write svc:a2a:write svc:admin:admin"
			default:
				want = "svc:tasks:read svc:tasks:write svc:a2a:write"
			}
			if got := m.Entitled().String(); got != want {
				t.Errorf("%s, admin %v, disabled %v: got %q, want %q", kind, m.Admin, m.Disabled, got, want)
			}
		}
	}
}

func TestNewMembersAndEdits(t *testing.T) {
	t.Parallel()
	for _, kind := range append([]Kind{"", "robot"}, Kinds...) {
		for _, admin := range []bool{false, true} {
			for id, goodID := range map[string]bool{"ann": true, "Ann": false, "": false} {
				for name, goodName := range map[string]bool{"": true, "Ann": true, "\u202e": false} {
					var want []string
					if kind != User && kind != Service {
						want = append(want, "kind")
					}
					if !goodID {
						want = append(want, "id")
					}
					if !goodName {
						want = append(want, "name")
					}
					if admin && kind == Service {
						want = append(want, "admin")
					}
					if diff := cmp.Diff(want, errstest.Fields(ValidateMember(Principal{Org: "acme", Kind: kind, ID: id}, name,
						admin))); diff != "" {
						t.Errorf("%q %q named %q, admin %v: broken fields (-want +got)\n%s", kind, id, name, admin, diff)
					}
				}
			}
			want := []string(nil)
			if admin && kind != User {
				want = []string{"admin"}
			}
			if diff := cmp.Diff(want, errstest.Fields((&MemberEdit{Admin: &admin}).Validate(kind))); diff != "" {
				t.Errorf("a %q becomes admin %v: broken fields (-want +got)\n%s", kind, admin, diff)
			}
		}
	}
	if err := (&MemberEdit{}).Validate(User); errstest.Code(err) != "request.invalid" {
		t.Errorf("an edit of nothing: got %v, want request.invalid", err)
	}
	for name, want := range map[string]string{"": "ann", "Ann": "Ann"} {
		m, err := NewMember(Principal{Org: "acme", Kind: User, ID: "ann"}, name, true, ruleNow)
		if err != nil || m.Name != want || !m.Admin || m.Disabled || !m.CreatedAt.Equal(ruleNow) {
			t.Errorf("a member named %q: got %+v, %v; want the name %q", name, m, err, want)
		}
	}
}

// Every state of an invitation × what can be done with it.
func TestWhatAnInvitationIsGoodFor(t *testing.T) {
	t.Parallel()
	past, future := ruleNow.Add(-time.Second), ruleNow.Add(time.Second)
	for _, accepted := range []time.Time{{}, past} {
		for _, revoked := range []time.Time{{}, past} {
			for _, expires := range []time.Time{past, ruleNow, future} {
				i := Invitation{
					ID: "inv-1", Org: "acme", User: "ann", Name: "An\u200bn", Admin: true, ExpiresAt: expires,
					AcceptedAt: accepted,
					RevokedAt:  revoked,
				}
				state := InvitationOpen
				switch {
				case !accepted.IsZero():
					state = InvitationAccepted
				case !revoked.IsZero():
					state = InvitationRevoked
				case expires != future:
					state = InvitationExpired
				}
				name := fmt.Sprintf("accepted %v, revoked %v, expires in %v", !accepted.IsZero(), !revoked.IsZero(),
					expires.Sub(ruleNow))
				if got := i.State(ruleNow); got != state {
					t.Errorf("%s: got %s, want %s", name, got, state)
				}

				m, err := i.accept(ruleNow)
				if state == InvitationOpen {
					want := Member{
						Principal: Principal{Org: "acme", Kind: User, ID: "ann"}, Name: "Ann", Admin: true,
						CreatedAt: ruleNow,
					}
					if diff := cmp.Diff(want, m); diff != "" || err != nil {
						t.Errorf("%s: to accept: %v (-want +got)\n%s", name, err, diff)
					}
				} else if errstest.Code(err) != "identity.bad_invitation" || errs.KindOf(err) != errs.NotFound {
					t.Errorf("%s: to accept: got %v, want identity.bad_invitation", name, err)
				}

				ended := i
				changed, err := ended.revoke(ruleNow)
				code, want := "", i
				switch state {
				case InvitationAccepted:
					code = "identity.invitation_accepted"
				case InvitationOpen, InvitationExpired:
					want.RevokedAt = ruleNow
				}
				if diff := cmp.Diff(want, ended); diff != "" || errstest.Code(err) != code || changed != (want != i) {
					t.Errorf("%s: to revoke: got %q, changed %v; want %q (-want +got)\n%s", name, errstest.Code(err), changed,
						code, diff)
				}
			}
		}
	}
}

func TestRequestsForInvitations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		r    InvitationRequest
		want []string
	}{
		{"an id is enough", InvitationRequest{User: "ann"}, nil},
		{"all of it", InvitationRequest{User: "ann", Name: "Ann", Admin: true, Expires: MaxInvitation}, nil},
		{"no id", InvitationRequest{}, []string{"user"}},
		{"an id with its kind", InvitationRequest{User: "user:ann"}, []string{"user"}},
		{"a deceptive name", InvitationRequest{User: "ann", Name: "\u202e"}, []string{"name"}},
		{"too long", InvitationRequest{User: "ann", Expires: MaxInvitation + 1}, []string{"expires_in"}},
		{"over before it begins", InvitationRequest{User: "ann", Expires: -1}, []string{"expires_in"}},
		{
			"all wrong",
			InvitationRequest{User: "A", Name: "\u202e", Expires: -1},
			[]string{"user", "name", "expires_in"},
		},
	} {
		if diff := cmp.Diff(c.want, errstest.Fields(c.r.Validate())); diff != "" {
			t.Errorf("%s: broken fields (-want +got)\n%s", c.name, diff)
		}
	}
}
