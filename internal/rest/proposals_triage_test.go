package rest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestADecisionNamesTheTextItWasMadeOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, bob, bot := w.admin("acme", "user:ada"), w.member("acme", "user:bob"), w.member("acme", "agent:fixer")
	p := w.submit(bob, "acme")
	path := proposals + "/" + p.ID
	if p.TextVersion != 1 {
		t.Errorf("text version of a new proposal = %d, want 1", p.TextVersion)
	}
	w.do(bot, "POST", path+"/vote", `{"vote":"for"}`).want(200)
	w.do(bob, "PATCH", path, `{"problem":"They vanish."}`).want(200).into(&p)
	if p.TextVersion != 2 {
		t.Errorf("text version after an edit = %d, want 2", p.TextVersion)
	}
	stale := w.do(ada, "PATCH", path, `{"status":"approved","text_version":1}`).want(412).problem()
	if stale.Code != "proposal.text_changed" || !strings.Contains(stale.Detail, "version 2 now") {
		t.Errorf("got %+v, want Code proposal.text_changed, containing version 2 now", stale)
	}
	for body, where := range map[string]string{
		`{"status":"approved","text_version":0}`:   "/text_version",
		`{"status":"approved","text_version":"2"}`: "/text_version",
		`{"text_version":2}`:                       "",
		`{"title":"x","text_version":0}`:           "/text_version",
	} {
		if got := at(w.do(ada, "PATCH", path, body).want(422).problem()); len(got) != 1 || got[0] != where {
			t.Errorf("%s: got %v, want len(got) 1, got[0] %v", body, got, where)
		}
	}
	// An edit checks the version, too.
	if stale := w.do(bob, "PATCH", path, `{"title":"x","text_version":1}`).want(412).
		problem(); stale.Code != "proposal.text_changed" {
		t.Errorf("got %+v, want Code proposal.text_changed", stale)
	}
	// A vote changes the ETag, but not the text version.
	w.do(bob, "POST", path+"/vote", `{"vote":"against"}`).want(200)
	w.do(bob, "PATCH", path, `{"priority":"high","text_version":2}`).want(200)
	w.do(ada, "PATCH", path, `{"status":"approved","text_version":2}`).want(200)
}

func TestVotesOfPeopleAndAgentsAreShownApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bob, bot := w.member("acme", "user:bob"), w.member("acme", "agent:fixer")
	path := proposals + "/" + w.submit(bob, "acme").ID
	w.do(bot, "POST", path+"/vote", `{"vote":"against"}`).want(200)
	w.do(bob, "POST", path+"/vote", `{"vote":"for"}`).want(200)
	var p Proposal
	w.do(bob, "GET", path, "").want(200).into(&p)
	want := VotesBy{People: Tally{For: 1}, Agents: Tally{Against: 1}}
	if p.VotesBy != want || p.VotesFor != 1 || p.VotesAgainst != 1 {
		t.Errorf("got %+v of %d and %d, want %+v of 1 and 1", p.VotesBy, p.VotesFor, p.VotesAgainst, want)
	}
}

// TestEvidenceIsNeverStale checks that a report changes lists, cached pages and ETags, although it
// changes neither the version of the proposal nor that of its text.
func TestEvidenceIsNeverStale(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bob, bot := w.member("acme", "user:bob"), w.member("acme", "agent:fixer")
	w.submit(bob, "acme")
	var filed FrictionOutcome
	for range 3 {
		w.do(bot, "POST", frictionURL, frictionBody).into(&filed)
	}
	path := proposals + "/" + *filed.ProposalID
	tag := ""
	for want := int64(3); want < 6; want++ {
		var list ProposalList
		w.do(bob, "GET", proposals+"?evidence=yes", "").want(200).into(&list)
		if len(list.Proposals) != 1 || list.Proposals[0].EvidenceCount != want ||
			*list.Proposals[0].Fingerprint != "registry:timeout" {
			t.Errorf("the list has %+v; want %d reports", list.Proposals, want)
		}
		res := w.do(bob, "GET", path, "", "If-None-Match", tag).want(200)
		var p Proposal
		res.into(&p)
		if p.EvidenceCount != want || *p.Fingerprint != "registry:timeout" || p.TextVersion != 1 {
			t.Errorf("%+v; want %d reports", p, want)
		}
		tag = res.Header.Get("ETag")
		w.do(bob, "GET", path, "", "If-None-Match", tag).want(304)
		w.do(bot, "POST", frictionURL, frictionBody).want(200)
	}
	// A version that was read before a report can be changed.
	w.do(bot, "PATCH", path, `{"priority":"high"}`, "If-Match", tag).want(200)
}

func TestTheListCanBeFilteredForTriage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bob, bot := w.member("acme", "user:bob"), w.member("acme", "agent:fixer")
	person, agent := w.submit(bob, "acme").ID, w.submit(bot, "acme").ID
	var filed FrictionOutcome
	for range 3 {
		w.do(bot, "POST", frictionURL, frictionBody).into(&filed)
	}
	w.do(bob, "POST", proposals, strings.Replace(submission, "{", `{"status":"draft",`, 1)).want(201)
	for query, want := range map[string][]string{
		"":                            {*filed.ProposalID, agent, person},
		"?submitted_by_kind=user":     {person},
		"?submitted_by_kind=agent":    {*filed.ProposalID, agent},
		"?submitted_by_kind=service":  {},
		"?submitted_by_kind=all":      {*filed.ProposalID, agent, person},
		"?evidence=yes":               {*filed.ProposalID},
		"?evidence=no":                {agent, person},
		"?fingerprint=registry:other": {},
		"?fingerprint=registry:timeout&evidence=yes":    {*filed.ProposalID},
		"?fingerprint=registry:timeout&status=approved": {},
	} {
		var list ProposalList
		w.do(bob, "GET", proposals+query, "").want(200).into(&list)
		got := []string{}
		for _, p := range list.Proposals {
			got = append(got, p.ID)
			if p.Excerpt != nil || p.TextVersion != 1 {
				t.Errorf("%s: got %+v, want Excerpt nil, TextVersion 1", query, p)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || list.Total != int64(len(want)) {
			t.Errorf("%s: total %d mismatch (-want +got):\n%s", query, list.Total, diff)
		}
		if strings.Contains(query, "status") {
			continue
		}
		var counts ProposalCounts
		w.do(bob, "GET", proposals+"/counts"+query, "").want(200).into(&counts)
		if counts.Counts.Open != int64(len(want)) {
			t.Errorf("%s: got %+v, want counts.Counts.Open %v", query, counts, int64(len(want)))
		}
	}
	var list ProposalList
	w.do(bob, "GET", proposals+"?include=excerpt&evidence=no", "").want(200).into(&list)
	if len(list.Proposals) != 2 || list.Proposals[0].Excerpt == nil || *list.Proposals[0].Excerpt != "They get lost." {
		t.Errorf("got %+v, want len(Proposals) 2, list.Proposals[0].Excerpt They get lost.", list.Proposals)
	}
	for query, where := range map[string]string{
		"?submitted_by_kind=robot": "query:submitted_by_kind", "?evidence=maybe": "query:evidence",
		"?include=problem": "query:include",
		"?fingerprint=":    "query:fingerprint", "?fingerprint=" + strings.Repeat("x", 201): "query:fingerprint",
	} {
		if got := at(w.do(bob, "GET", proposals+query, "").want(422).problem()); len(got) != 1 || got[0] != where {
			t.Errorf("%s: got %v, want len(got) 1, got[0] %v", query, got, where)
		}
	}
}

func TestCountsShowOnlyWhatTheCallerMaySee(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, bob, bot := w.admin("acme", "user:ada"), w.member("acme", "user:bob"), w.member("acme", "agent:fixer")
	w.submit(w.member("globex", "user:eve"), "globex")
	draft := strings.Replace(submission, "{", `{"status":"draft",`, 1)
	w.do(bob, "POST", proposals, draft).want(201)
	rejected := w.submit(bot, "acme").ID
	w.submit(bot, "acme")
	w.do(ada, "PATCH", proposals+"/"+rejected, `{"status":"rejected","resolution_note":"no"}`).want(200)
	for who, key := range map[string]string{"ada": ada, "bob": bob, "bot": bot} {
		want := ProposalCounts{Counts: StatusCounts{Draft: 1, Open: 1, Rejected: 1}, Total: 3}
		if who == "bot" {
			want.Counts.Draft, want.Total = 0, 2
		}
		var got ProposalCounts
		w.do(key, "GET", proposals+"/counts", "").want(200).into(&got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: mismatch (-want +got):\n%s", who, diff)
		}
		w.do(key, "GET", proposals+"/counts?q=retry", "").want(200).into(&got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s with words: mismatch (-want +got):\n%s", who, diff)
		}
	}
	w.do(bob, "GET", proposals+"/counts?status=open", "").want(422)
	w.do(bob, "GET", "/api/v1/orgs/globex/proposals/counts", "").want(404)
	w.do("", "GET", proposals+"/counts", "").want(401)
	w.do(bob, "POST", proposals+"/counts", "{}").want(405)
}
