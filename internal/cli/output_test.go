package cli

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/sdk/client"
)

const evil = "a\x1b]0;owned\x07b\rc\u009b2Jd\u202ee\nf\tg\x00\xff"

func TestCleanLeavesNothingATerminalObeys(t *testing.T) {
	t.Parallel()
	if got, want := clean(evil), "a]0;ownedbc2Jde\nf\tg\uFFFD"; got != want {
		t.Errorf("clean = %q; want %q", got, want)
	}
	if got, want := cleanLine("one\ntwo\t three"), "one two  three"; got != want {
		t.Errorf("cleanLine = %q; want %q", got, want)
	}
	if s := "naïve 日本語 👩‍🔧"; clean(s) != s {
		t.Errorf("clean changed %q to %q", s, clean(s))
	}
}

func TestJSONKeepsItsMeaningAndLosesItsTeeth(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	e := &env{stdout: &out}
	in := "{\"title\":\"x\u009b31m\u202ey\\u001b\"}"
	if err := e.printRaw([]byte(in)); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), `{"title":"x\u009b31m\u202ey\u001b"}`+"\n"; got != want {
		t.Errorf("printed %q; want %q", got, want)
	}
	var before, after any
	if json.Unmarshal([]byte(in), &before) != nil || json.Unmarshal(out.Bytes(), &after) != nil ||
		!cmp.Equal(before, after) {
		t.Errorf("the meaning changed from %v to %v", before, after)
	}
}

func TestRecordsAndTablesAreClean(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	e := &env{stdout: &out}
	p := &client.Proposal{
		ID: evil, Title: evil, Category: evil, Problem: evil, SuggestedFix: evil, Priority: evil, Status: evil,
		SubmittedBy: evil, ResolutionNote: evil, MyVote: evil, FollowupID: evil, FollowupStatus: evil,
		AllowedTransitions: []client.ProposalStatus{evil},
	}
	if err := e.printProposal(p); err != nil {
		t.Fatal(err)
	}
	if err := e.printFollowup(&client.Followup{
		ID: evil, Title: evil, Description: evil, ProposalID: evil, Status: evil, Assignee: evil, CreatedBy: evil,
		AllowedTransitions: []client.FollowupStatus{evil},
	}); err != nil {
		t.Fatal(err)
	}
	tab := table{head: []string{"A", "B"}}
	tab.add(evil, evil)
	if err := e.list(&tab, "thing", "things", 1, 1, false); err != nil {
		t.Fatal(err)
	}
	for _, r := range out.String() {
		if hostile(r) && r != '\n' && r != '\t' {
			t.Errorf("the output contains %U", r)
		}
	}
}

func TestTableAlignsByCharacters(t *testing.T) {
	t.Parallel()
	tab := table{head: []string{"ID", "NAME", "X"}}
	tab.add("1", "naïve", "a")
	tab.add("22", "x", "b")
	var out bytes.Buffer
	if err := tab.write(&out, false); err != nil {
		t.Fatal(err)
	}
	want := "ID  NAME   X\n1   naïve  a\n22  x      b\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestColourIsForTerminalsOnly(t *testing.T) {
	t.Parallel()
	if p := (&env{stdout: &bytes.Buffer{}}).palette(); p {
		t.Error("a buffer got colours")
	}
	if got, want := palette(true).status("open"), "\x1b[36mopen\x1b[0m"; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
}

func TestWhen(t *testing.T) {
	t.Parallel()
	if got := when(time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))); got != "2026-01-02 02:04" {
		t.Errorf("when = %s", got)
	}
}
