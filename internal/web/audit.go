package web

import (
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
	"github.com/parley-dev/parley/internal/webhook"
)

func (p *Pages) mountAudit() {
	p.orgPages(map[string]handler{"GET /audit": (*visit).auditPage})
}

// auditView is the page of the org's audit log.
type auditView struct {
	Actor, Action, Target, From, To string // filters

	Actions  []auditGroup
	Rows     []auditRow
	Pager    cursorLinks
	Filtered bool
	Clear    string
}

// auditRow is an entry as a sentence, with links that filter by its parts.
type auditRow struct {
	identity.AuditEntry
	Verb     string // "made the key"
	Subject  string // page of the target; empty if there is none
	Shown    string // target without its internal part
	ByActor  string
	ByAction string
	ByTarget string // empty if there is no target, or it is too long
	Refused  bool
}

// auditPage lists the log, newest first.
func (v *visit) auditPage() error {
	a, err := v.access(identity.ReadAudit)
	if err != nil {
		return err
	}
	q := v.r.URL.Query()
	out := auditView{
		Actor: strings.TrimSpace(q.Get("actor")), Action: strings.TrimSpace(q.Get("action")),
		Target: q.Get("target"), // matched exactly, so not trimmed
		From:   q.Get("from"), To: q.Get("to"), Actions: auditGroups, Clear: v.base() + "/audit",
	}
	out.Filtered = out.Actor != "" || out.Action != "" || out.Target != "" || out.From != "" || out.To != ""
	f, err := out.filter(q.Get("cursor"))
	if err != nil {
		return renderForm(v, http.StatusOK, "audit", "Audit log", out, err)
	}
	list, err := v.OrgAdmin.Audit(v.r.Context(), a, f)
	if err != nil {
		return err
	}
	next := ""
	if len(list) > adminPerPage {
		list = list[:adminPerPage]
		next = f.Cursor(&list[adminPerPage-1])
	}
	out.Pager = v.cursorPager(next)
	for i := range list {
		out.Rows = append(out.Rows, v.auditRow(&list[i]))
	}
	return render(v, http.StatusOK, "audit", "Audit log", out)
}

// maxAuditFilter limits the length of a filter.
const maxAuditFilter = 100

// filter parses the filters. Days are in UTC and inclusive.
func (a *auditView) filter(cursor string) (identity.AuditFilter, error) {
	f := identity.AuditFilter{
		Actor: a.Actor, Action: identity.AuditAction(a.Action), Target: a.Target, Limit: adminPerPage + 1,
	}
	bad := func(s string) bool { return len(s) > maxAuditFilter || !text.Storable(s) }
	var wrong []error
	if bad(a.Actor) {
		wrong = append(wrong, fieldError("actor", "must be a principal such as user:ada, operator or server"))
	}
	if bad(a.Action) {
		wrong = append(wrong, fieldError("action", "must be one of the choices"))
	}
	if utf8.RuneCountInString(a.Target) > identity.MaxAuditTarget || !text.Storable(a.Target) {
		wrong = append(wrong, fieldError("target", "must be an id such as key-…, or a principal such as user:ada"))
	}
	for _, d := range []struct {
		name, value string
		into        *time.Time
		days        int
	}{{"from", a.From, &f.From, 0}, {"to", a.To, &f.To, 1}} {
		if d.value == "" {
			continue
		}
		day, ok := dayOf(d.value)
		if !ok {
			wrong = append(wrong, fieldError(d.name, "must be a day such as 2026-03-31"))
		}
		*d.into = day.AddDate(0, 0, d.days)
	}
	if cursor != "" && !f.Continue(cursor) {
		wrong = append(wrong, fieldError("cursor", "is not a cursor of this list"))
	}
	return f, together(wrong...)
}

func (v *visit) auditRow(e *identity.AuditEntry) auditRow {
	out := auditRow{
		AuditEntry: *e, Refused: e.Outcome == identity.Refused, Verb: auditVerb(e), Subject: v.subject(e.Target),
	}
	if slices.Contains(alone, e.Action) && e.Target == e.Actor {
		out.Shown, out.Subject = "", ""
	} else if out.Shown = e.Target; !strings.Contains(e.Target, ":") {
		out.Shown = shortID(e.Target)
	}
	out.ByActor, out.ByAction = v.withQuery("actor", e.Actor), v.withQuery("action", string(e.Action))
	if e.Target != "" && utf8.RuneCountInString(e.Target) <= identity.MaxAuditTarget {
		out.ByTarget = v.withQuery("target", e.Target)
	}
	return out
}

// subject returns the page of the target of an entry.
func (v *visit) subject(target string) string {
	kind, _, _ := strings.Cut(target, ":")
	switch {
	case identity.ValidKeyID(target):
		return v.base() + "/keys/" + target
	case strings.HasPrefix(target, "client-"):
		return v.base() + "/clients/" + target
	case webhook.ValidID(target):
		return v.base() + "/webhooks/" + target
	case identity.ValidInvitationID(target):
		return v.base() + "/members/invitations"
	case kind == string(identity.User) || kind == string(identity.Agent) || kind == string(identity.Service):
		if _, err := identity.ParseRef(v.member.Org, target); err == nil {
			return v.base() + "/members/" + target
		}
	}
	return ""
}
