package web

import (
	"cmp"
	"math"

	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// nav is the menu, with the pages that the member may open.
type nav struct {
	Main     []navItem
	Settings []navItem
	Orgs     []identity.Org // other orgs of the session
}

type navItem struct {
	Path, Name, Icon string
	Count            int64 // 0: not shown
	CountID          string
	Live             string // types of the events that change the count
	Current          bool
}

// counted has the types of the events that change the counts of the menu.
var counted = map[string]string{
	"/proposals": "proposal.submitted proposal.opened proposal.approved proposal.rejected proposal.reopened " +
		"proposal.resolved",
	"/followups": "followup.created followup.started followup.done followup.canceled followup.reopened",
}

// nav builds the menu for the current page.
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
			*list = append(*list, navItem{
				Path: v.base() + path, Name: name, Icon: icon, Count: count, CountID: "count-" + icon, Live: counted[path],
				Current: v.under(path),
			})
		}
	}
	add(&n.Main, identity.ListProposals, "/overview", "Overview", "overview", 0)
	if !v.stepsHidden() || v.under("/start") {
		add(&n.Main, identity.ManageAgents, "/start", "First steps", "start", 0)
	}
	add(&n.Main, identity.ListProposals, "/proposals", "Proposals", "proposals", open)
	add(&n.Main, identity.ListFollowups, "/followups", "Follow-ups", "followups", work)
	add(&n.Main, identity.ReadAgents, "/agents", "Agents", "agent", 0)
	add(&n.Main, identity.ReadAgents, "/catalogue", "Catalogue", "catalogue", 0)
	add(&n.Main, identity.ReadTasks, "/tasks", "Tasks", "task", 0)
	add(&n.Main, identity.ReadFriction, "/friction", "Friction", "friction", 0)
	add(&n.Main, identity.ReadEvents, "/events", "Events", "events", 0)
	add(&n.Settings, identity.ReadKeys, "/keys", "Keys", "key", 0)
	add(&n.Settings, identity.ReadClients, "/clients", "Clients", "client", 0)
	add(&n.Settings, identity.ReadMembers, "/members", "Members", "members", 0)
	add(&n.Settings, identity.ManageWebhooks, "/webhooks", "Webhooks", "webhook", 0)
	add(&n.Settings, identity.ReadAudit, "/audit", "Audit log", "audit", 0)
	add(&n.Settings, identity.ManageFriction, "/settings", "Settings", "settings", 0)
	n.Orgs, err = v.otherOrgs()
	return org, n, err
}

// otherOrgs returns the other orgs that the user is signed in to.
func (v *visit) otherOrgs() ([]identity.Org, error) {
	if v.single() {
		return nil, nil // the common case, without a read
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

// waiting counts the open proposals and the open follow-ups of the org.
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
	// A page past the end: it counts the follow-ups and reads none.
	_, n, err := v.Followups.List(ctx, a, &followup.Query{Status: followup.Open, Limit: 1, Page: math.MaxInt32})
	return counts[proposal.Open], n, err
}

// under reports whether the current page is at path or below it.
func (v *visit) under(path string) bool {
	own := v.r.URL.Path
	at := v.base() + path
	return own == at || len(own) > len(at) && own[:len(at)] == at && own[len(at)] == '/'
}
