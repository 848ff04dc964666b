package web_test

import (
	"context"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

const proposalsPath = "/orgs/acme/proposals"

func TestProposalsAreListedByStatus(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	open, rejected := q.submit("agent:scout", "Cache the linter"), q.submit("user:bob", "Post every result")
	q.resolve(rejected, proposal.Rejected)
	page := q.get("bob", proposalsPath)
	mustContain(t, page, `id="`+open+`"`, "Cache the linter", "scout",
		`aria-current="page">Open<span class="num">1</span>`,
		`>Rejected<span class="num">1</span>`, `>All<span class="num">2</span>`)
	mustLack(t, page, "Post every result", `name="pick"`, "Drafts")
	mustContain(t, q.get("bob", linkNamed(t, page, "Rejected<")), "Post every result")
	mustContain(t, q.get("bob", linkNamed(t, page, "All<")), "Post every result", "Cache the linter",
		`<span class="chip warn">rejected</span>`)
	mustContain(t, q.get("ada", proposalsPath), `name="pick"`, "Approve selected…")
}

func TestTheListIsFilteredByItsURL(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.submit("agent:scout", "By an agent", func(s *proposal.Submission) {
		s.Category, s.Priority = proposal.Security,
			proposal.High
	})
	q.submit("user:bob", "By a person")
	for query, want := range map[string]string{
		"kind=user": "By a person", "kind=agent": "By an agent", "category=security": "By an agent",
		"priority=normal":          "By a person",
		"submitted_by=agent:scout": "By an agent", "q=person": "By a person", "evidence=no&kind=user": "By a person",
	} {
		page := q.get("bob", proposalsPath+"?"+query)
		rows := between(page, `id="queue"`, "</ul>")
		if !strings.Contains(rows, want) || strings.Count(rows, "<li") != 1 {
			t.Errorf("%s: got %s, want only %s", query, rows, want)
		}
		mustContain(t, page, `class="set"`, "Clear all")
	}
	mustContain(t, q.get("bob", proposalsPath+"?q=nowhere"), "Nothing matches", `href="/orgs/acme/proposals">Clear`)
	mustContain(t, q.get("bob", proposalsPath+"?submitted_by=scout"), "agent:scout or user:ada")
}

func TestOldestFirstIsOneClickAway(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.submit("agent:scout", "The first")
	q.submit("agent:scout", "The second")
	page := q.get("bob", proposalsPath)
	if strings.Index(page, "The first") < strings.Index(page, "The second") {
		t.Error("the newest is not the first")
	}
	page = q.get("bob", linkNamed(t, page, "Oldest first</a>"))
	if strings.Index(page, "The first") > strings.Index(page, "The second") {
		t.Error("the oldest is not the first")
	}
}

func TestPagesOfTheListFollowEachOther(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	for _, title := range numbered("Title %d", 60) {
		q.submit("agent:scout", title)
	}
	page := q.get("bob", proposalsPath+"?sort=oldest&kind=agent")
	mustContain(t, page, "1–50 of 60", "Title 49<")
	mustLack(t, page, "Title 50<", "First page")
	page = q.get("bob", linkNamed(t, page, "Next"))
	mustContain(t, page, "51–60 of 60", "Title 50<", "Title 59<", "sort=oldest")
	mustContain(t, q.get("bob", linkNamed(t, page, "First page")), "1–50 of 60")
}

func TestEveryEmptyListHasWords(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	mustContain(t, q.get("bob", proposalsPath), "No proposals yet", "Write the first one")
	id := q.submit("agent:scout", "One")
	q.resolve(id, proposal.Rejected)
	mustContain(t, q.get("bob", proposalsPath), "Nothing is open", "Everything is decided.")
	mustContain(t, q.get("bob", proposalsPath+"?status=resolved"), "Nothing is resolved yet")
	for _, bad := range []string{
		"status=x", "cursor=x", "sort=x", "category=x", "kind=x", "evidence=x", "q=!",
		"group=x",
	} {
		res := q.send("bob", http.MethodGet, proposalsPath+"?"+bad, nil)
		if res.Code != http.StatusUnprocessableEntity || !strings.Contains(res.Body.String(), "Show the open proposals") {
			t.Errorf("%s: got %d\n%s, want Code %v, containing Show the open proposals", bad, res.Code, res.Body,
				http.StatusUnprocessableEntity)
		}
	}
}

func TestAVoteIsCastChangedAndTakenBack(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	id := q.submit("agent:scout", "Vote on me")
	vote := func(choice, token string) string {
		at, page := q.follow("bob", proposalsPath+"/"+id+"/vote",
			url.Values{"choice": {choice}, "once": {token}, "back": {proposalsPath + "?sort=oldest"}})
		if at != proposalsPath+"?sort=oldest" {
			t.Errorf("the form leads to: got %v, want %v", at, proposalsPath+"?sort=oldest")
		}
		return page
	}
	tally := func(yes, no int) {
		t.Helper()
		if p := q.read(id); p.VotesFor != yes || p.VotesAgainst != no {
			t.Errorf("%d for, %d against; want %d and %d", p.VotesFor, p.VotesAgainst, yes, no)
		}
	}
	mustContain(t, vote("for", "token-1"), "You voted for.",
		`id="f-`+id+`" name="choice" value="none" aria-pressed="true"`)
	tally(1, 0)
	vote("for", "token-1") // a double click
	vote("for", "token-9") // another tab
	tally(1, 0)
	if _, n, err := q.proposals.History(context.Background(), q.as("user:ada", identity.ReadProposal), id,
		&proposal.Paging{}); err != nil || n != 2 {
		t.Errorf("the history has %d entries, want 2: %v", n, err)
	}
	vote("against", "token-1") // the same page, not reloaded
	tally(0, 1)
	vote("for", "token-1")
	tally(1, 0)
	mustContain(t, vote("none", "token-2"), "Your vote was withdrawn.")
	tally(0, 0)
	vote("none", "token-3")
	tally(0, 0)
	q.resolve(id, proposal.Rejected)
	mustContain(t, vote("for", "token-4"), "Your vote was not counted.", `<p class="notice bad" role="alert">`)
	if res := q.send("bob", http.MethodPost, proposalsPath+"/"+id+"/vote",
		url.Values{"choice": {"perhaps"}}); res.Code != http.StatusUnprocessableEntity {
		t.Errorf("an unknown choice: got %v, want Code %v", res.Code, http.StatusUnprocessableEntity)
	}
	if res := q.send("bob", http.MethodPost, proposalsPath+"/prop-none/vote",
		url.Values{"choice": {"for"}}); res.Code != http.StatusNotFound {
		t.Errorf("an unknown proposal: got %v, want Code %v", res.Code, http.StatusNotFound)
	}
}

// hostile is text that must be escaped everywhere.
const hostile = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>&lt;` + "\u202e"

func TestTextsOfOthersAreHarmlessInTheList(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	id := q.submit("agent:scout", `<script>alert(1)</script>"'><img src=x onerror=alert(1)>`,
		func(s *proposal.Submission) {
			s.Problem, s.SuggestedFix = hostile+"\n\n[x](javascript:alert(1))", "# Title\n\n"+hostile
		})
	for _, path := range []string{
		proposalsPath, proposalsPath + "?at=" + id, proposalsPath + "/" + id + "/pane?back=" + url.QueryEscape(hostile) +
			"&pos=" + url.QueryEscape(hostile),
		proposalsPath + "?q=" + url.QueryEscape(hostile), proposalsPath + "?submitted_by=" + url.QueryEscape(hostile),
		proposalsPath + "?fingerprint=" + url.QueryEscape(hostile), proposalsPath + "/decide?status=approved&pick=" + id +
			".1&back=" + url.QueryEscape(hostile),
		proposalsPath + "/decided?status=approved&not=" + id + ".status&not=" + url.QueryEscape(hostile),
	} {
		page := q.send("ada", http.MethodGet, path, nil).Body.String()
		mustLack(t, page, "<script>alert", "<img", `"javascript:`)
	}
	mustContain(t, q.get("ada", proposalsPath), "&lt;script&gt;alert(1)")
}

// htmx reads a list that is not JSON as a string, and then swaps nothing.
func TestTheSettingsOfScriptsAreJSON(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	text := html.UnescapeString(between(q.get("bob", proposalsPath), `name="htmx-config" content='`, `'`))
	var config struct {
		NoSwap []int `json:"noSwap"`
	}
	if err := json.Unmarshal([]byte(text), &config); err != nil || len(config.NoSwap) == 0 {
		t.Errorf("%q: got %v, want no error, len(NoSwap) not 0", text, err)
	}
}
