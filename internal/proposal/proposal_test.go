package proposal

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/errs/errstest"
	"github.com/parley-dev/parley/internal/identity"
)

func TestSubmissionNamesEveryBrokenField(t *testing.T) {
	t.Parallel()
	good := Submission{Title: "t", Category: Feature, Problem: "p", SuggestedFix: "f"}
	for _, c := range []struct {
		name string
		edit func(*Submission)
		want []string
	}{
		{"good", func(*Submission) {}, nil},
		{"longest", func(s *Submission) { s.Title, s.Problem = strings.Repeat("長", 200), strings.Repeat("長", 20_000) }, nil},
		{"empty", func(s *Submission) { *s = Submission{} }, []string{"title", "category", "problem", "suggested_fix"}},
		{"blank", func(s *Submission) { s.Title, s.Problem = " \t", "\n" }, []string{"title", "problem"}},
		{"too long", func(s *Submission) {
			s.Title, s.SuggestedFix = strings.Repeat("x", 201), strings.Repeat("x", 20_001)
		}, []string{"title", "suggested_fix"}},
		{"two lines", func(s *Submission) { s.Title = "a\nb" }, []string{"title"}},
		{"NUL", func(s *Submission) { s.Problem = "a\x00b" }, []string{"problem"}},
		{"escape", func(s *Submission) { s.Title = "a\x1b[31m" }, []string{"title"}},
		{"a control above ASCII", func(s *Submission) {
			s.Title, s.Problem, s.SuggestedFix = "a\u009bb", "\u0085", "a\u009b2J"
		}, []string{"title", "problem", "suggested_fix"}},
		{"not UTF-8", func(s *Submission) { s.Problem = "a\xff" }, []string{"problem"}},
		{"enums", func(s *Submission) {
			s.Category, s.Priority, s.Status = "Feature", "urgent", "approved"
		}, []string{"category", "priority", "status"}},
	} {
		s := good
		c.edit(&s)
		if diff := cmp.Diff(c.want, errstest.Fields(s.Validate())); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}

func TestQueryNamesEveryBrokenParameter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		q    Query
		want []string
	}{
		{Query{}, nil},
		{Query{Status: "all", Category: "all", SubmittedBy: "all", Priority: "all"}, nil},
		{Query{Status: "closed", Category: "x", Priority: "y", Sort: "z"}, []string{"status", "category", "priority", "sort"}},
		{Query{Limit: 101}, []string{"limit"}},
		{Query{Cursor: "nonsense"}, []string{"cursor"}},
		{Query{Cursor: "x", Page: 2}, []string{"cursor"}},
		{Query{Text: "…!"}, []string{"q"}},
		{Query{Text: strings.Repeat("x", 201)}, []string{"q"}},
		{Query{Page: 1 << 62, Limit: 100}, []string{"page"}},
	} {
		q := c.q
		_, err := q.check(Viewer{})
		if diff := cmp.Diff(c.want, errstest.Fields(err)); diff != "" {
			t.Errorf("%+v:\n%s", c.q, diff)
		}
	}
}

func TestCursorRoundTripAndIsBoundToItsList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := Filter{Org: "acme", Status: Open, Sort: rapid.SampledFrom(Sorts).Draw(t, "sort")}
		pos := Position{
			Rank: rapid.IntRange(0, 2).Draw(t, "rank"), Score: rapid.Int64().Draw(t, "score"),
			ID: "prop-" + rapid.StringMatching(`[0-9a-z]{26}`).Draw(t, "id"),
		}
		page := rapid.IntRange(1, 1<<30).Draw(t, "page")
		s := f.encodeCursor(pos, page)
		got, n, ok := f.decodeCursor(s)
		if !ok || *got != pos || n != page {
			t.Fatalf("%q decodes to %+v, %d, %v", s, got, n, ok)
		}
		f.Category = Security
		if _, _, ok := f.decodeCursor(s); ok {
			t.Fatal("a cursor of another list was accepted")
		}
	})
}

func FuzzCursor(f *testing.F) {
	list := Filter{Org: "acme", Status: Open, Sort: SortReview}
	f.Add(list.encodeCursor(Position{Rank: 1, ID: "prop-00000000000000000000000001"}, 2))
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		pos, page, ok := list.decodeCursor(s)
		if ok && (page < 1 || !ValidID(pos.ID) || pos.Rank < 0 || pos.Rank > 2) {
			t.Errorf("%q was accepted as %+v, page %d", s, pos, page)
		}
	})
}

func TestOnlySubmitterOrAdminEdits(t *testing.T) {
	t.Parallel()
	p := Proposal{Org: "acme", Status: Open, SubmittedBy: "user:ann", Version: 3}
	title := "new"
	for _, c := range []struct {
		ref   string
		admin bool
		p     func(*Proposal)
		want  errs.Kind
		ok    bool
	}{
		{"ann", false, func(*Proposal) {}, 0, true},
		{"bob", true, func(*Proposal) {}, 0, true},
		{"bob", false, func(*Proposal) {}, errs.Forbidden, false},
		{"bob", false, func(p *Proposal) { p.Status = Draft }, errs.NotFound, false},
		{"ann", false, func(p *Proposal) { p.Status = Draft }, 0, true},
		{"ann", false, func(p *Proposal) { p.Status = Approved }, errs.Conflict, false},
		{"bob", true, func(p *Proposal) { p.Status = Rejected }, errs.Conflict, false},
	} {
		q := p
		c.p(&q)
		by := Actor{Viewer: Viewer{Principal: identity.Principal{Org: "acme", Kind: identity.User, ID: c.ref}, Admin: c.admin}}
		change, err := decideEdit(Current{Proposal: q}, by, Edit{Title: &title})
		if c.ok != (err == nil) || !c.ok && errs.KindOf(err) != c.want {
			t.Errorf("%s (admin %v) on %s: %v", c.ref, c.admin, q.Status, err)
		}
		if c.ok && change.Proposal.Title != title {
			t.Errorf("%s (admin %v) on %s: the title is %q", c.ref, c.admin, q.Status, change.Proposal.Title)
		}
	}
}
