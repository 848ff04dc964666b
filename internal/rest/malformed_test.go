package rest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// fault is an invalid request and the expected places of its errors.
type fault struct {
	rule   string
	body   string
	status int
	at     []string // pointers, or "in:parameter"
}

var submitFaults = []fault{
	{"an empty body", "", 400, nil},
	{"white space only", "  \n", 400, []string{""}},
	{"text that is not JSON", "title=x", 400, []string{""}},
	{"JSON that ends early", `{"title":"a"`, 400, []string{""}},
	{"data after the object", submission + `{}`, 400, []string{""}},
	{"a comma at the end", `{"title":"a",}`, 400, []string{""}},
	{"a duplicate key", `{"title":"a","title":"b"}`, 400, []string{"/title"}},
	{"a duplicate key, escaped", `{"title":"a","\u0074itle":"b"}`, 400, []string{"/title"}},
	{"a duplicate key deep inside", `{"x":{"y":1,"y":2}}`, 400, []string{"/x/y"}},
	{"invalid UTF-8", "{\"title\":\"\xff\"}", 400, []string{"/title"}},
	{"a lone surrogate", `{"title":"\ud800"}`, 400, []string{"/title"}},
	{"nesting over 32 levels", `{"title":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, 400, []string{""}},
	{"a byte order mark", "\ufeff" + submission, 400, []string{""}},
	{"an array", `[]`, 422, []string{""}},
	{"a string", `"x"`, 422, []string{""}},
	{"null", `null`, 422, []string{""}},
	{"a number", `1e400`, 422, []string{""}},
	{"no field at all", `{}`, 422, []string{"/title", "/category", "/problem", "/suggested_fix"}},
	{
		"unknown fields beside missing ones", `{"foo":1,"a/b~c":2}`, 422,
		[]string{"/foo", "/a~1b~0c", "/title", "/category", "/problem", "/suggested_fix"},
	},
	{"another case of a name", strings.Replace(submission, `"title"`, `"Title"`, 1), 422, []string{"/Title", "/title"}},
	{"a field that the service sets", strings.Replace(submission, `{`,
		`{"id":"prop-1","submitted_by":"user:x","votes_for":9,`, 1), 422, []string{"/id", "/submitted_by", "/votes_for"}},
	{
		"wrong types, all of them",
		`{"title":1,"category":[],"problem":{},"suggested_fix":true,"priority":1.5,"status":false}`, 422,
		[]string{"/title", "/category", "/problem", "/suggested_fix", "/priority", "/status"},
	},
	{
		"null everywhere",
		`{"title":null,"category":null,"problem":null,"suggested_fix":null,"priority":null,"status":null}`, 422,
		[]string{"/title", "/category", "/problem", "/suggested_fix", "/priority", "/status"},
	},
	{
		"blank and unknown values together", `{"title":" \t","category":"nope","problem":"","suggested_fix":"\n"}`, 422,
		[]string{"/title", "/category", "/problem", "/suggested_fix"},
	},
	{
		"a wrong type beside a broken rule", `{"title":7,"category":"nope","problem":"p","suggested_fix":"s"}`, 422,
		[]string{"/title", "/category"},
	},
	{"a title of 201 characters", with("title", strings.Repeat("ä", 201)), 422, []string{"/title"}},
	{"a title of two lines", with("title", `a\nb`), 422, []string{"/title"}},
	{"a title with NUL", with("title", `a\u0000b`), 422, []string{"/title"}},
	{"a problem of 20001 characters", with("problem", strings.Repeat("x", 20001)), 422, []string{"/problem"}},
	{"a fix of 20001 characters", with("suggested_fix", strings.Repeat("x", 20001)), 422, []string{"/suggested_fix"}},
	{"a category in capitals", with("category", "Reliability"), 422, []string{"/category"}},
	{"an unknown priority", with("priority", "urgent"), 422, []string{"/priority"}},
	{"an empty priority", with("priority", ""), 422, []string{"/priority"}},
	{"a status that is no start", with("status", "approved"), 422, []string{"/status"}},
	{"an empty status", with("status", ""), 422, []string{"/status"}},
}

// with returns a submission with one member added or replaced.
func with(name, value string) string {
	members := map[string]string{"title": "t", "category": "process", "problem": "p", "suggested_fix": "s"}
	members[name] = value
	parts := make([]string, 0, len(members))
	for k, v := range members {
		parts = append(parts, fmt.Sprintf(`%q:"%s"`, k, v))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func TestAMalformedSubmissionNamesEveryBrokenField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	checkFaults(t, w, ada, "POST", proposals, submitFaults)
	if res := w.do(ada, "GET", proposals+"?status=all", ""); !strings.HasPrefix(res.Body, `{"proposals":[],"total":0,`) {
		t.Errorf("got %s, want no proposals", res.Body)
	}
}

func checkFaults(t *testing.T, w *world, secret, method, path string, faults []fault) {
	t.Helper()
	for _, f := range faults {
		t.Run(f.rule, func(t *testing.T) {
			p := w.do(secret, method, path, f.body, "Content-Type", "application/json").want(f.status).problem()
			if code := map[int]string{400: "request.malformed", 422: "request.invalid"}[f.status]; p.Code != code {
				t.Errorf("code %q, want %q", p.Code, code)
			}
			if diff := cmp.Diff(f.at, at(p), cmpopts.EquateEmpty(), cmpopts.SortSlices(strings.Compare)); diff != "" {
				t.Errorf("%s mismatch (-want +got):\n%s", p.Detail, diff)
			}
		})
	}
}

func TestAMalformedPatchNamesEveryBrokenField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	p := w.submit(ada, "acme")
	checkFaults(t, w, ada, "PATCH", proposals+"/"+p.ID, []fault{
		{"an empty body", "", 400, nil},
		{"no field", `{}`, 422, []string{""}},
		{"an unknown field alone", `{"x":1}`, 422, []string{"/x"}},
		{"a note without a status", `{"resolution_note":"x"}`, 422, []string{"/resolution_note"}},
		{"a note with an edit", `{"resolution_note":"x","title":"y"}`, 422, []string{"/resolution_note"}},
		{"a status with edits", `{"status":"approved","title":"x","priority":"low"}`, 422, []string{"/title", "/priority"}},
		{"an unknown status", `{"status":"done"}`, 422, []string{"/status"}},
		{"an empty status", `{"status":""}`, 422, []string{"/status"}},
		{"a status that is no string", `{"status":1}`, 422, []string{"/status"}},
		{"a null status", `{"status":null,"title":"x"}`, 422, []string{"/status", "/title"}},
		{"a null note", `{"status":"approved","resolution_note":null}`, 422, []string{"/resolution_note"}},
		{"a rejection without a reason", `{"status":"rejected"}`, 422, []string{"/resolution_note"}},
		{"a rejection with a blank reason", `{"status":"rejected","resolution_note":" "}`, 422, []string{"/resolution_note"}},
		{
			"a note of 20001 characters", `{"status":"approved","resolution_note":"` + strings.Repeat("x", 20001) + `"}`, 422,
			[]string{"/resolution_note"},
		},
		{"a blank title", `{"title":" "}`, 422, []string{"/title"}},
		{
			"everything wrong", `{"title":"","category":"x","problem":" ","suggested_fix":1,"priority":null}`, 422,
			[]string{"/title", "/category", "/problem", "/suggested_fix", "/priority"},
		},
		{"a field that nobody may set", `{"votes_for":3}`, 422, []string{"/votes_for"}},
	})
	var after Proposal
	w.do(ada, "GET", proposals+"/"+p.ID, "").want(200).into(&after)
	if diff := cmp.Diff(p, after); diff != "" {
		t.Errorf("a rejected patch changed the record (-want +got):\n%s", diff)
	}
}

func TestAMalformedVoteNamesEveryBrokenField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	checkFaults(t, w, ada, "POST", proposals+"/"+w.submit(ada, "acme").ID+"/vote", []fault{
		{"an empty body", "", 400, nil},
		{"no vote", `{}`, 422, []string{"/vote"}},
		{"an unknown vote", `{"vote":"abstain"}`, 422, []string{"/vote"}},
		{"a number", `{"vote":1}`, 422, []string{"/vote"}},
		{"null", `{"vote":null,"comment":null}`, 422, []string{"/vote", "/comment"}},
		{"a voter", `{"vote":"for","voter":"user:bob"}`, 422, []string{"/voter"}},
		{
			"a comment of 4001 characters", `{"vote":"for","comment":"` + strings.Repeat("x", 4001) + `"}`, 422,
			[]string{"/comment"},
		},
		{"a control character", `{"vote":"for","comment":"\u0007"}`, 422, []string{"/comment"}},
		{"a duplicate", `{"vote":"for","vote":"against"}`, 400, []string{"/vote"}},
	})
}

func TestAMalformedFollowupNamesEveryBrokenField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	const followups = "/api/v1/orgs/acme/followups"
	checkFaults(t, w, ada, "POST", followups, []fault{
		{"no title", `{}`, 422, []string{"/title"}},
		{
			"everything wrong", `{"title":"","description":1,"assignee":"bob","x":0}`, 422,
			[]string{"/title", "/description", "/assignee", "/x"},
		},
		{"a service as the assignee", `{"title":"t","assignee":"service:ci"}`, 422, []string{"/assignee"}},
		{"a status", `{"title":"t","status":"done"}`, 422, []string{"/status"}},
		{"a title of two lines", `{"title":"a\nb"}`, 422, []string{"/title"}},
		{
			"a description of 20001 characters", `{"title":"t","description":"` + strings.Repeat("x", 20001) + `"}`, 422,
			[]string{"/description"},
		},
	})
	var followup Followup
	w.do(ada, "POST", followups, `{"title":"t"}`).want(201).into(&followup)
	checkFaults(t, w, ada, "PATCH", followups+"/"+followup.ID, []fault{
		{"no field", `{}`, 422, []string{""}},
		{
			"everything wrong", `{"title":" ","description":null,"status":"x","assignee":"y"}`, 422,
			[]string{"/title", "/description", "/status", "/assignee"},
		},
		{"a null assignee", `{"assignee":null}`, 422, []string{"/assignee"}},
	})
}

func TestAMalformedQueryNamesTheParameter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	id := w.submit(ada, "acme").ID
	const followups = "/api/v1/orgs/acme/followups"
	for _, c := range []struct {
		target string
		status int
		at     []string
	}{
		{proposals + "?limit=0", 422, []string{"query:limit"}},
		{proposals + "?limit=101", 422, []string{"query:limit"}},
		{proposals + "?limit=-1", 422, []string{"query:limit"}},
		{proposals + "?limit=ten", 422, []string{"query:limit"}},
		{proposals + "?limit=1.5", 422, []string{"query:limit"}},
		{proposals + "?limit=", 422, []string{"query:limit"}},
		{proposals + "?limit", 422, []string{"query:limit"}},
		{proposals + "?limit=0x10", 422, []string{"query:limit"}},
		{proposals + "?page=0", 422, []string{"query:page"}},
		{proposals + "?page=-1", 422, []string{"query:page"}},
		{proposals + "?page=99999999999999999999", 422, []string{"query:page"}},
		{proposals + "?page=9223372036854775807", 422, []string{"query:page"}},
		{proposals + "?page=1%00", 422, []string{"query:page"}},
		{proposals + "?page=1&page=2", 422, []string{"query:page"}},
		{proposals + "?status=done", 422, []string{"query:status"}},
		{proposals + "?status=Open", 422, []string{"query:status"}},
		{proposals + "?status=", 422, []string{"query:status"}},
		{proposals + "?status=open&status=draft", 422, []string{"query:status"}},
		{proposals + "?status=open,draft", 422, []string{"query:status"}},
		{proposals + "?category=x", 422, []string{"query:category"}},
		{proposals + "?priority=x", 422, []string{"query:priority"}},
		{proposals + "?sort=x", 422, []string{"query:sort"}},
		{proposals + "?cursor=x", 422, []string{"query:cursor"}},
		{proposals + "?cursor=AAAA&page=2", 422, []string{"query:cursor"}},
		{proposals + "?q=" + strings.Repeat("x", 201), 422, []string{"query:q"}},
		{proposals + "?q=a%ff", 422, []string{"query:q"}},
		{proposals + "?q=---", 422, []string{"query:q"}},
		{proposals + "?submitted_by=%00", 422, []string{"query:submitted_by"}},
		{proposals + "?Status=open", 422, []string{"query:Status"}},
		{
			proposals + "?foo=1&bar=2&limit=0&page=x&status=y", 422,
			[]string{"query:bar", "query:foo", "query:limit", "query:page", "query:status"},
		},
		{proposals + "?%ff=1", 422, []string{"query:\ufffd"}},
		{proposals + "?limit=%zz", 400, nil},
		{proposals + "?a=1;b=2", 400, nil},
		{proposals + "/" + id + "?x=1", 422, []string{"query:x"}},
		{proposals + "/" + id + "/votes?limit=0&page=0", 422, []string{"query:limit", "query:page"}},
		{proposals + "/" + id + "/history?limit=101", 422, []string{"query:limit"}},
		{proposals + "/" + id + "/history?page=9223372036854775807", 422, []string{"query:page"}},
		{followups + "?status=x&limit=0", 422, []string{"query:limit", "query:status"}},
		{followups + "?assignee=bob", 422, []string{"query:assignee"}},
		{followups + "?page=9223372036854775807", 422, []string{"query:page"}},
		{followups + "?proposal_id=%00", 422, []string{"query:proposal_id"}},
	} {
		t.Run(c.target, func(t *testing.T) {
			p := w.do(ada, "GET", c.target, "").want(c.status).problem()
			if diff := cmp.Diff(c.at, at(p), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s mismatch (-want +got):\n%s", p.Detail, diff)
			}
		})
	}
	// Writes take no query parameters.
	p := w.do(ada, "POST", proposals+"?dry_run=1", submission).want(422).problem()
	if !cmp.Equal(at(p), []string{"query:dry_run"}) {
		t.Errorf("got %+v, want %v", p, []string{"query:dry_run"})
	}
}

func TestFiltersThatMeanNothingAreAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	w.submit(ada, "acme")
	for _, query := range []string{
		"", "?category=all&submitted_by=all&priority=all", "?status=all", "?q=web",
		"?limit=100&page=1", "?sort=votes",
	} {
		var list ProposalList
		w.do(ada, "GET", proposals+query, "").want(200).into(&list)
		if list.Total != 1 || len(list.Proposals) != 1 {
			t.Errorf("%q: got %+v, want Total 1, len(Proposals) 1", query, list)
		}
	}
}

func TestOnlyJSONUpTo256KiBIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	for _, c := range []struct {
		contentType string
		status      int
	}{
		{"text/plain", 415},
		{"application/x-www-form-urlencoded", 415},
		{"application/json; charset=iso-8859-1", 415},
		{"application/xml+json+x", 415},
		{"multipart/form-data; boundary=x", 415},
		{"application/json;;", 415},
		{"json", 415},
		{"application/json", 201},
		{"APPLICATION/JSON ; Charset=UTF-8", 201},
		{"application/vnd.acme+json", 201},
		{"application/merge-patch+json", 415},
		{"application/json-patch+json", 415},
	} {
		res := w.do(ada, "POST", proposals, submission, "Content-Type", c.contentType)
		if res.Status != c.status {
			t.Errorf("%q: %d, want %d: %s", c.contentType, res.Status, c.status, res.Body)
		}
		if c.status == 415 {
			if p := res.problem(); p.Code != "request.unsupported_media_type" {
				t.Errorf("got %+v, want Code request.unsupported_media_type", p)
			}
		}
	}
	w.do(ada, "POST", proposals, submission, "Content-Type", "").want(201)
	patch := w.do(ada, "PATCH", proposals+"/"+w.submit(ada, "acme").ID, `{"title":"x"}`, "Content-Type",
		"application/merge-patch+json").want(415)
	if patch.Header.Get("Accept-Patch") != "application/json" {
		t.Errorf("got %v, want Accept-Patch application/json", patch.Header)
	}
	// A body of the limit is accepted; one more byte is not.
	room := 256<<10 - len(submission)
	w.do(ada, "POST", proposals, submission+strings.Repeat(" ", room)).want(201)
	if p := w.do(ada, "POST", proposals, submission+strings.Repeat(" ", room+1)).want(413).
		problem(); p.Code != "request.too_large" {
		t.Errorf("got %+v, want Code request.too_large", p)
	}
	huge := w.do(ada, "PATCH", proposals+"/"+w.submit(ada, "acme").ID, strings.Repeat("[", 1<<20)).want(413)
	if huge.Header.Get("Content-Type") == "" {
		t.Error("no content type")
	}
}

func TestAnAnswerToThousandsOfFaultsStaysShort(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	var body strings.Builder
	body.WriteString("{")
	for i := range 20000 {
		fmt.Fprintf(&body, `"k%d":1,`, i)
	}
	body.WriteString(`"` + strings.Repeat("x", 5000) + `":1}`)
	res := w.do(ada, "POST", proposals, body.String()).want(422)
	if len(res.Body) > 16<<10 {
		t.Errorf("the response has %d bytes, want at most 16 KiB", len(res.Body))
	}
	res = w.do(ada, "GET", proposals+"?"+strings.Repeat("a", 4000)+"=1", "").want(http.StatusUnprocessableEntity)
	if len(res.Body) > 4<<10 {
		t.Errorf("the response has %d bytes, want at most 4 KiB", len(res.Body))
	}
}
