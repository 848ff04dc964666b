package proposal

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/errs/errstest"
	"github.com/parley-dev/parley/internal/identity"
)

func actor(kind identity.Kind, id string, admin bool) Actor {
	return Actor{Viewer: Viewer{Principal: identity.Principal{Org: "acme", Kind: kind, ID: id}, Admin: admin}}
}

func TestEditsOfTheTextCountItsVersion(t *testing.T) {
	t.Parallel()
	text, high, security := "new", High, Security
	for name, c := range map[string]struct {
		edit Edit
		want int64
	}{
		"title":            {Edit{Title: &text}, 5},
		"problem":          {Edit{Problem: &text}, 5},
		"suggested fix":    {Edit{SuggestedFix: &text}, 5},
		"all at once":      {Edit{Title: &text, Problem: &text, SuggestedFix: &text}, 5},
		"priority":         {Edit{Priority: &high}, 4},
		"category":         {Edit{Category: &security}, 4},
		"title and others": {Edit{Title: &text, Priority: &high}, 5},
		"nothing":          {Edit{}, 4},
	} {
		p := Proposal{
			Org: "acme", Status: Open, Title: "old", Problem: "old", SuggestedFix: "old",
			SubmittedBy: "user:ann", TextVersion: 4,
		}
		change, err := decideEdit(Current{Proposal: p}, actor(identity.User, "ann", false), c.edit)
		if err != nil || change.Proposal.TextVersion != c.want {
			t.Errorf("%s: version %d, %v; want %d", name, change.Proposal.TextVersion, err, c.want)
		}
	}
}

func TestADecisionIsRefusedOnlyIfTheTextChanged(t *testing.T) {
	t.Parallel()
	version := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		r    Resolution
		code string
	}{
		"no condition":                   {Resolution{Status: Approved}, ""},
		"this text":                      {Resolution{Status: Approved, IfTextVersion: version(2)}, ""},
		"an older text":                  {Resolution{Status: Approved, IfTextVersion: version(1)}, "proposal.text_changed"},
		"a text that there never was":    {Resolution{Status: Approved, IfTextVersion: version(3)}, "proposal.text_changed"},
		"an older record":                {Resolution{Status: Approved, IfVersion: version(8), IfTextVersion: version(2)}, "request.stale"},
		"older text, no such transition": {Resolution{Status: Resolved, IfTextVersion: version(1)}, "proposal.text_changed"},
	} {
		p := Proposal{Org: "acme", Status: Open, TextVersion: 2, Version: 9}
		_, err := decideStatus(Current{Proposal: p}, actor(identity.User, "root", true), c.r, "fup-1")
		code := ""
		if err != nil {
			code = errs.As(err).Code
		}
		if code != c.code {
			t.Errorf("%s: %v; want %q", name, err, c.code)
		}
	}
	zero := Resolution{Status: Approved, IfTextVersion: version(0)}
	if diff := cmp.Diff([]string{"text_version"}, errstest.Fields(zero.Validate())); diff != "" {
		t.Error(diff)
	}
}

func TestAnEditIsRefusedIfTheTextChanged(t *testing.T) {
	t.Parallel()
	title := "new"
	for version, code := range map[int64]string{1: "proposal.text_changed", 2: "", 3: "proposal.text_changed"} {
		p := Proposal{Org: "acme", Status: Open, TextVersion: 2, Version: 9}
		_, err := decideEdit(Current{Proposal: p}, actor(identity.User, "root", true), Edit{Title: &title, IfTextVersion: &version})
		if got := errs.As(err).Code; (err != nil || code != "") && got != code {
			t.Errorf("version %d: %v; want %q", version, err, code)
		}
	}
	if diff := cmp.Diff([]string{"text_version"}, errstest.Fields((&Edit{IfTextVersion: new(int64)}).Validate())); diff != "" {
		t.Error(diff)
	}
}

func TestVotesOfAgentsCountApart(t *testing.T) {
	t.Parallel()
	start := Proposal{Org: "acme", Status: Open, VotesFor: 5, VotesAgainst: 4, AgentsFor: 3, AgentsAgainst: 1}
	for name, c := range map[string]struct {
		kind identity.Kind
		old  Choice
		cast Choice // empty: withdraw
		want [4]int // for, against, and of these the agents'
	}{
		"person for":             {identity.User, "", For, [4]int{6, 4, 3, 1}},
		"person against":         {identity.User, "", Against, [4]int{5, 5, 3, 1}},
		"agent for":              {identity.Agent, "", For, [4]int{6, 4, 4, 1}},
		"agent against":          {identity.Agent, "", Against, [4]int{5, 5, 3, 2}},
		"agent changes its mind": {identity.Agent, For, Against, [4]int{4, 5, 2, 2}},
		"person changes it":      {identity.User, Against, For, [4]int{6, 3, 3, 1}},
		"agent withdraws":        {identity.Agent, Against, "", [4]int{5, 3, 3, 0}},
		"person withdraws":       {identity.User, For, "", [4]int{4, 4, 3, 1}},
	} {
		cur := Current{Proposal: start}
		if c.old != "" {
			cur.Vote = &Vote{Choice: c.old}
		}
		by := actor(c.kind, "x", false)
		change, err := decideVote(cur, by, c.cast, "")
		if c.cast == "" {
			change, err = decideWithdrawal(cur, by)
		}
		p := change.Proposal
		if got := [4]int{p.VotesFor, p.VotesAgainst, p.AgentsFor, p.AgentsAgainst}; err != nil || got != c.want {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
}

func TestFiltersAreSimplified(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		q       Query
		want    Filter // of what is simplified
		nothing bool
	}{
		"kind":                           {Query{Kind: identity.Agent}, Filter{Kind: identity.Agent}, false},
		"all":                            {Query{Kind: All, Evidence: All, Fingerprint: All}, Filter{}, false},
		"kind of the submitter":          {Query{Kind: identity.Agent, SubmittedBy: "agent:a"}, Filter{SubmittedBy: "agent:a"}, false},
		"not the kind of the submitter":  {Query{Kind: identity.User, SubmittedBy: "agent:a"}, Filter{SubmittedBy: "agent:a"}, true},
		"services":                       {Query{Kind: identity.Service}, Filter{Kind: identity.Service}, true},
		"no ref":                         {Query{SubmittedBy: "user"}, Filter{SubmittedBy: "user"}, true},
		"a fingerprint is evidence":      {Query{Fingerprint: "f", Evidence: WithEvidence}, Filter{Fingerprint: "f"}, false},
		"a fingerprint without evidence": {Query{Fingerprint: "f", Evidence: WithoutEvidence}, Filter{Fingerprint: "f"}, true},
	} {
		f, err := c.q.check(Viewer{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := Filter{Kind: f.Kind, SubmittedBy: f.SubmittedBy, Evidence: f.Evidence, Fingerprint: f.Fingerprint}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(Filter{})); diff != "" || f.nothing != c.nothing {
			t.Errorf("%s: nothing is %v\n%s", name, f.nothing, diff)
		}
	}
	q := Query{Kind: "robot", Evidence: "maybe", Fingerprint: "a\x00"}
	_, err := q.check(Viewer{})
	if diff := cmp.Diff([]string{"submitted_by_kind", "evidence", "fingerprint"}, errstest.Fields(err)); diff != "" {
		t.Error(diff)
	}
}

func TestACursorIsBoundToEveryFilter(t *testing.T) {
	t.Parallel()
	list := Filter{Org: "acme", Status: Open, Sort: SortReview}
	s := list.encodeCursor(Position{ID: "prop-00000000000000000000000001"}, 2)
	for _, f := range []Filter{
		{Kind: identity.User},
		{Kind: identity.Agent},
		{Evidence: WithEvidence},
		{Evidence: WithoutEvidence},
		{Fingerprint: "f"},
		{Fingerprint: "yes"},
	} {
		f.Org, f.Status, f.Sort = list.Org, list.Status, list.Sort
		if _, _, ok := f.decodeCursor(s); ok {
			t.Errorf("%+v takes the cursor of a list without a filter", f)
		}
		own := f.encodeCursor(Position{ID: "prop-00000000000000000000000001"}, 2)
		if _, _, ok := f.decodeCursor(own); !ok {
			t.Errorf("%+v does not take its own cursor", f)
		}
	}
	if a, b := (&Filter{Evidence: "x"}), (&Filter{Fingerprint: "x"}); a.list() == b.list() {
		t.Error("two filters have one sum")
	}
}

func TestExcerptOf(t *testing.T) {
	t.Parallel()
	word := strings.Repeat("x", 300)
	for text, want := range map[string]string{
		"":                          "",
		" a\n\nb\t c ":              "a b c",
		strings.Repeat("y", 240):    strings.Repeat("y", 240),
		word:                        word[:240] + "…",
		strings.Repeat("ab ", 200):  strings.TrimSpace(strings.Repeat("ab ", 80)) + "…",
		strings.Repeat("abcd ", 99): strings.TrimSpace(strings.Repeat("abcd ", 48)) + "…",
		"short " + word:             "short " + word[:234] + "…", // not only "short"
		strings.Repeat("é", 241):    strings.Repeat("é", 240) + "…",
	} {
		got := ExcerptOf(text)
		if got != want {
			t.Errorf("%q:\n%q; want\n%q", text, got, want)
		}
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > MaxExcerpt+1 {
			t.Errorf("%q is too long or broken", got)
		}
	}
}
