package rest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
)

const frictionBody = `{"fingerprint":"registry:timeout","title":"The registry times out",` +
	`"category":"reliability","problem":"Pulls fail.","evidence":"504"}`

const frictionURL = "/api/v1/orgs/acme/friction"

func TestFrictionFilesAProposal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, fixer := w.member("acme", "user:ada"), w.member("acme", "agent:fixer")
	report := func(key, body string, status int, headers ...string) (o FrictionOutcome) {
		t.Helper()
		w.do(key, "POST", frictionURL, body, headers...).want(status).into(&o)
		return o
	}
	if o := report(ada, frictionBody, 200); o.Count != 1 || o.Threshold != 3 || o.Filed || o.ProposalID != nil ||
		!o.Counted {
		t.Errorf("first: got %+v, want Count 1, Threshold 3, Filed false, ProposalID nil, Counted true", o)
	}
	named := strings.Replace(frictionBody, `"evidence"`, `"occurrence":"run-1","evidence"`, 1)
	report(ada, named, 200)
	if o := report(ada, named, 200); o.Count != 2 || o.Counted {
		t.Errorf("a repeat: got %+v, want Count 2, Counted false", o)
	}
	third := report(fixer, frictionBody, 201, "Idempotency-Key", "k")
	if !third.Filed || third.Count != 3 || third.ProposalID == nil {
		t.Fatalf("third: got %+v, want Filed true, Count 3, ProposalID not nil", third)
	}
	again := w.do(fixer, "POST", frictionURL, frictionBody, "Idempotency-Key", "k").want(201)
	if again.Header.Get("Idempotency-Replayed") != "true" {
		t.Error("a repeated request is not shown as one")
	}
	var p Proposal
	w.do(ada, "GET", "/api/v1/orgs/acme/proposals/"+*third.ProposalID, "").want(200).into(&p)
	if p.SubmittedBy != "agent:fixer" || p.Status != "open" || !strings.Contains(p.Problem, "504") {
		t.Errorf("got %+v, want SubmittedBy agent:fixer, Status open, containing 504", p)
	}
	if o := report(ada, frictionBody, 200); o.Filed || o.Count != 4 || *o.ProposalID != p.ID {
		t.Errorf("fourth: got %+v, want Filed false, Count 4, ProposalID %v", o, p.ID)
	}
	report(ada, strings.Replace(frictionBody, "registry:timeout", "other", 1), 200)

	var list FrictionList
	w.do(ada, "GET", frictionURL+"?limit=1", "").want(200).into(&list)
	if len(list.Friction) != 1 || list.Friction[0].Fingerprint != "other" || list.NextCursor == nil {
		t.Fatalf("got %+v, want len(Friction) 1, list.Friction[0].Fingerprint other, NextCursor not nil", list)
	}
	w.do(ada, "GET", frictionURL+"?limit=1&cursor="+*list.NextCursor, "").want(200).into(&list)
	if len(list.Friction) != 1 || list.Friction[0].Count != 4 || list.NextCursor != nil {
		t.Errorf("got %+v, want len(Friction) 1, list.Friction[0].Count 4, NextCursor nil", list)
	}
	var record FrictionRecord
	w.do(ada, "GET", frictionURL+"/registry:timeout", "").want(200).into(&record)
	if len(record.Evidence) != 4 || record.Evidence[0].Seq != 4 || *record.ProposalID != p.ID {
		t.Errorf("got %+v, want len(Evidence) 4, record.Evidence[0].Seq 4, ProposalID %v", record, p.ID)
	}
	w.do(ada, "GET", frictionURL+"/nobody-met-this", "").want(404)
	w.do(ada, "GET", frictionURL+"/No%20Fingerprint", "").want(404)
}

func TestFrictionSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, bob := w.admin("acme", "user:ada"), w.member("acme", "user:bob")
	const target = "/api/v1/orgs/acme/settings/friction"
	read := func(key string) int {
		var s FrictionSettings
		w.do(key, "GET", target, "").want(200).into(&s)
		return s.Threshold
	}
	if n := read(bob); n != friction.DefaultThreshold {
		t.Errorf("at first it is %d, want %v", n, friction.DefaultThreshold)
	}
	if p := w.do(bob, "PUT", target, `{"threshold":2}`).want(403).problem(); p.Scope != string(identity.Admin) {
		t.Errorf("got %+v, want Scope %v", p, string(identity.Admin))
	}
	for _, body := range []string{
		`{"threshold":1}`, `{"threshold":101}`, `{"threshold":-1}`, `{}`, `{"threshold":null}`,
		`{"threshold":"3"}`,
	} {
		if p := w.do(ada, "PUT", target, body).want(422).problem(); cmp.Diff([]string{"/threshold"}, at(p)) != "" {
			t.Errorf("%s: got %v, want /threshold", body, at(p))
		}
	}
	w.do(ada, "PUT", target, `{"threshold":3,"x":1}`).want(422)
	w.do(ada, "PUT", target, `{"threshold":`).want(400)
	w.do(ada, "PUT", target, `{"threshold":0}`).want(200)
	for range 4 {
		w.do(bob, "POST", frictionURL, frictionBody).want(200)
	}
	if n := read(bob); n != friction.Off {
		t.Errorf("switched off it is %d, want %v", n, friction.Off)
	}
	w.do(ada, "PUT", target, `{"threshold":2}`).want(200)
	log := w.do(ada, "GET", "/api/v1/orgs/acme/audit?action=friction.threshold", "").want(200).Body
	if strings.Count(log, `"outcome":"done"`) != 2 || !strings.Contains(log, `"outcome":"refused"`) ||
		!strings.Contains(log, `"detail":"2"`) {
		t.Errorf("got %v, want two entries that are done, one that is refused, and the detail 2", log)
	}
	w.do(bob, "POST", frictionURL, frictionBody).want(201)
}

func TestFrictionRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.member("acme", "user:ada")
	for _, c := range []struct {
		name, body string
		status     int
		at         []string
	}{
		{"nothing", `{}`, 422, []string{"/fingerprint", "/title", "/category", "/problem"}},
		{
			"no fingerprint", `{"fingerprint":"Has Spaces","title":"t","category":"process","problem":"p"}`, 422,
			[]string{"/fingerprint"},
		},
		{"a long fingerprint", `{"fingerprint":"` + strings.Repeat("a", 201) +
			`","title":"t","category":"process","problem":"p"}`, 422, []string{"/fingerprint"}},
		{
			"a category", `{"fingerprint":"f","title":"t","category":"x","problem":"p","priority":"x"}`, 422,
			[]string{"/category", "/priority"},
		},
		{
			"a title of two lines", `{"fingerprint":"f","title":"t\nu","category":"process","problem":"p"}`, 422,
			[]string{"/title"},
		},
		{"a long problem", `{"fingerprint":"f","title":"t","category":"process","problem":"` +
			strings.Repeat("p", friction.MaxProblem+1) + `"}`, 422, []string{"/problem"}},
		{"much evidence", `{"fingerprint":"f","title":"t","category":"process","problem":"p","evidence":"` +
			strings.Repeat("e", friction.MaxEvidence+1) + `"}`, 422, []string{"/evidence"}},
		{
			"evidence with NUL", `{"fingerprint":"f","title":"t","category":"process","problem":"p","evidence":"\u0000"}`, 422,
			[]string{"/evidence"},
		},
		{"a long occurrence", `{"fingerprint":"f","title":"t","category":"process","problem":"p","occurrence":"` +
			strings.Repeat("o", friction.MaxOccurrence+1) + `"}`, 422, []string{"/occurrence"}},
		{
			"an empty priority", `{"fingerprint":"f","title":"t","category":"process","problem":"p","priority":""}`, 422,
			[]string{"/priority"},
		},
		{
			"an unknown field", `{"fingerprint":"f","title":"t","category":"process","problem":"p","severity":1}`, 422,
			[]string{"/severity"},
		},
		{
			"null", `{"fingerprint":"f","title":"t","category":"process","problem":"p","evidence":null}`, 422,
			[]string{"/evidence"},
		},
		{"a number", `{"fingerprint":7,"title":"t","category":"process","problem":"p"}`, 422, []string{"/fingerprint"}},
		{"no JSON", `{"fingerprint":`, 400, nil},
		{"a key twice", `{"title":"a","title":"b"}`, 400, nil},
	} {
		p := w.do(ada, "POST", frictionURL, c.body).want(c.status).problem()
		if c.at != nil {
			if diff := cmp.Diff(c.at, at(p)); diff != "" {
				t.Errorf("%s: mismatch (-want +got):\n%s", c.name, diff)
			}
		}
	}
	w.do(ada, "POST", frictionURL, frictionBody, "Content-Type", "text/plain").want(415)
	w.do(ada, "POST", frictionURL, strings.Repeat(" ", 300<<10)+frictionBody).want(413)
	w.do("", "POST", frictionURL, frictionBody).want(401)
	if p := w.do(w.key("acme", "user:eve", identity.TasksRead), "POST", frictionURL, frictionBody).want(403).
		problem(); p.Scope != string(identity.TasksWrite) {
		t.Errorf("got %+v, want Scope %v", p, string(identity.TasksWrite))
	}
	if p := w.do(w.member("acme", "service:ci"), "POST", frictionURL, frictionBody).want(403).
		problem(); p.Code != "auth.not_a_member" {
		t.Errorf("got %+v, want Code auth.not_a_member", p)
	}
	w.do(w.member("globex", "user:eve"), "POST", frictionURL, frictionBody).want(404)
	for _, query := range []string{
		"?limit=0", "?limit=101", "?limit=x", "?cursor=x", "?cursor=", "?page=2",
		"?limit=1&limit=2",
	} {
		w.do(ada, "GET", frictionURL+query, "").want(http.StatusUnprocessableEntity)
	}
	var list FrictionList
	w.do(ada, "GET", frictionURL, "").want(200).into(&list)
	if len(list.Friction) != 0 {
		t.Errorf("a rejected report left %+v, want none", list)
	}
}
