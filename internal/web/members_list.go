package web

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/identity"
)

func (p *Pages) mountMembers() {
	p.orgPages(map[string]handler{
		"GET /members":                          (*visit).membersPage,
		"POST /members":                         (*visit).createMember,
		"GET /members/{ref}":                    (*visit).memberPage,
		"POST /members/{ref}":                   (*visit).changeMember,
		"POST /members/{ref}/link":              (*visit).linkMember,
		"POST /members/{ref}/erase":             (*visit).eraseMember,
		"GET /members/invitations":              (*visit).invitationsPage,
		"POST /members/invitations":             (*visit).invite,
		"POST /members/invitations/{id}/revoke": (*visit).revokeInvitation,
	})
}

// membersView is the list of the org's principals of one kind.
type membersView struct {
	Tabs      []tab
	Kind      identity.Kind
	States    []tab
	Disabled  bool // shows disabled principals
	Rows      []memberRow
	Pager     cursorLinks
	Service   typedMember // values of the form for a new user or service
	MayManage bool
}

// memberRow is a principal in a list.
type memberRow struct {
	identity.Member
	Seen time.Time // of users: last entry in the audit log; zero: never
}

// typedMember has the values of the form for a new user or service.
type typedMember struct {
	ID, Name string
	Admin    bool
	Open     bool // the form was sent
}

type memberKind struct {
	kind        identity.Kind
	value, name string
}

var memberKinds = []memberKind{
	{identity.User, "", "People"}, {identity.Agent, "agent", "Agents"}, {identity.Service, "service", "Services"},
}

// memberTabs returns the tabs; current is the kind shown, or empty for invitations.
func (v *visit) memberTabs(current identity.Kind) []tab {
	at := v.base() + "/members"
	var out []tab
	for _, k := range memberKinds {
		out = append(out, tab{Name: k.name, Href: link(at, "kind", k.value), Current: k.kind == current})
	}
	return append(out, tab{Name: "Invitations", Href: at + "/invitations", Current: current == ""})
}

func (v *visit) membersPage() error {
	return v.showMembers(v.r.URL.Query().Get("kind"), typedMember{}, nil)
}

// showMembers lists the principals of one kind, with the form to add one.
func (v *visit) showMembers(kind string, typed typedMember, problem error) error {
	a, err := v.access(identity.ReadMembers)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(memberKinds, func(k memberKind) bool { return k.value == kind })
	if at < 0 {
		return fieldError("kind", "must be agent or service, or be left out")
	}
	q := v.r.URL.Query()
	f := identity.MemberFilter{Kind: memberKinds[at].kind, State: q.Get("state"), Limit: adminPerPage + 1}
	if f.State != "" && !slices.Contains(identity.MemberStates, f.State) {
		return fieldError("state", "must be enabled or disabled, or be left out")
	}
	if c := q.Get("cursor"); c != "" {
		if f.After, err = identity.ParseRef(v.member.Org, c); err != nil {
			return fieldError("cursor", "is not a cursor of this list; open the list again")
		}
	}
	out := membersView{
		Tabs: v.memberTabs(f.Kind), Kind: f.Kind, Disabled: f.State == identity.MemberDisabled, Service: typed,
		MayManage: v.may(identity.ManageMembers),
	}
	for _, state := range append([]string{""}, identity.MemberStates...) {
		out.States = append(out.States, tab{
			Name: capital(cmp.Or(state, "all")), Current: state == f.State,
			Href: link(v.base()+"/members", "kind", kind, "state", state),
		})
	}
	list, err := v.OrgAdmin.Members(v.r.Context(), a, f)
	if err != nil {
		return err
	}
	next := ""
	if len(list) > adminPerPage {
		list = list[:adminPerPage]
		next = list[adminPerPage-1].Ref()
	}
	for i := range list {
		row := memberRow{Member: list[i]}
		if f.Kind == identity.User {
			if row.Seen, err = v.lastSeen(row.Ref()); err != nil {
				return err
			}
		}
		out.Rows = append(out.Rows, row)
	}
	out.Pager = v.cursorPager(next)
	return renderForm(v, http.StatusOK, "members", "Members", out, problem)
}

// lastSeen returns the time of the principal's last entry in the audit log as an actor. A sign-in
// writes an entry.
func (v *visit) lastSeen(ref string) (time.Time, error) {
	a, err := v.access(identity.ReadAudit)
	if err != nil {
		return time.Time{}, err
	}
	list, err := v.OrgAdmin.Audit(v.r.Context(), a, identity.AuditFilter{Actor: ref, Limit: 1})
	if err != nil || len(list) == 0 {
		return time.Time{}, err
	}
	return list[0].At, nil
}

// createMember creates a service, or a user without an invitation.
func (v *visit) createMember() error {
	kind := identity.Kind(v.value("kind"))
	typed := typedMember{ID: v.value("id"), Name: v.value("name"), Admin: v.value("admin") != "", Open: true}
	ref := string(kind) + ":" + typed.ID
	a, err := v.access(identity.ManageMembers)
	if err != nil {
		return v.audited(identity.MemberCreate, ref, err)
	}
	shown := string(kind)
	switch kind {
	case identity.User:
		shown = ""
	case identity.Service:
	default:
		return errIncomplete
	}
	ctx, _, err := v.begin()
	if err != nil {
		return err
	}
	m, err := v.OrgAdmin.CreateMember(ctx, a, kind, typed.ID, typed.Name, typed.Admin)
	if err != nil {
		return v.showMembers(shown, typed, v.audited(identity.MemberCreate, ref, err))
	}
	said := "The service was created. Give it a key now."
	if kind == identity.User {
		said = "The user was created. Make a link below, so that they can choose a password."
	}
	return v.done(v.base()+"/members/"+m.Ref(), said)
}
