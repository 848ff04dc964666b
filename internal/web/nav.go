package web

import (
	"cmp"
	"math"

	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// nav is the menu: the pages that the member may open.
type nav struct {
	Main     []navItem
	Settings []navItem
	Orgs     []identity.Org // the member's other orgs
}

type navItem struct {
	Path, Name, Icon string
	Count            int64 // 0: none is shown
	Current          bool
}

// nav makes the menu for the page that is shown.
func (v *visit) nav() (identity.Org, nav, error) {
	var n nav
	self, err := v.access(identity.ReadSelf)
	if err != nil {
		return identity.Org{}, n, err
	}
	org, err := v.OrgAdmin.Org(v.r.Context(), self)
	if err != nil {
		return org, n, err
	}
	open, work, err := v.waiting()
	if err != nil {
		return org, n, err
	}
	add := func(list *[]navItem, action identity.Action, path, name, icon string, count int64) {
		if v.may(action) {
			*list = append(*list, navItem{Path: v.base() + path, Name: name, Icon: icon, Count: count, Current: v.under(path)})
		}
	}
	if !v.stepsHidden() || v.under("/start") {
		add(&n.Main, identity.ManageAgents, "/start", "First steps", "start", 0)
	}
	add(&n.Main, identity.ListProposals, "/proposals", "Proposals", "proposals", open)
	add(&n.Main, identity.ListFollowups, "/followups", "Follow-ups", "followups", work)
	add(&n.Main, identity.ReadAgents, "/agents", "Agents", "agent", 0)
	add(&n.Main, identity.ReadFriction, "/friction", "Friction", "friction", 0)
	add(&n.Settings, identity.ReadKeys, "/keys", "Keys", "key", 0)
	add(&n.Settings, identity.ReadClients, "/clients", "Clients", "client", 0)
	add(&n.Settings, identity.ReadMembers, "/members", "Members", "members", 0)
	add(&n.Settings, identity.ReadAudit, "/audit", "Audit log", "audit", 0)
	add(&n.Settings, identity.ManageFriction, "/settings", "Settings", "settings", 0)
	n.Orgs, err = v.otherOrgs()
	return org, n, err
}

// otherOrgs are those that the person is signed in to beside this one.
func (v *visit) otherOrgs() ([]identity.Org, error) {
	if v.single() {
		return nil, nil // the usual case reads nothing
	}
	list, err := v.Memberships(v.r)
	var ids []string
	for i := range list {
		if list[i].Org != v.member.Org {
			ids = append(ids, list[i].Org)
		}
	}
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	names, err := v.Accounts.OrgNames(v.r.Context(), ids...)
	out := make([]identity.Org, len(ids))
	for i, id := range ids {
		out[i] = identity.Org{ID: id, Name: cmp.Or(names[id], id)}
	}
	return out, err
}

// waiting counts what waits in the org: open proposals and open follow-ups.
func (v *visit) waiting() (proposals, followups int64, err error) {
	ctx := v.r.Context()
	a, err := v.access(identity.ListProposals)
	if err != nil {
		return 0, 0, err
	}
	counts, err := v.counts(a, proposal.Query{})
	if err != nil {
		return 0, 0, err
	}
	if a, err = v.access(identity.ListFollowups); err != nil {
		return 0, 0, err
	}
	// A page past the end: they are counted and not read.
	_, n, err := v.Followups.List(ctx, a, &followup.Query{Status: followup.Open, Limit: 1, Page: math.MaxInt32})
	return counts[proposal.Open], n, err
}

// under reports whether the page shown is the one at path, or below it.
func (v *visit) under(path string) bool {
	own := v.r.URL.Path
	at := v.base() + path
	return own == at || len(own) > len(at) && own[:len(at)] == at && own[len(at)] == '/'
}
