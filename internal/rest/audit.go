package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
)

const auditPath = "/api/v1/orgs/{org}/audit"

func (a *api) registerAudit() {
	register(a, operation{
		id: "list-audit", method: http.MethodGet, path: auditPath, tag: tagAudit,
		summary: "Read the audit log of the org", action: identity.ReadAudit,
		description: "Newest first. An action that was done is written together with what it did; refusals of one principal are bounded to 20 at once and one " +
			"every ten seconds, and how many were left out is said. Nothing is ever changed or deleted." + needsAdmin,
	}, a.listAudit)
}

type listAuditInput struct {
	OrgPath
	Actor  auditText   `query:"actor" doc:"Only what this principal did, or operator, or server." example:"user:ada"`
	Action auditText   `query:"action" doc:"Only this action." example:"key.create"`
	Target auditTarget `query:"target" doc:"Only what was done, or tried, to exactly this: an id or a principal." example:"key-01k5xb7d2n8f4j6s0a9g3r5w1d"`
	From   string      `query:"from" format:"date-time" doc:"Only entries at this time or later."`
	To     string      `query:"to" format:"date-time" doc:"Only entries before this time."`
	Cursor string      `query:"cursor" doc:"Continues the list: next_cursor of the page before."`
	Limit  manageLimit `query:"limit" doc:"Results on a page."`
}

type auditText string

func (auditText) Schema(huma.Registry) *huma.Schema {
	return stringSchema(length(1, 100), matching(storable))
}

type auditTarget string

func (auditTarget) Schema(huma.Registry) *huma.Schema {
	return stringSchema(length(1, identity.MaxAuditTarget), matching(storable))
}

type listAuditOutput struct{ Body AuditLog }

func (a *api) listAudit(ctx context.Context, c *call, in *listAuditInput) (*listAuditOutput, error) {
	n := in.Limit.size()
	f := identity.AuditFilter{
		Actor: string(in.Actor), Action: identity.AuditAction(in.Action), Target: string(in.Target), Limit: n + 1,
	}
	var wrong []errs.Field
	for _, t := range []struct {
		name, value string
		into        *time.Time
	}{{"from", in.From, &f.From}, {"to", in.To, &f.To}} {
		var ok bool
		if t.value == "" {
			continue
		}
		if *t.into, ok = parseTime(t.value); !ok {
			wrong = append(wrong, errs.Field{Path: errs.At(t.name), Message: timeRule})
		}
	}
	for _, t := range []struct{ name, value string }{{"actor", f.Actor}, {"action", string(f.Action)}, {"target", f.Target}} {
		if !text.Storable(t.value) {
			wrong = append(wrong, errs.Field{Path: errs.At(t.name), Message: text.Unstorable})
		}
	}
	if in.Cursor != "" && !f.Continue(in.Cursor) {
		wrong = append(wrong, badCursor)
	}
	if len(wrong) > 0 {
		return nil, errs.InvalidFields(wrong...)
	}
	list, err := a.admin.Audit(ctx, c.Access, f)
	if err != nil {
		return nil, err
	}
	out := &listAuditOutput{}
	if len(list) > n {
		list = list[:n]
		next := f.Cursor(&list[n-1])
		out.Body.NextCursor = &next
	}
	out.Body.Entries = make([]AuditEntry, len(list))
	for i := range list {
		out.Body.Entries[i] = auditEntryOf(&list[i])
	}
	return out, nil
}

// AuditEntry is one line of the audit log.
type AuditEntry struct {
	ID        string  `json:"id" doc:"Names the entry." example:"audit-4fgh2kq7"`
	At        string  `json:"at" format:"date-time" doc:"When it was done or refused." example:"2026-03-02T10:00:00.000000Z"`
	Actor     string  `json:"actor" doc:"Who: a principal, operator for the command line on the data, or server." example:"user:ada"`
	KeyID     *string `json:"key_id" doc:"Through which credential; null if none." example:"key-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Action    string  `json:"action" doc:"What." example:"key.create"`
	Target    string  `json:"target" doc:"To what: an id or a principal; empty if it had none yet." example:"key-01k5xb7d2n8f4j6s0a9g3r5w1d"`
	Detail    string  `json:"detail" doc:"What is worth knowing beside it; never a secret." example:"for agent:scout: svc:tasks:read"`
	Outcome   string  `json:"outcome" doc:"Whether it was done." example:"done"`
	Code      *string `json:"code" doc:"Of a refusal: why; null if it was done." example:"identity.last_admin"`
	RequestID *string `json:"request_id" doc:"The request, as in the server's log; null if there was none." example:"K2J7QX4N5B3A-1f"`
	Address   *string `json:"address" doc:"The client's address; null if there was none." example:"192.0.2.7"`
}

// TransformSchema takes the list from the domain.
func (AuditEntry) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "outcome", oneOf([]identity.AuditOutcome{identity.Done, identity.Refused}))
	return s
}

// AuditLog is one page of the log.
type AuditLog struct {
	Entries    []AuditEntry `json:"entries" nullable:"false" doc:"The page, newest first; empty past the end."`
	NextCursor *string      `json:"next_cursor" doc:"Continues the list as the parameter cursor; null on the last page."`
}

func auditEntryOf(e *identity.AuditEntry) AuditEntry {
	return AuditEntry{
		ID: e.ID, At: stamp(e.At), Actor: e.Actor, KeyID: orNull(e.KeyID), Action: string(e.Action), Target: e.Target, Detail: e.Detail,
		Outcome: string(e.Outcome), Code: orNull(e.Code), RequestID: orNull(e.RequestID), Address: orNull(e.Address),
	}
}
