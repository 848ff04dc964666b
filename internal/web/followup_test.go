package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/task"
)

// followup creates a follow-up without a proposal.
func (r *room) followup(title string, edit ...followup.Edit) followup.Followup {
	r.Helper()
	a := r.access("user:ada", identity.CreateFollowup, identity.Admin)
	out, err := r.followups.Create(r.Context(), a, followup.Creation{Title: title, Description: "Do *it*."})
	if err != nil {
		r.Fatal(err)
	}
	a = r.access("user:ada", identity.ChangeFollowup, identity.Admin)
	for _, e := range edit {
		if out, err = r.followups.Change(r.Context(), a, out.Followup.ID, e); err != nil {
			r.Fatal(err)
		}
	}
	return out.Followup
}

func (r *room) readFollowup(id string) followup.Followup {
	r.Helper()
	f, err := r.followups.Get(r.Context(), r.access("user:ada", identity.ReadFollowup), id)
	if err != nil {
		r.Fatal(err)
	}
	return f
}

func TestFollowupsAreGroupedAndPaged(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	r.bob.get("/followups").want(http.StatusOK).has("No follow-ups yet", "Approving a proposal creates one.")
	for i := range 120 {
		r.followup(fmt.Sprintf("Open work %03d", i))
	}
	done, bob := followup.Done, "user:bob"
	r.followup("Finished work", followup.Edit{Status: &done})
	r.followup("Work of Bob", followup.Edit{Assignee: &bob})
	page := r.bob.get("/followups").want(http.StatusOK)
	page.has("Work of Bob", "Finished work", `id="group-open"`, `id="group-done"`, "All 121 of “Open”", "status=open").
		lacks(`id="group-canceled"`, "Open work 000")
	if n := strings.Count(page.Body, "<li id=\"fup-"); n != 11 {
		t.Errorf("%d rows; want 10 open and 1 done", n)
	}
	second := r.bob.get("/followups?status=open&page=2").want(http.StatusOK).has("51–100 of 121", "page=1", "page=3")
	if n := strings.Count(second.Body, "<li id=\"fup-"); n != 50 {
		t.Errorf("%d rows; want 50", n)
	}
	r.bob.get("/followups?status=open&page=99").want(http.StatusOK).has("past the last one", "/followups?status=open")
	r.bob.get("/followups?status=canceled").want(http.StatusOK).has("No follow-up has this status.")
	r.bob.get("/followups?who=me").has("Work of Bob").lacks("Finished work", "Open work")
	r.cat.get("/followups?who=me").has("Nothing is assigned to you here")
	r.bob.get("/followups?who=none&status=done").has("Finished work").lacks("Work of Bob")
	r.bob.get("/followups?who=agent:scout").has("No follow-ups match", "Show all follow-ups")
	r.bob.get("/followups?status=nonsense").want(http.StatusUnprocessableEntity)
	r.bob.get("/followups?who=nonsense").want(http.StatusUnprocessableEntity)
	for _, page := range []string{"-1", "x", "9223372036854775807", "99999999999999999999"} {
		r.bob.get("/followups?status=open&page=" + page).want(http.StatusOK).has("1–50 of 121")
		r.bob.get("/agents?page=" + page).want(http.StatusOK).has("scout")
	}
}

func TestAFollowupIsAddedAndChanged(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	r.bob.post("/followups", "title", " ", "description", "Kept words.", "assignee", "user:bob").
		want(http.StatusUnprocessableEntity).
		has(`id="err-title"`, "Kept words.", `value="user:bob" selected`)
	first := r.bob.post("/followups", "title", "By hand", "description", "Some **words**", "once", "t1").
		want(http.StatusSeeOther).Header.Get("Location")
	if again := r.bob.post("/followups", "title", "By hand", "description", "Some **words**", "once", "t1").
		Header.Get("Location"); again != first {
		t.Errorf("got %v %v, want %v", again, first, first)
	}
	at := strings.TrimPrefix(first, "/orgs/acme")
	id := at[strings.LastIndex(at, "/")+1:]
	r.bob.get(at).want(http.StatusOK).has("By hand", "The follow-up was added.", "Take it")
	list := url.Values{"back": {"/orgs/acme/followups?status=open"}}.Get("back")
	r.bob.post(at, "assignee", "user:bob", "back", list).leads("/followups?status=open")
	r.bob.get(at).has("The follow-up is assigned to bob.").lacks("Take it")
	r.bob.post(at, "status", "in_progress", "once", "s1").leads(at)
	r.bob.post(at, "status", "in_progress", "once", "s1").leads(at)
	r.bob.post(at, "status", "done").leads(at)
	r.cat.post(at, "status", "canceled").want(http.StatusConflict).has("another user has moved it", "Reopen")
	r.bob.post(at, "status", "nonsense").want(http.StatusUnprocessableEntity)
	r.bob.post(at, "assignee", "user:nobody").want(http.StatusUnprocessableEntity).has(`id="err-assignee"`)
	r.bob.post(at).want(http.StatusUnprocessableEntity)
	// An edit with the version that was read.
	version := fmt.Sprint(r.readFollowup(id).Version)
	r.bob.post(at, "title", "New title", "description", "New words.", "version", version).leads(at)
	r.cat.post(at, "title", "Another title", "description", "Cat’s words.", "version", version).
		want(http.StatusPreconditionFailed).
		has("another user has changed it"[1:], "Cat’s words.", `value="Another title"`)
	if f := r.readFollowup(id); f.Title != "New title" || f.Assignee != "user:bob" || f.Status != followup.Done {
		t.Errorf("got %+v, want Title New title, Assignee user:bob, Status %v", f, followup.Done)
	}
	for _, bad := range []string{"x", "task-01k5x8r2m4v7c9w3q6z1t0h8ye", "fup-01k5x8r2m4v7c9w3q6z1t0h8ye"} {
		r.ada.get("/followups/" + bad).want(http.StatusNotFound)
		r.ada.post("/followups/"+bad, "status", "done").want(http.StatusNotFound)
	}
}

func TestAFollowupShowsItsProposal(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	p := r.submit()
	r.move(p.ID, proposal.Approved)
	id := r.get(p.ID).FollowupID
	r.cat.get("/followups/"+id).want(http.StatusOK).
		has("/proposals/"+p.ID, "Its text has not changed since it was approved.", p.TextHash(), "Retry it three times.")
	r.cat.get("/followups").has("/orgs/acme/proposals/" + p.ID)
}

// Outputs of an agent are text, or downloads that never run. Large outputs are not on the page.
func TestOutputsOfAnAgent(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	p := r.submit()
	r.move(p.ID, proposal.Approved)
	id := r.get(p.ID).FollowupID
	file := func(name string, content []byte) task.Part {
		return task.Part{Kind: task.FilePart, Name: name, MediaType: "text/html", Bytes: content}
	}
	large := strings.Repeat("L", 3<<20)
	r.work(r.readFollowup(id), task.Report{
		State: task.Completed, Message: &task.Message{
			Role:  task.RoleAgent,
			Parts: []task.Part{{Kind: task.TextPart, Text: "Done, " + evil}},
		},
		Artifacts: []task.ArtifactUpdate{
			{Artifact: task.Artifact{
				ID: "a1", Name: "report " + evil, Description: evil,
				Parts: []task.Part{{Kind: task.TextPart, Text: "All is well. " + evil}},
			}},
			{Artifact: task.Artifact{ID: "a2", Name: "files", Parts: []task.Part{
				file("../..\\evil\u202e\".html", []byte("<script>alert(1)</script>")), file("", []byte(large)),
				{Kind: task.DataPart, Data: []byte(`{"a":1}`)},
				{Kind: task.FilePart, Name: "far", URL: "https://evil.example/x"},
				{Kind: task.TextPart, Text: large},
			}}},
		},
	})
	page := r.ada.get("/followups/" + id).want(http.StatusOK)
	page.has("completed", "Done, &lt;script&gt;", "All is well.", "the agent is done", "evil.html", "3.0 MB",
		"https://evil.example/x", `/outputs/1/0"`, "The text goes on.")
	page.lacks("<script>alert", "<img", `href="https:`)
	if len(page.Body) > 100<<10 {
		t.Errorf("the page has %d bytes, want at most 100 KiB", len(page.Body))
	}
	// The page of the proposal links to them.
	r.ada.get("/proposals/"+p.ID).want(http.StatusOK).
		has("The outputs are large", "/followups/"+id+"#work", "Done, &lt;script&gt;").lacks("<script>alert")

	got := r.ada.get("/followups/" + id + "/outputs/1/0").want(http.StatusOK)
	if got.Body != "<script>alert(1)</script>" || got.Header.Get("Content-Type") != "application/octet-stream" ||
		got.Header.Get("X-Content-Type-Options") != "nosniff" ||
		!strings.HasPrefix(got.Header.Get("Content-Security-Policy"), "sandbox;") {
		t.Errorf("got %v %s, want an attachment in a sandbox", got.Header, got.Body)
	}
	if d := got.Header.Get("Content-Disposition"); d != `attachment; filename=evil.html` {
		t.Errorf("got %v, want attachment; filename=evil.html", d)
	}
	if got := r.ada.get("/followups/" + id + "/outputs/1/1").want(http.StatusOK); got.Body != large {
		t.Errorf("got %v, want Body %v", len(got.Body), large)
	}
	if got := r.ada.get("/followups/" + id + "/outputs/1/2").want(http.StatusOK); got.Body != `{"a":1}` {
		t.Errorf("got %v, want Body {\"a\":1}", got.Body)
	}
	for _, bad := range []string{"9/0", "1/9", "-1/0", "x/y", "0/99999999999999999999"} {
		r.ada.get("/followups/" + id + "/outputs/" + bad).want(http.StatusNotFound)
	}
	// Members who may not read tasks see only the state, as in the REST API.
	r.bob.get("/followups/"+id).want(http.StatusOK).has("completed", "Admins see what the agent made.").
		lacks("All is well.", "/outputs/", "Done, ")
	r.bob.get("/followups/" + id + "/outputs/1/0").want(http.StatusForbidden)
}

// The page of a member's own task shows the same outputs as that of a follow-up.
func TestOutputsOfATask(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	at := strings.TrimPrefix(r.bob.post("/agents/scout/tasks", "message", "Write it", "once", "t1").
		want(http.StatusSeeOther).Header.Get("Location"), "/orgs/acme")
	r.report(task.Report{
		State: task.Completed, Message: &task.Message{
			Role:  task.RoleAgent,
			Parts: []task.Part{{Kind: task.TextPart, Text: "Done, " + evil}},
		},
		Artifacts: []task.ArtifactUpdate{{Artifact: task.Artifact{ID: "a", Name: "report", Parts: []task.Part{
			{Kind: task.TextPart, Text: "One "},
			{Kind: task.TextPart, Text: "two."},
			{Kind: task.DataPart, Data: []byte(`{"a":1}`)},
			{Kind: task.FilePart, Name: "page.html", Bytes: []byte(evil)},
			{Kind: task.TextPart, Text: strings.Repeat("L", 1<<20)},
			{Kind: task.TextPart, Text: strings.Repeat("M", 1<<20)},
		}}}},
	})
	page := r.bob.get(at).want(http.StatusOK).has("report", ">One two.</pre>", "{&#34;a&#34;:1}",
		"Download <bdi>page.html</bdi>", at+`/outputs/0/3"`, "The text goes on.", at+`/outputs/0/4"`, "2.0 MB")
	if page.lacks("<script>alert", "<img", strings.Repeat("M", 8), `/outputs/0/5"`); len(page.Body) > 100<<10 {
		t.Errorf("the page has %d bytes, want at most 100 KiB", len(page.Body))
	}
	got := r.bob.get(at + "/outputs/0/3").want(http.StatusOK)
	if got.Body != evil || !strings.HasPrefix(got.Header.Get("Content-Security-Policy"), "sandbox;") {
		t.Errorf("got %v %s, want %s in a sandbox", got.Header, got.Body, evil)
	}
	if got := r.bob.get(at + "/outputs/0/0").want(http.StatusOK).Body; got != "One two." {
		t.Errorf("got %v, want One two.", got)
	}
	if got := r.bob.get(at + "/outputs/0/4").want(http.StatusOK).Body; len(got) != 2<<20 ||
		!strings.HasSuffix(got, "LM"+strings.Repeat("M", 1<<20-1)) {
		t.Errorf("got %d bytes, want %d", len(got), 2<<20)
	}
	for _, bad := range []string{"1/0", "0/9", "-1/0", "x/y"} {
		r.bob.get(at + "/outputs/" + bad).want(http.StatusNotFound)
	}
	r.cat.get(at + "/outputs/0/3").want(http.StatusNotFound) // the task belongs to bob
}

// Texts that are too long for a page are cut and can be downloaded.
func TestManyLongOutputs(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	f := r.followup("Long work")
	var parts []task.Part
	for range 10 {
		parts = append(parts, task.Part{Kind: task.TextPart, Text: strings.Repeat("ä", 8<<10)},
			task.Part{Kind: task.DataPart, Data: []byte(`{}`)})
	}
	r.work(f, task.Report{State: task.Completed, Artifacts: []task.ArtifactUpdate{{Artifact: task.Artifact{
		ID:    "a",
		Parts: parts,
	}}}})
	page := r.ada.get("/followups/"+f.ID).want(http.StatusOK).has("The text goes on.", `/outputs/0/18"`, `/outputs/0/19"`)
	if len(page.Body) > 100<<10 {
		t.Errorf("the page has %d bytes, want at most 100 KiB", len(page.Body))
	}
}

func TestAnAgentIsAssignedAFollowup(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	f := r.followup("For an agent")
	at := "/followups/" + f.ID
	r.bob.get(at).has(`value="agent:scout"`)
	for range 2 {
		r.bob.post(at, "assignee", "agent:scout", "once", "a1").leads(at)
	}
	if got := r.readFollowup(f.ID); got.Assignee != "agent:scout" || got.TaskState != "submitted" {
		t.Errorf("got %+v, want Assignee agent:scout, TaskState submitted", got)
	}
	r.bob.get(at).has("waits for the agent", `value="agent:scout" selected`)
	r.bob.get("/followups").has("waits for the agent")
	// Members cannot choose each other, but the form keeps the current assignee.
	cat := "user:cat"
	r.followup("For Cat", followup.Edit{Assignee: &cat})
	r.bob.get("/followups").has(`<option value="user:cat" selected>`)
}
