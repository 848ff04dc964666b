package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

func TestThePaneShowsTheRowInFocus(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	var ids []string
	for _, title := range []string{"One", "Two", "Three"} {
		ids = append(ids, q.submit("agent:scout", title, func(s *proposal.Submission) { s.Problem = "**Much** " + title }))
	}
	page := q.get("ada", proposalsPath+"?sort=oldest&at="+ids[1])
	pane := between(page, `id="pane"`, "<dialog")
	mustContain(t, page, `" data-key="`+ids[1]+`" aria-current="true">`)
	mustContain(t, pane, "2 of 3", "<strong>Much</strong> Two", `action="/orgs/acme/proposals/`+ids[1]+`/decide"`,
		`name="text_version" value="1"`, `name="status" value="approved"`, `name="status" value="rejected"`,
		`name="back" value="/orgs/acme/proposals?at=`+ids[2]+`&amp;sort=oldest"`)
	// After the last row, the previous row is shown.
	mustContain(t, q.get("ada", proposalsPath+"?sort=oldest&at="+ids[2]),
		`value="/orgs/acme/proposals?at=`+ids[1]+`&amp;sort=oldest"`)
	// Members can read it, but not decide.
	page = q.get("bob", proposalsPath+"?at="+ids[0])
	mustContain(t, page, "<strong>Much</strong> One")
	mustLack(t, page, "/decide")
	mustLack(t, q.get("ada", proposalsPath+"?at=prop-gone"), `class="pane-in"`)

	part := q.get("ada", proposalsPath+"/"+ids[1]+"/pane?pos=7&of=50&back="+url.QueryEscape(proposalsPath+"?at="+ids[2]))
	mustContain(t, part, "7 of 50", "<strong>Much</strong> Two", `value="/orgs/acme/proposals?at=`+ids[2]+`"`)
	mustLack(t, part, "<html", "<main")
	if res := q.send("ada", http.MethodGet, proposalsPath+"/prop-gone/pane", nil); res.Code != http.StatusNotFound {
		t.Errorf("the pane of nothing: got %v, want Code %v", res.Code, http.StatusNotFound)
	}
}

func TestSeveralAreDecidedTogether(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	var picks []string
	for _, title := range []string{"One", "Two", "Three"} {
		picks = append(picks, q.submit("agent:scout", title)+".1")
	}
	page := q.get("ada", proposalsPath+"/decide?status=approved&pick="+strings.Join(picks,
		"&pick=")+"&back="+url.QueryEscape(proposalsPath+"?sort=oldest"))
	mustContain(t, page, "creates 3 follow-ups", "One", "Two", "Three", `value="`+picks[0]+`" checked`)
	form := url.Values{"status": {"approved"}, "pick": picks, "back": {proposalsPath + "?sort=oldest"}, "once": {"token"}}
	at, page := q.follow("ada", proposalsPath+"/decide", form)
	if at != proposalsPath+"?sort=oldest" {
		t.Errorf("it leads to: got %v, want %v", at, proposalsPath+"?sort=oldest")
	}
	mustContain(t, page, "3 proposals were approved.")
	for _, p := range picks {
		if got := q.read(strings.TrimSuffix(p, ".1")); got.Status != proposal.Approved || got.FollowupID == "" {
			t.Errorf("got %+v, want Status %v, FollowupID not empty", got, proposal.Approved)
		}
	}
	q.resolve(q.submit("agent:scout", "Four"), proposal.Rejected)
	page = q.get("ada", proposalsPath+"?status=rejected&select=page")
	mustContain(t, page, "Reopen selected…", " checked")
	pick := between(page, `name="pick" form="bulk" id="s-`, `"`) + ".1"
	page = q.get("ada",
		proposalsPath+"/decide?status=open&pick="+pick+"&back="+url.QueryEscape(proposalsPath+"?select=page&status=rejected"))
	mustContain(t, page, "Reopen 1 proposal", "Reopen</button>",
		`name="back" value="/orgs/acme/proposals?status=rejected"`)
	// A status change has the same name in the pane, in bulk decisions and on the page.
	for _, c := range []struct{ pick, from, to, word string }{
		{picks[0], "approved", "resolved", "Resolve"},
		{pick, "rejected", "open", "Reopen"},
	} {
		id := strings.TrimSuffix(c.pick, ".1")
		button := `value="` + c.to + `">` + c.word + `</button>`
		mustContain(t, q.get("ada", proposalsPath+"?status="+c.from+"&at="+id), button, c.word+" selected…")
		mustContain(t, q.get("ada", proposalsPath+"/"+id), button)
	}
	mustContain(t, q.get("ada", proposalsPath+"?status=all"), `<span class="chip busy">approved</span>`)
	mustContain(t, q.get("ada", proposalsPath+"/"+strings.TrimSuffix(picks[0], ".1")),
		`<span class="chip busy">approved</span>`)
	// Sending it again changes nothing and shows the same message.
	if _, page = q.follow("ada", proposalsPath+"/decide", form); !strings.Contains(page, "3 proposals were approved.") {
		t.Errorf("a second click: got %v, want containing 3 proposals were approved.", page)
	}
}

func TestWhatCouldNotBeDecidedIsReported(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	fine, edited, decided := q.submit("agent:scout", "Fine"), q.submit("user:bob", "Edited"),
		q.submit("agent:scout", "Decided")
	text := "Another problem"
	if _, err := q.proposals.Edit(t.Context(), q.as("user:bob", identity.ChangeProposal), edited,
		proposal.Edit{Problem: &text}); err != nil {
		t.Fatal(err)
	}
	q.resolve(decided, proposal.Rejected)
	picks := []string{fine + ".1", edited + ".1", decided + ".1"}
	page := q.get("ada", proposalsPath+"/decide?status=approved&pick="+strings.Join(picks, "&pick="))
	mustContain(t, page, "creates 1 follow-up.", "The text changed since you selected it", "It was decided meanwhile.")
	mustLack(t, page, `value="`+picks[1]+`"`, `value="`+picks[2]+`"`)
	at, page := q.follow("ada", proposalsPath+"/decide",
		url.Values{"status": {"approved"}, "pick": picks, "once": {"token"}})
	mustContain(t, page, "1 proposal was approved.", "2 proposals were not approved", "The text changed", "it is rejected",
		`href="/orgs/acme/proposals/`+edited+`"`, `href="/orgs/acme/proposals/`+decided+`"`)
	mustLack(t, page, "Fine<")
	mustContain(t, q.get("ada", at), "2 proposals were not approved", "The text changed", "it is rejected")
	if q.read(edited).Status != proposal.Open || q.read(fine).Status != proposal.Approved {
		t.Error("the wrong ones were decided")
	}
	// With the new version, it can be decided.
	mustContain(t, q.get("ada", proposalsPath), `value="`+edited+`.2"`)
	q.follow("ada", proposalsPath+"/decide", url.Values{
		"status": {"approved"}, "pick": {edited + ".2"},
		"once": {"again"},
	})
	if q.read(edited).Status != proposal.Approved {
		t.Error("the text that was read again cannot be decided")
	}
}

func TestDecidingTogetherSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	id := q.submit("agent:scout", "One")
	pick := id + ".1"
	res := q.send("ada", http.MethodPost, proposalsPath+"/decide",
		url.Values{"status": {"rejected"}, "pick": {pick}, "once": {"t"}})
	if res.Code != http.StatusUnprocessableEntity {
		t.Errorf("a rejection without a reason: got %v, want Code %v", res.Code, http.StatusUnprocessableEntity)
	}
	mustContain(t, res.Body.String(), `aria-invalid="true"`, "required to reject", "One")
	if q.read(id).Status != proposal.Open {
		t.Error("it was decided")
	}
	mustContain(t, q.get("ada", proposalsPath+"/decide?status=approved"), "Nothing is selected")
	for _, query := range []string{
		"status=x&pick=" + pick, "pick=" + pick, "status=approved&pick=x", "status=approved&pick=" + id + ".0",
		"status=approved" + strings.Repeat("&pick="+pick, 101),
	} {
		if res := q.send("ada", http.MethodGet, proposalsPath+"/decide?"+query,
			nil); res.Code != http.StatusUnprocessableEntity {
			t.Errorf("%.60s: got %d, want Code %v", query, res.Code, http.StatusUnprocessableEntity)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if res := q.send("bob", method, proposalsPath+"/decide?status=approved&pick="+pick,
			url.Values{"status": {"approved"}, "pick": {pick}}); res.Code != http.StatusForbidden {
			t.Errorf("%s by a member: got %d, want %d", method, res.Code, http.StatusForbidden)
		}
	}
	for _, query := range []string{"status=approved", "status=x&not=" + id, "status=approved" +
		strings.Repeat("&not="+id, 101)} {
		if res := q.send("ada", http.MethodGet, proposalsPath+"/decided?"+query,
			nil); res.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: got %d, want Code %v", query, res.Code, http.StatusUnprocessableEntity)
		}
	}
}

func TestSelectingAPageNeedsNoScript(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	for _, title := range numbered("Title %d", 60) {
		q.submit("agent:scout", title)
	}
	page := q.get("ada", linkNamed(t, q.get("ada", proposalsPath), "Next"))
	page = q.get("ada", linkNamed(t, page, "Select all 10"))
	if n := strings.Count(page, " checked"); n != 10 {
		t.Errorf("%d rows are selected, want the 10 of the second page", n)
	}
	mustLack(t, q.get("ada", linkNamed(t, page, "Select none")), " checked")
}

func TestGroupsAreListedAndChosen(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.submit("agent:scout", "One")
	q.submit("agent:scout", "Two")
	q.submit("user:bob", "Three")
	page := q.get("ada", proposalsPath+"?group=submitter")
	groups := between(page, `id="groups"`, "</ul>")
	mustContain(t, groups, `<span class="num big">2</span>`, `<span class="num big">1</span>`, "scout", "bob")
	page = q.get("ada", hrefs(groups)[0])
	mustContain(t, page, "One", "Two", "Select all 2")
	mustLack(t, page, "Three")
	mustContain(t, q.get("ada", proposalsPath+"?group=fingerprint"), "No groups")
}

func TestANoteIsSavedAndUsedAgain(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	first, second := q.submit("agent:scout", "One"), q.submit("agent:scout", "Two")
	form := url.Values{
		"status": {"rejected"}, "pick": {first + ".1"}, "resolution_note": {"We have it already."},
		"save_as": {"Known"}, "once": {"t"},
	}
	q.follow("ada", proposalsPath+"/decide", form)
	q.follow("ada", proposalsPath+"/decide", form) // sent twice, saved once
	page := q.get("ada", proposalsPath+"/decide?status=rejected&pick="+second+".1")
	if n := strings.Count(page, ">Known<"); n != 1 {
		t.Fatalf("the note is offered %d times, want once\n%s", n, mainOf(page))
	}
	note := between(page, `name="saved_note" data-fills="#resolution_note"><option value="">None</option><option value="`,
		`"`)
	q.follow("ada", proposalsPath+"/decide", url.Values{
		"status": {"rejected"}, "pick": {second + ".1"},
		"saved_note": {note}, "once": {"u"},
	})
	if p := q.read(second); p.Status != proposal.Rejected || p.ResolutionNote != "We have it already." {
		t.Errorf("got %+v, want Status %v, ResolutionNote We have it already.", p, proposal.Rejected)
	}
	third := q.submit("agent:scout", "Three")
	mustContain(t, q.get("ada", proposalsPath+"?at="+third), `name="saved_note" data-fills="#note-`+third+`"`,
		`<option value="`+note+`" data-text="We have it already.">Known</option>`)
	for field, wrong := range map[string]url.Values{
		"save_as":    {"resolution_note": {"Long"}, "save_as": {strings.Repeat("x", 101)}},
		"saved_note": {"saved_note": {"note-gone"}},
	} {
		wrong["status"], wrong["pick"], wrong["once"] = []string{"rejected"}, []string{third + ".1"}, []string{field}
		res := q.send("ada", http.MethodPost, proposalsPath+"/decide", wrong)
		if res.Code != http.StatusUnprocessableEntity || !strings.Contains(res.Body.String(), `id="err-`+field+`"`) {
			t.Errorf("%s: got %d, want 422 and the error\n%s", field, res.Code, mainOf(res.Body.String()))
		}
	}
	if q.read(third).Status != proposal.Open {
		t.Error("a form with a mistake decided something")
	}
}
