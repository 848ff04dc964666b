package web

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/identity"
)

func (p *Pages) mountKeys() {
	p.orgPages(map[string]handler{
		"GET /keys":              (*visit).keysPage,
		"GET /keys/new":          (*visit).newKeyPage,
		"POST /keys":             (*visit).createKey,
		"GET /keys/{id}":         (*visit).keyPage,
		"POST /keys/{id}/rotate": (*visit).rotateKey,
		"POST /keys/{id}/revoke": (*visit).revokeKey,
	})
}

// keyView is one of the views of the list of keys.
type keyView struct {
	value, name string
	states      []identity.KeyState
	choose      identity.KeyFilter
	empty       string // text of an empty list
}

// endsSoon is the time ahead that the view of expiring keys covers.
const endsSoon = 14 * 24 * time.Hour

var live = []identity.KeyState{identity.KeyLive}

var keyViews = []keyView{
	{"", "Live", live, identity.KeyFilter{}, "No key works at the moment."},
	{"ends", "Ends soon", live, identity.KeyFilter{EndsWithin: endsSoon}, "No key ends within 14 days."},
	{"unused", "Never used", live, identity.KeyFilter{NeverUsed: true}, "Every key was used at least once."},
	{"admin", "Admin scope", live, identity.KeyFilter{Scope: identity.Admin}, "No key can administer the org."},
	{
		"ended", "Ended",
		[]identity.KeyState{identity.KeyExpired, identity.KeyRevoked},
		identity.KeyFilter{},
		"No key has expired or was revoked.",
	},
}

// keysView is the list of the org's keys.
type keysView struct {
	Tabs       []tab
	Rows       []keyRow
	Pager      cursorLinks
	Empty      string
	Principal  string // filter by principal
	Principals []identity.Member
	Clear      string // the same view without the filter
	First      bool   // the org has no live key
	View       string
}

// keyRow is a key in a list.
type keyRow struct {
	identity.Key
	Title  string
	Ref    string // of the principal
	Status identity.KeyState
	Live   bool // it can be used
	May    may
	Soon   bool // it ends soon
}

func newKeyRow(k *identity.Key, now time.Time) keyRow {
	out := keyRow{Key: *k, Title: k.Name, Ref: k.Principal.Ref(), Status: k.State(now), May: inWords(k.Scopes)}
	if out.Title == "" {
		out.Title = k.Prefix + "…"
	}
	out.Live = out.Status == identity.KeyLive
	out.Soon = out.Live && !k.ExpiresAt.IsZero() && k.ExpiresAt.Before(now.Add(endsSoon))
	return out
}

// keysPage lists the keys of the org in one of the views.
func (v *visit) keysPage() error {
	a, err := v.access(identity.ReadKeys)
	if err != nil {
		return err
	}
	q := v.r.URL.Query()
	at := slices.IndexFunc(keyViews, func(k keyView) bool { return k.value == q.Get("view") })
	if at < 0 {
		return fieldError("view", "must be one of the tabs")
	}
	f := keyViews[at].choose
	f.Limit = adminPerPage + 1
	if cursor := q.Get("cursor"); cursor != "" && !f.Continue(cursor) {
		return fieldError("cursor", "is not a cursor of this list; open the list again")
	}
	out := keysView{Principal: q.Get("principal"), Empty: keyViews[at].empty, View: keyViews[at].value}
	if out.Principal != "" {
		if f.Principal, err = identity.ParseRef(v.member.Org, out.Principal); err != nil {
			return fieldError("principal", "must be user:ID, agent:ID or service:ID")
		}
		out.Clear = v.withQuery("principal", "")
	}
	list, err := v.keysIn(a, f, keyViews[at].states)
	if err != nil {
		return err
	}
	next := ""
	if len(list) > adminPerPage {
		list = list[:adminPerPage]
		next = f.Cursor(&list[adminPerPage-1])
	}
	for i := range list {
		out.Rows = append(out.Rows, newKeyRow(&list[i], v.Now()))
	}
	out.Pager = v.cursorPager(next)
	out.First = len(out.Rows) == 0 && at == 0 && out.Principal == "" && f.Before == ""
	for i, view := range keyViews {
		out.Tabs = append(out.Tabs, tab{Name: view.name, Href: v.withQuery("view", view.value), Current: i == at})
	}
	out.Principals, err = v.choices("", identity.Agent, identity.Service, identity.User)
	if err != nil {
		return err
	}
	if out.Principal != "" {
		out.Principals = including(out.Principals, identity.Member{Principal: f.Principal, Name: f.Principal.ID})
	}
	return render(v, http.StatusOK, "keys", "Keys", out)
}

// including adds a choice that a limited list may lack.
func including(list []identity.Member, m identity.Member) []identity.Member {
	if slices.ContainsFunc(list, func(o identity.Member) bool { return o.Ref() == m.Ref() }) {
		return list
	}
	return append(list, m)
}

// keysIn lists the keys in any of the states, in the order of the filter. Keys of several states
// are sorted newest first.
func (v *visit) keysIn(a identity.Access, f identity.KeyFilter, states []identity.KeyState) ([]identity.Key, error) {
	var out []identity.Key
	for _, f.State = range states {
		list, err := v.OrgAdmin.Keys(v.r.Context(), a, f)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	if len(states) > 1 {
		slices.SortFunc(out, func(a, b identity.Key) int { return strings.Compare(b.ID, a.ID) })
	}
	return out[:min(len(out), f.Limit)], nil
}
