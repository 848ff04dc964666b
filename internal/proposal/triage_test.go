package proposal

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/errs/errstest"
	"github.com/parley-dev/parley/internal/identity"
)

func TestADuplicateNamesAnotherProposal(t *testing.T) {
	t.Parallel()
	const id, other = "prop-00000000000000000000000001", "prop-00000000000000000000000002"
	original := Proposal{Org: "acme", ID: other, Title: "The first", Status: Approved}
	edited := func(edit func(*Proposal)) *Proposal {
		p := original
		edit(&p)
		return &p
	}
	for name, c := range map[string]struct {
		of       string
		original *Proposal
		note     string
		want     string // the note; empty: refused
	}{
		"no note":                    {other, &original, "", "Duplicate of " + other + ": The first"},
		"blank note":                 {other, &original, " \n", "Duplicate of " + other + ": The first"},
		"own note":                   {other, &original, "We have that.", "We have that."},
		"itself":                     {id, nil, "", ""},
		"unknown":                    {other, nil, "", ""},
		"of another org":             {other, edited(func(p *Proposal) { p.Org = "other" }), "", ""},
		"a duplicate of this one":    {other, edited(func(p *Proposal) { p.DuplicateOf = id }), "", ""},
		"a duplicate of a third":     {other, edited(func(p *Proposal) { p.DuplicateOf = "prop-3" }), "x", "x"},
		"the title of a draft":       {other, edited(func(p *Proposal) { p.Status = Draft }), "", "Duplicate of " + other},
		"a draft that an admin sees": {other, edited(func(p *Proposal) { p.Status = Draft }), "x", "x"},
	} {
		cur := Current{Proposal: Proposal{Org: "acme", ID: id, Status: Open}, Original: c.original}
		reject := Resolution{Status: Rejected, DuplicateOf: c.of, Note: c.note}
		change, err := decideStatus(cur, actor(identity.User, "root", true), reject, "")
		if c.want == "" {
			if diff := cmp.Diff([]string{"duplicate_of"}, errstest.Fields(err)); diff != "" {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		p, e := change.Proposal, change.Entry
		if err != nil || p.DuplicateOf != c.of || p.ResolutionNote != c.want || e.DuplicateOf != c.of || e.Note != c.want {
			t.Errorf("%s: %+v %+v %v", name, p, e, err)
		}
	}
	cur := Current{Proposal: Proposal{Org: "acme", ID: id, Status: Rejected, DuplicateOf: other}}
	change, err := decideStatus(cur, actor(identity.User, "root", true), Resolution{Status: Open}, "")
	if err != nil || change.Proposal.DuplicateOf != "" {
		t.Errorf("reopened: %+v %v", change.Proposal, err)
	}
	r := Resolution{Status: Approved, DuplicateOf: other}
	if diff := cmp.Diff([]string{"duplicate_of"}, errstest.Fields(r.Validate())); diff != "" {
		t.Error(diff)
	}
}

func TestBulkNamesEveryBrokenField(t *testing.T) {
	t.Parallel()
	item := func(i int) BulkItem { return BulkItem{ID: fmt.Sprintf("prop-%026d", i), TextVersion: 1} }
	many := make([]BulkItem, MaxBulk+1)
	for i := range many {
		many[i] = item(i)
	}
	for name, c := range map[string]struct {
		b    Bulk
		want []string
	}{
		"good":      {Bulk{Status: Approved, Items: many[:MaxBulk]}, nil},
		"too many":  {Bulk{Status: Approved, Items: many}, []string{"items"}},
		"empty":     {Bulk{}, []string{"status", "items"}},
		"no reason": {Bulk{Status: Rejected, Note: " ", Items: many[:1]}, []string{"resolution_note"}},
		"items": {
			Bulk{Status: Open, Items: []BulkItem{item(1), {ID: "x", TextVersion: 1}, item(1), {ID: item(2).ID}}},
			[]string{"items[1].id", "items[2].id", "items[3].text_version"},
		},
	} {
		if diff := cmp.Diff(c.want, errstest.Fields(c.b.Validate())); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestLikeWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"The upload of a file fails":  {"upload", "file", "fails"},
		"It is up to us":              {},
		"北京 is où":                    {"北京"},
		"Retry, retry and RETRY":      {"retry"},
		strings.Repeat("wordy ", 100): {"wordy"},
	} {
		if diff := cmp.Diff(want, LikeWords(text, "")); diff != "" {
			t.Errorf("%q:\n%s", text, diff)
		}
	}
	var long []string
	for i := range 40 {
		long = append(long, fmt.Sprintf("word%d", i))
	}
	got := LikeWords("title first", strings.Join(long, " "))
	if len(got) != MaxLikeWords || got[0] != "title" || got[2] != "word0" {
		t.Error(got)
	}
}

func TestTheMostSimilarComeFirst(t *testing.T) {
	t.Parallel()
	words := []string{"webhook", "lost", "gateway"}
	found := []Proposal{
		{ID: "one word", Title: "A webhook"},
		{ID: "a, in the problem", Problem: "The webhook is lost in the gateway."},
		{ID: "b, in the title", Title: "Webhook lost", Problem: "In the gateway."},
		{ID: "c, two words", Title: "x", Problem: "A lost webhook."},
		{ID: "d, two words, newer", Title: "x", Problem: "A lost webhook."},
	}
	var got []string
	for _, l := range rank(words, found, 3) {
		got = append(got, fmt.Sprint(l.ID, " ", l.Words))
		if l.Problem != "" || l.Excerpt == "" {
			t.Errorf("%+v", l)
		}
	}
	if diff := cmp.Diff([]string{"b, in the title 3", "a, in the problem 3", "d, two words, newer 2"}, got); diff != "" {
		t.Error(diff)
	}
	if got := rank(words[:1], found[:1], 5); len(got) != 1 {
		t.Errorf("one word of one finds %d", len(got))
	}
}

func TestNotesNameEveryBrokenField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n    NoteCreation
		want []string
	}{
		{NoteCreation{strings.Repeat("é", MaxNoteTitle), strings.Repeat("é", MaxNote)}, nil},
		{NoteCreation{}, []string{"title", "text"}},
		{NoteCreation{"a\nb", "a\x00"}, []string{"title", "text"}},
		{NoteCreation{strings.Repeat("x", MaxNoteTitle+1), strings.Repeat("x", MaxNote+1)}, []string{"title", "text"}},
	} {
		if diff := cmp.Diff(c.want, errstest.Fields(c.n.Validate())); diff != "" {
			t.Errorf("%.40q:\n%s", c.n.Title, diff)
		}
	}
	if err := noteQuota.Check(MaxNotes); err == nil || errs.As(err).Code != "quota.notes" {
		t.Error(err)
	}
}
