package web

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// memberOne is the page of a principal.
type memberOne struct {
	Member  identity.Member
	Ref     string
	Self    bool
	Name    string    // value of the form
	Keys    []keyRow  // live keys, newest first
	More    bool      // there are more keys
	Ends    int64     // number of shown keys that end with the admin role
	Used    time.Time // last use of the shown keys
	Seen    time.Time // last entry in the audit log
	Manages bool
	Erases  bool
	Agent   string // page of the agent, if it is one
	NewKey  string // page to create a key; empty if not allowed
}

func (v *visit) memberPage() error {
	_, m, err := v.memberInPath(identity.ReadMembers)
	if err != nil {
		return err
	}
	return v.showMember(m, m.Name, nil)
}

// memberInPath returns the principal in the path, if the member may do the action.
func (v *visit) memberInPath(action identity.Action) (identity.Access, identity.Member, error) {
	a, err := v.access(action)
	if err != nil {
		return a, identity.Member{}, err
	}
	p, err := identity.ParseRef(v.member.Org, v.r.PathValue("ref"))
	if err != nil {
		return a, identity.Member{}, errs.ErrNotFound
	}
	m, err := v.OrgAdmin.Member(v.r.Context(), a, p)
	return a, m, err
}

const memberKeys = 20

// presetFor is the preset of a new key for a kind of principal.
var presetFor = map[identity.Kind]string{identity.Agent: "worker", identity.Service: "calls", identity.User: "custom"}

// showMember shows a principal with its keys.
func (v *visit) showMember(m identity.Member, name string, problem error) error {
	a, err := v.access(identity.ReadKeys)
	if err != nil {
		return err
	}
	out := memberOne{
		Member: m, Ref: m.Ref(), Self: m.Principal == v.member.Principal, Name: name, Manages: v.may(identity.ManageMembers),
	}
	out.Erases = v.may(identity.EraseMembers) && m.Kind == identity.User && !out.Self
	if m.Kind == identity.Agent {
		out.Agent = v.agentPath(m.ID)
	}
	f := identity.KeyFilter{Principal: m.Principal, State: identity.KeyLive, Limit: memberKeys + 1}
	list, err := v.OrgAdmin.Keys(v.r.Context(), a, f)
	if err != nil {
		return err
	}
	if len(list) > memberKeys {
		list, out.More = list[:memberKeys], true
	}
	for i := range list {
		row := newKeyRow(&list[i], v.Now())
		out.Keys = append(out.Keys, row)
		if row.May.Admin {
			out.Ends++
		}
		if row.LastUsedAt.After(out.Used) {
			out.Used = row.LastUsedAt
		}
	}
	if out.Seen, err = v.lastSeen(out.Ref); err != nil {
		return err
	}
	if v.may(identity.ManageKeys) && !m.Disabled && (m.Kind != identity.User || out.Self) {
		out.NewKey = link(v.base()+"/keys/new", "preset", presetFor[m.Kind], "principal", m.Ref())
	}
	return renderForm(v, http.StatusOK, "member", m.Name, out, problem)
}

// changeMember changes the name, role or state of a principal: one of them per form.
func (v *visit) changeMember() error {
	a, m, err := v.memberInPath(identity.ManageMembers)
	if err != nil {
		return v.audited(identity.MemberUpdate, v.r.PathValue("ref"), err)
	}
	name, edit, said, err := v.memberEdit(m)
	if err != nil {
		return err
	}
	ctx, _, err := v.begin()
	if err == nil {
		_, err = v.OrgAdmin.UpdateMember(ctx, a, m.Principal, edit)
	}
	if err != nil {
		return v.showMember(m, name, v.audited(identity.MemberUpdate, m.Ref(), err))
	}
	return v.back(v.base()+"/members/"+m.Ref(), said)
}

// memberEdit returns the change of the form that was sent.
func (v *visit) memberEdit(m identity.Member) (name string, e identity.MemberEdit, said string, err error) {
	name = m.Name
	yes, no := true, false
	switch v.value("change") {
	case "name":
		name = v.value("name")
		e.Name, said = &name, "The name was changed."
	case "make-admin":
		e.Admin, said = &yes, m.Name+" is an admin now."
	case "take-admin":
		e.Admin, said = &no, m.Name+" is no longer an admin. Keys and programs lost their admin rights."
	case "disable":
		e.Disabled, said = &yes, m.Name+" is disabled: signed out, and rejected everywhere within seconds."
	case "enable":
		e.Disabled, said = &no, m.Name+" is enabled again, with the keys that are still live."
	default:
		err = errIncomplete
	}
	return name, e, said, err
}

// eraseMember replaces a user by a pseudonym, for good. The id must be typed.
func (v *visit) eraseMember() error {
	a, m, err := v.memberInPath(identity.EraseMembers)
	if err != nil {
		return v.audited(identity.MemberErase, v.r.PathValue("ref"), err)
	}
	if v.value("confirm") != m.ID {
		return v.showMember(m, m.Name, fieldError("confirm", "must be "+m.ID+", so that the wrong user is not erased"))
	}
	erased, err := v.OrgAdmin.EraseMember(v.r.Context(), a, m.Principal)
	if err != nil {
		return v.showMember(m, m.Name, v.audited(identity.MemberErase, m.Ref(), err))
	}
	return v.back(v.base()+"/members/"+erased.Ref(), "The person was erased, and is called "+erased.Name+" now.")
}

// linkHours are the choices for the lifetime of a password link.
var linkHours = []int{1, 24, 7 * 24}

// linkMember creates a password link for a user, and shows it once.
func (v *visit) linkMember() error {
	a, m, err := v.memberInPath(identity.ManageMembers)
	if err != nil {
		return v.audited(account.LinkCreate, v.r.PathValue("ref"), err)
	}
	hours, err := strconv.Atoi(v.value("hours"))
	if err != nil || !slices.Contains(linkHours, hours) {
		return v.showMember(m, m.Name, fieldError("hours", "must be one of the choices"))
	}
	ctx, once, err := v.begin()
	if err != nil {
		return err
	}
	token, l, err := v.Accounts.ResetLink(ctx, a, m.Principal, time.Duration(hours)*time.Hour)
	if err != nil && !sealed(err) {
		return v.showMember(m, m.Name, v.audited(account.LinkCreate, m.Ref(), err))
	}
	out := shownLink{
		Secret: v.newSecret("link", v.PublicURL+"/setup/"+token, once), For: m.Name, User: m.ID, ExpiresAt: l.ExpiresAt,
		Reset: true, Back: v.base() + "/members/" + m.Ref(),
	}
	return render(v, http.StatusCreated, "link", "A link for "+m.Name, out)
}
