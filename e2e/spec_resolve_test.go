package e2e

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var resolveTable = table{"3.1 and 4.4 resolving", []row{
	{rule: "4.2 submit", as: "ann", call: "POST /proposals", body: good, status: 201, save: "p"},
	{
		rule: "4.4 rejecting needs a reason", as: "root", call: "PATCH /proposals/{p}", body: `{"status":"rejected"}`,
		status: 422, want: complains("/resolution_note"),
	},
	{
		rule: "4.4 a blank reason is none", as: "root", call: "PATCH /proposals/{p}",
		body: `{"status":"rejected","resolution_note":" "}`, status: 422, want: complains("/resolution_note"),
	},
	{
		rule: "3.1 open → rejected, with the reason", as: "root", call: "PATCH /proposals/{p}",
		body: `{"status":"rejected","resolution_note":"Too dear."}`, status: 200,
		want: `{"id":"{p}","status":"rejected","resolution_note":"Too dear.","allowed_transitions":["open"],
			"followup_id":null}`, header: []string{"Etag: .+"},
	},
	{
		rule: "3.1 rejected → open (reopen)", as: "root", call: "PATCH /proposals/{p}", body: `{"status":"open"}`,
		status: 200,
		want:   `{"status":"open","resolution_note":"","allowed_transitions":["approved","rejected"]}`,
	},
	{
		rule: "3.1 open → approved creates a follow-up", as: "root", call: "PATCH /proposals/{p}",
		body: `{"status":"approved","resolution_note":"Do it."}`, status: 200,
		want: `{"status":"approved","resolution_note":"Do it.","followup_id":"<followup>","followup_status":"open",
			"resolvable":false,"allowed_transitions":["resolved"]}`,
	},
	{
		rule: "3.1 exactly one follow-up", as: "ann", call: "GET /followups?proposal_id={p}", status: 200,
		want: `{"=":0,"followups":[{"proposal_id":"{p}","title":"Retry failed uploads","description":"<string>",
			"status":"open","assignee":null,"text_hash":"<string>"}],"total":1,"page":1}`,
	},
	{
		rule: "3.1 approving twice is not in the table", as: "root", call: "PATCH /proposals/{p}",
		body: `{"status":"approved"}`, status: 409,
		want:   `{"code":"proposal.transition_not_allowed","allowed":["resolved"]}`,
		header: []string{`Content-Type: application/problem\+json`},
	},
	{rule: "3.1 and makes no second follow-up", as: "ann", call: "GET /followups", status: 200, want: `{"total":1}`},
	{
		rule: "3.1 approved → resolved", as: "root", call: "PATCH /proposals/{p}",
		body: `{"status":"resolved","resolution_note":"Done."}`, status: 200,
		want: `{"status":"resolved","resolution_note":"Done.","allowed_transitions":[]}`,
	},
	{
		rule: "3.1 nothing follows resolved", as: "root", call: "PATCH /proposals/{p}", body: `{"status":"open"}`,
		status: 409, want: `{"allowed":[]}`,
	},
	{
		rule: "4.5 the history keeps every step, the earlier note too", as: "reader", call: "GET /proposals/{p}/history",
		status: 200,
		want: `{"=":0,"history":[
			{"=":0,"seq":1,"at":"<time>","actor":"user:ann","kind":"submitted","to":"open"},
			{"=":0,"seq":2,"at":"<time>","actor":"user:root","kind":"status_changed","from":"open","to":"rejected","note":"Too dear."},
			{"kind":"status_changed","from":"rejected","to":"open"},
			{"kind":"status_changed","from":"open","to":"approved","note":"Do it."},
			{"kind":"status_changed","from":"approved","to":"resolved","note":"Done."}],"total":5,"page":1}`,
	},
	{
		rule: "4.4 an unknown status", as: "root", call: "PATCH /proposals/{p}", body: `{"status":"closed"}`, status: 422,
		want: complains("/status"),
	},
	{
		rule: "4.4 an unknown proposal", as: "root", call: "PATCH /proposals/{none}", body: `{"status":"open"}`, status: 404,
		want: `{"code":"resource.not_found"}`,
	},
	{
		rule: "4.4 an id of another shape", as: "root", call: "PATCH /proposals/7", body: `{"status":"open"}`, status: 404,
		want: `{"code":"resource.not_found"}`,
	},
	{rule: "4.2 a draft", as: "ann", call: "POST /proposals", body: but(`status:"draft"`), status: 201, save: "d"},
	{
		rule: "3.1 its submitter alone cannot open it", as: "ann", call: "PATCH /proposals/{d}", body: `{"status":"open"}`,
		status: 403, want: `{"scope":"svc:admin:admin"}`,
	},
	{
		rule: "3.1 draft → open", as: "root", call: "PATCH /proposals/{d}", body: `{"status":"open"}`, status: 200,
		want: `{"status":"open"}`,
	},
	{
		rule: "3.1 svc:admin:admin alone is enough", as: "admin", call: "PATCH /proposals/{d}", body: `{"status":"approved"}`,
		with: []string{"Idempotency-Key: r1"}, status: 200,
		want: `{"status":"approved"}`,
	},
	{
		rule: "4.4 a retry with its Idempotency-Key gets the first answer", as: "admin", call: "PATCH /proposals/{d}",
		body: `{"status":"approved"}`, with: []string{"Idempotency-Key: r1"}, status: 200,
		want: `{"status":"approved"}`, header: []string{"Idempotency-Replayed: true"},
	},
	{
		rule: "4.4 and makes no second follow-up", as: "ann", call: "GET /followups?proposal_id={d}", status: 200,
		want: `{"total":1}`,
	},
}}

// statusTable is section 3.1, as the specification prints it.
var statusTable = map[string][]string{
	"draft":    {"open"},
	"open":     {"approved", "rejected"},
	"approved": {"resolved"},
	"rejected": {"open"},
	"resolved": {},
}

// testStatusPairs tries all 25 pairs: 5 succeed, 20 return 409 with the allowed ones.
func testStatusPairs(t *testing.T, s *server) {
	w := newWorld(t, s, "pairs")
	statuses := []string{"draft", "open", "approved", "rejected", "resolved"}
	succeeded, refused := 0, 0
	for _, from := range statuses {
		for _, to := range statuses {
			id := w.proposalIn(t, from)
			a := w.call(t, "root", "PATCH /proposals/"+id, `{"status":"`+to+`","resolution_note":"why"}`)
			if slices.Contains(statusTable[from], to) {
				succeeded++
				if a.status != 200 || a.str("status") != to {
					t.Errorf("%s → %s: got %d %s, want 200", from, to, a.status, a.body)
				}
				continue
			}
			refused++
			var problem struct {
				Code    string
				Allowed []string
			}
			err := json.Unmarshal(a.body, &problem)
			if err != nil || a.status != 409 || problem.Code != "proposal.transition_not_allowed" {
				t.Errorf("%s → %s: got %d %s, want 409", from, to, a.status, a.body)
			}
			if d := cmp.Diff(statusTable[from], problem.Allowed,
				cmpopts.SortSlices(func(a, b string) bool { return a < b })); d != "" {
				t.Errorf("%s → %s: what is allowed differs (-want +got):\n%s", from, to, d)
			}
			if now := w.must(t, "root", "GET /proposals/"+id, "").str("status"); now != from {
				t.Errorf("status after the refused %s → %s = %s, want %s", from, to, now, from)
			}
		}
	}
	if succeeded != 5 || refused != 20 {
		t.Errorf("%d pairs are allowed and %d are not, want 5 and 20", succeeded, refused)
	}
}

// proposalIn creates a proposal and moves it to a status along the table.
func (w *world) proposalIn(t *testing.T, status string) string {
	t.Helper()
	if status == "draft" {
		return w.must(t, "ann", "POST /proposals", but(`status:"draft"`)).str("id")
	}
	id := w.must(t, "ann", "POST /proposals", good).str("id")
	steps := map[string][]string{"approved": {"approved"}, "rejected": {"rejected"}, "resolved": {"approved", "resolved"}}
	for _, step := range steps[status] {
		w.must(t, "root", "PATCH /proposals/"+id, `{"status":"`+step+`","resolution_note":"why"}`)
	}
	return id
}
