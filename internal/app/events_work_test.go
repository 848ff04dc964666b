package app

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/event"
)

// workEvents reads the events about proposals, follow-ups, friction and tasks step by step.
type workEvents struct {
	assigned
	after int64
}

// paths are where the records of subjects are read.
var paths = map[string]string{
	"proposal": "/orgs/main/proposals/", "followup": "/orgs/main/followups/", "friction": "/orgs/main/friction/",
	"task": "/orgs/main/a2a/tasks/",
}

// notInData are the members of a record that events omit: they depend on the reader, or are content.
var notInData = map[string][]string{
	"proposal": {"my_vote"}, "friction": {"evidence"}, "task": {"artifacts", "history", "status_message"},
}

// expect compares the types of the events since the last call, and their data with the records. It
// returns the subject of the last one.
func (s *workEvents) expect(want ...string) (subject string) {
	s.t.Helper()
	page, err := s.store.Events().Page(s.t.Context(), "main", event.Query{
		Filter: event.Filter{Viewer: event.Viewer{Admin: true}}, After: s.after, Limit: 100,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.after = page.Last
	var got []string
	for i := range page.Events {
		e := &page.Events[i]
		kind, id, _ := strings.Cut(e.Subject, ":")
		path := paths[kind]
		if path == "" {
			continue
		}
		got, subject = append(got, string(e.Type)), e.Subject
		var data map[string]any
		if err := json.Unmarshal(e.Data, &data); err != nil {
			s.t.Fatalf("%v: %s", err, e.Data)
		}
		code, _, record := s.do("GET", path+id, "")
		if code != http.StatusOK {
			s.t.Fatalf("get %s: got %d %v", e.Subject, code, record)
		}
		for _, name := range notInData[kind] {
			if _, ok := record[name]; !ok {
				s.t.Errorf("%s has no member %s", e.Subject, name)
			}
			delete(record, name)
		}
		if diff := cmp.Diff(record, data); diff != "" {
			s.t.Errorf("data of %s (-record +data):\n%s", e.Type, diff)
		}
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("got events %v, want %v", got, want)
	}
	return subject
}

// must sends a request and returns the response.
func (s *workEvents) must(method, path, body string) map[string]any {
	s.t.Helper()
	code, _, out := s.do(method, path, body)
	if code/100 != 2 {
		s.t.Fatalf("%s %s %s: got %d %v", method, path, body, code, out)
	}
	return out
}

// sends calls a method of A2A and returns the result.
func (s *workEvents) rpc(method, params string) {
	s.t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	if res, out := send(s.t, "POST", s.URL()+"/a2a/scout", s.First().Secret, body, ""); res.StatusCode != http.StatusOK ||
		strings.Contains(out, `"error"`) {
		s.t.Fatalf("%s: got %d %s", body, res.StatusCode, out)
	}
}

// The data of an event is the record as it is read after the change.
func TestEventsHaveTheRecord(t *testing.T) {
	eachAssigned(t, func(a assigned) {
		s := &workEvents{assigned: a}
		s.expect()
		const submission = `"title":"Retry \"all\" <hooks>","category":"reliability","problem":"They\nget lost.",
			"suggested_fix":"Retry: é, 漢, 😀."`
		draft := s.must("POST", "/orgs/main/proposals", `{"status":"draft",`+submission+`}`)
		s.expect("proposal.drafted")
		path := "/orgs/main/proposals/" + draft["id"].(string)
		for _, c := range []struct{ method, path, body, want string }{
			{"PATCH", path, `{"title":"Retry","priority":"high"}`, "proposal.edited"},
			{"PATCH", path, `{"status":"open"}`, "proposal.opened"},
			{"POST", path + "/vote", `{"vote":"for","comment":"yes"}`, "proposal.voted"},
			{"POST", path + "/vote", `{"vote":"against"}`, "proposal.voted"},
			{"DELETE", path + "/vote", ``, "proposal.vote_withdrawn"},
			{"PATCH", path, `{"status":"rejected","resolution_note":"no"}`, "proposal.rejected"},
			{"PATCH", path, `{"status":"open"}`, "proposal.reopened"},
		} {
			s.must(c.method, c.path, c.body)
			s.expect(c.want)
		}
		s.must("POST", "/orgs/main/proposals", `{`+submission+`}`)
		s.expect("proposal.submitted")

		approved := s.must("PATCH", path, `{"status":"approved"}`)
		s.expect("proposal.approved", "followup.created")
		todo := "/orgs/main/followups/" + approved["followup_id"].(string)
		for _, c := range []struct{ body, want string }{
			{`{"description":"All of it."}`, "followup.edited"},
			{`{"status":"in_progress"}`, "followup.started"},
			{`{"status":"canceled"}`, "followup.canceled"},
			{`{"status":"open"}`, "followup.reopened"},
			{`{"status":"done"}`, "followup.done"},
		} {
			s.must("PATCH", todo, c.body)
			s.expect(c.want)
		}
		s.must("PATCH", path, `{"status":"resolved"}`)
		s.expect("proposal.resolved")

		const friction = `{"fingerprint":"registry:timeout","title":"It times out","category":"reliability","problem":"p"}`
		s.must("POST", "/orgs/main/friction", friction)
		s.expect("friction.reported")
		s.must("POST", "/orgs/main/friction", friction)
		s.expect("friction.reported")
		s.must("POST", "/orgs/main/friction", friction)
		s.expect("friction.reported", "friction.filed", "proposal.submitted")

		for _, state := range []string{"completed", "failed", "rejected", "input-required", "auth-required"} {
			s.rpc("tasks/send", `{"id":"`+state+`","message":{"role":"user","parts":[{"type":"text","text":"hello"}]}}`)
			s.expect("task.created")
			claimed := s.must("POST", "/agents/scout/claim", `{}`)
			lease := claimed["tasks"].([]any)[0].(map[string]any)["lease"].(string)
			s.must("POST", "/agents/scout/leases/"+lease, `{"status":"`+state+`"}`)
			if state == "auth-required" {
				state = "input-required"
			}
			s.expect("task." + strings.ReplaceAll(state, "-", "_"))
		}
		s.rpc("tasks/cancel", `{"id":"input-required"}`)
		s.expect("task.canceled")
	})
}
