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
		description: "Newest first. An entry is written in the same transaction as its action, and never changed or " +
			"deleted. Refusals are limited to 20 at once and one every ten seconds per principal; omitted ones are " +
			"counted." + needsAdmin,
	}, a.listAudit)
}

type listAuditInput struct {
	OrgPath
	Actor  auditText   `query:"actor" doc:"Filter by actor: a principal, operator, or server." example:"user:ada"`
	Action auditText   `query:"action" doc:"Filter by action." example:"key.create"`
	Target auditTarget `query:"target" doc:"Filter by target: an id or a principal." example:"key-01k5xb7d2n8f4j6s0a9g3r5w1d"`
	From   string      `query:"from" format:"date-time" doc:"Only entries at this time or later."`
	To     string      `query:"to" format:"date-time" doc:"Only entries before this time."`
	Cursor string      `query:"cursor" doc:"Cursor: next_cursor of the previous page."`
	Limit  manageLimit `query:"limit" doc:"Page size."`
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
	given := []struct{ name, value string }{{"actor", f.Actor}, {"action", string(f.Action)}, {"target", f.Target}}
	for _, t := range given {
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

// AuditEntry is an entry of the audit log.
type AuditEntry struct {
	ID        string  `json:"id" doc:"Entry id." example:"audit-4fgh2kq7"`
	At        string  `json:"at" format:"date-time" doc:"When it happened."`
	Actor     string  `json:"actor" doc:"A principal, operator (the command line on the store), or server." example:"user:ada"`
	KeyID     *string `json:"key_id" doc:"Id of the credential; null without one." example:"key-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Action    string  `json:"action" doc:"Action." example:"key.create"`
	Target    string  `json:"target" doc:"An id or a principal; empty if there was none yet." example:"key-01k5xb7d2n8f4j6s0a9g3r5w1d"`
	Detail    string  `json:"detail" doc:"Further details; never a secret." example:"for agent:scout: svc:tasks:read"`
	Outcome   string  `json:"outcome" doc:"Whether it was done or refused." example:"done"`
	Code      *string `json:"code" doc:"Error code of a refusal; null if it was done." example:"identity.last_admin"`
	RequestID *string `json:"request_id" doc:"Request id, as in the server's log; null without a request." example:"K2J7QX4N5B3A-1f"`
	Address   *string `json:"address" doc:"IP address of the client; null without a request." example:"192.0.2.7"`
}

// TransformSchema adds the enumeration of the domain.
func (AuditEntry) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "outcome", oneOf([]identity.AuditOutcome{identity.Done, identity.Refused}))
	return s
}

// AuditLog is a page of the audit log.
type AuditLog struct {
	Entries    []AuditEntry `json:"entries" nullable:"false" doc:"Entries, newest first; empty past the end."`
	NextCursor *string      `json:"next_cursor" doc:"Cursor of the next page; null on the last page."`
}

func auditEntryOf(e *identity.AuditEntry) AuditEntry {
	return AuditEntry{
		ID: e.ID, At: stamp(e.At), Actor: e.Actor, KeyID: orNull(e.KeyID), Action: string(e.Action),
		Target: e.Target, Detail: e.Detail, Outcome: string(e.Outcome), Code: orNull(e.Code),
		RequestID: orNull(e.RequestID), Address: orNull(e.Address),
	}
}
