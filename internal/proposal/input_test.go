package proposal

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs/errstest"
	"github.com/parley-dev/parley/internal/identity"
)

func TestIDsOfProposalsAndNotes(t *testing.T) {
	t.Parallel()
	suffix := "0123456789abcdefghijklmnop"
	for _, c := range []struct {
		name   string
		suffix string
		want   bool
	}{
		{"26 letters and digits", suffix, true},
		{"25", suffix[1:], false},
		{"27", suffix + "q", false},
		{"upper case", strings.ToUpper(suffix), false},
		{"a dash", suffix[1:] + "-", false},
		{"a line feed", suffix[1:] + "\n", false},
		{"a letter of two bytes", suffix[2:] + "é", false},
		{"none", "", false},
	} {
		for prefix, valid := range map[string]func(string) bool{"prop-": ValidID, "note-": ValidNoteID} {
			if got := valid(prefix + c.suffix); got != c.want {
				t.Errorf("%s%s (%s): got %v, want %v", prefix, c.suffix, c.name, got, c.want)
			}
			if valid(c.suffix) || valid("x"+prefix+c.suffix) || valid(strings.ToUpper(prefix)+c.suffix) {
				t.Errorf("%s without its prefix %q is taken as an id, want it refused", c.suffix, prefix)
			}
		}
	}
}

// badTexts break the rules of every text field.
var (
	badTexts = map[string]string{
		"not UTF-8": "a\xff", "NUL": "a\x00", "bell": "a\x07", "escape": "a\x1b[31m", "delete": "a\x7f",
	}
	goodTexts = map[string]string{
		"lines and tabs": "a\r\n\tb", "letters of any script": "größe 北京 שלום",
		"emoji": "👩\u200d💻",
	}
)

func TestEveryTextIsCheckedByTheSameRules(t *testing.T) {
	t.Parallel()
	base := Submission{Title: "t", Category: Feature, Problem: "p", SuggestedFix: "f"}
	for _, f := range []struct {
		name     string
		most     int
		required bool
		line     bool
		check    func(text string) error
	}{
		{"title", MaxTitle, true, true, func(s string) error { b := base; b.Title = s; return b.Validate() }},
		{"problem", MaxText, true, false, func(s string) error { b := base; b.Problem = s; return b.Validate() }},
		{"suggested_fix", MaxText, true, false, func(s string) error { b := base; b.SuggestedFix = s; return b.Validate() }},
		{"title", MaxTitle, true, true, func(s string) error { return (&Edit{Title: &s}).Validate() }},
		{"problem", MaxText, true, false, func(s string) error { return (&Edit{Problem: &s}).Validate() }},
		{"suggested_fix", MaxText, true, false, func(s string) error { return (&Edit{SuggestedFix: &s}).Validate() }},
		{
			"resolution_note", MaxNote, false, false,
			func(s string) error { return (&Resolution{Status: Rejected, Note: s}).Validate() },
		},
		{"comment", MaxComment, false, false, func(s string) error { return (&Ballot{Choice: For, Comment: s}).Validate() }},
		{"title", MaxNoteTitle, true, true, func(s string) error { return (&NoteCreation{Title: s, Text: "t"}).Validate() }},
		{"text", MaxNote, true, false, func(s string) error { return (&NoteCreation{Title: "t", Text: s}).Validate() }},
	} {
		check := func(what, text string, ok bool) {
			t.Helper()
			var want []string
			if !ok {
				want = []string{f.name}
			}
			if diff := cmp.Diff(want, errstest.Fields(f.check(text))); diff != "" {
				t.Errorf("%s, %s: broken fields (-want +got)\n%s", f.name, what, diff)
			}
		}
		for what, text := range badTexts {
			check(what, text, false)
		}
		for what, text := range goodTexts {
			check(what, text, !f.line || !strings.ContainsRune(text, '\n'))
		}
		check("as long as can be", strings.Repeat("é", f.most), true)
		check("too long", strings.Repeat("é", f.most+1), false)
		check("empty", "", !f.required)
		check("blank", " \t", !f.required)
	}
}

func TestEveryValueOfEveryEnumeration(t *testing.T) {
	t.Parallel()
	base := Submission{Title: "t", Category: Feature, Problem: "p", SuggestedFix: "f"}
	for _, f := range []struct {
		name  string
		known []string
		none  bool // may be left out
		check func(v string) error
	}{
		{
			"category", names(Categories), false,
			func(v string) error { b := base; b.Category = Category(v); return b.Validate() },
		},
		{
			"priority", names(Priorities), true,
			func(v string) error { b := base; b.Priority = Priority(v); return b.Validate() },
		},
		{
			"status",
			[]string{"open", "draft"},
			true,
			func(v string) error { b := base; b.Status = Status(v); return b.Validate() },
		},
		{
			"category", names(Categories), false,
			func(v string) error { return (&Edit{Category: ptr(Category(v))}).Validate() },
		},
		{
			"priority", names(Priorities), false,
			func(v string) error { return (&Edit{Priority: ptr(Priority(v))}).Validate() },
		},
		{"status", names(Statuses), false, func(v string) error { return (&Resolution{Status: Status(v)}).Validate() }},
		{"vote", names(Choices), false, func(v string) error { return (&Ballot{Choice: Choice(v)}).Validate() }},
	} {
		all := append([]string{"", "all", "other", " open", "Open", "high\n"}, names(Categories)...)
		all = append(append(append(all, names(Priorities)...), names(Statuses)...), names(Choices)...)
		for _, v := range all {
			ok := v == "" && f.none
			for _, k := range f.known {
				ok = ok || v == k
			}
			var want []string
			if !ok {
				want = []string{f.name}
			}
			if diff := cmp.Diff(want, errstest.Fields(f.check(v))); diff != "" {
				t.Errorf("%s %q: broken fields (-want +got)\n%s", f.name, v, diff)
			}
		}
	}
}

func TestWhatASubmissionLeavesOut(t *testing.T) {
	t.Parallel()
	for _, status := range []Status{"", Open, Draft} {
		for _, priority := range append([]Priority{""}, Priorities...) {
			s := Submission{Title: "t", Category: Feature, Problem: "p", SuggestedFix: "f", Status: status, Priority: priority}
			if err := s.Validate(); err != nil {
				t.Errorf("status %q, priority %q: got %v, want no error", status, priority, err)
			}
			wantStatus, wantPriority := status, priority
			if status == "" {
				wantStatus = Open
			}
			if priority == "" {
				wantPriority = Normal
			}
			if s.Status != wantStatus || s.Priority != wantPriority {
				t.Errorf("status %q, priority %q: got %q, %q; want %q, %q", status, priority, s.Status, s.Priority, wantStatus,
					wantPriority)
			}
		}
	}
}

func TestADuplicateGoesWithARejectionOnly(t *testing.T) {
	t.Parallel()
	const id = "prop-00000000000000000000000002"
	for _, s := range Statuses {
		for of, ok := range map[string]bool{"": true, id: s == Rejected, "prop-1": false, "x": false} {
			var want []string
			if !ok {
				want = []string{"duplicate_of"}
			}
			if diff := cmp.Diff(want, errstest.Fields((&Resolution{Status: s, DuplicateOf: of}).Validate())); diff != "" {
				t.Errorf("%s as a duplicate of %q: broken fields (-want +got)\n%s", s, of, diff)
			}
		}
	}
}

func TestBoundsOfATextVersion(t *testing.T) {
	t.Parallel()
	for v, ok := range map[int64]bool{
		math.MinInt64: false, -1: false, 0: false, 1: true, 2: true, math.MaxInt32: true, math.MaxInt32 + 1: false,
		math.MaxInt64: false,
	} {
		var want []string
		if !ok {
			want = []string{"text_version"}
		}
		for what, err := range map[string]error{
			"edit":       (&Edit{IfTextVersion: &v}).Validate(),
			"resolution": (&Resolution{Status: Approved, IfTextVersion: &v}).Validate(),
		} {
			if diff := cmp.Diff(want, errstest.Fields(err)); diff != "" {
				t.Errorf("%s of version %d: broken fields (-want +got)\n%s", what, v, diff)
			}
		}
	}
}

func TestEveryFilterOfAQuery(t *testing.T) {
	t.Parallel()
	v := Viewer{Principal: identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"}, Admin: true}
	for _, f := range []struct {
		name   string
		known  []string
		all    bool   // "all" means no filter
		absent string // what an empty value means
		ask    func(*Query, string)
		got    func(*Filter) string
	}{
		{
			"status", names(Statuses), true, "open", func(q *Query, s string) { q.Status = Status(s) },
			func(f *Filter) string { return string(f.Status) },
		},
		{
			"category", names(Categories), true, "", func(q *Query, s string) { q.Category = Category(s) },
			func(f *Filter) string { return string(f.Category) },
		},
		{
			"priority", names(Priorities), true, "", func(q *Query, s string) { q.Priority = Priority(s) },
			func(f *Filter) string { return string(f.Priority) },
		},
		{
			"submitted_by_kind", names(identity.Kinds), true, "", func(q *Query, s string) { q.Kind = identity.Kind(s) },
			func(f *Filter) string { return string(f.Kind) },
		},
		{
			"evidence", names(Evidences), true, "", func(q *Query, s string) { q.Evidence = Evidence(s) },
			func(f *Filter) string { return string(f.Evidence) },
		},
		{
			"sort", names(Sorts), false, "review", func(q *Query, s string) { q.Sort = Sort(s) },
			func(f *Filter) string { return string(f.Sort) },
		},
	} {
		for _, value := range append([]string{"", "all", "other", strings.ToUpper(f.known[0]), f.known[0] + " "},
			f.known...) {
			want, ok := value, false
			for _, k := range f.known {
				ok = ok || value == k
			}
			switch {
			case value == "":
				want, ok = f.absent, true
			case value == "all" && f.all:
				want, ok = "", true
			}
			var q Query
			f.ask(&q, value)
			got, err := q.check(v)
			if !ok {
				if diff := cmp.Diff([]string{f.name}, errstest.Fields(err)); diff != "" {
					t.Errorf("%s %q: broken parameters (-want +got)\n%s", f.name, value, diff)
				}
				continue
			}
			if err != nil || f.got(&got) != want {
				t.Errorf("%s %q: got %q, %v; want %q", f.name, value, f.got(&got), err, want)
			}
			if got.Org != "acme" || got.Viewer != v {
				t.Errorf("%s %q: the filter is of %q for %+v, want acme for %+v", f.name, value, got.Org, got.Viewer, v)
			}
		}
	}
}

func TestPagesOfAQuery(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		page, limit int
		offset      int64
		got         int // the limit that is used
		want        []string
	}{
		{0, 0, 0, 20, nil},
		{1, 0, 0, 20, nil},
		{2, 0, 20, 20, nil},
		{1, 1, 0, 1, nil},
		{3, 7, 14, 7, nil},
		{1, MaxLimit, 0, 100, nil},
		{2, MaxLimit, 100, 100, nil},
		{1_000_000_000, 100, 99_999_999_900, 100, nil},
		{1, MaxLimit + 1, 0, 0, []string{"limit"}},
		{1, -1, 0, 0, []string{"limit"}},
		{math.MaxInt64, 100, 0, 0, []string{"page"}},
		{math.MaxInt64, 2, 0, 0, []string{"page"}},
	} {
		name := fmt.Sprintf("page %d of %d", c.page, c.limit)
		q := Query{Page: c.page, Limit: c.limit}
		f, err := q.check(Viewer{})
		if diff := cmp.Diff(c.want, errstest.Fields(err)); diff != "" {
			t.Errorf("%s: broken parameters (-want +got)\n%s", name, diff)
		}
		if f.Offset != c.offset || f.Limit != c.got {
			t.Errorf("%s: got offset %d, limit %d; want %d, %d", name, f.Offset, f.Limit, c.offset, c.got)
		}
		p := Paging{Page: c.page, Limit: c.limit}
		offset, err := p.offset()
		if diff := cmp.Diff(c.want, errstest.Fields(err)); diff != "" || offset != c.offset {
			t.Errorf("%s of votes: got offset %d, want %d; broken parameters (-want +got)\n%s", name, offset, c.offset, diff)
		}
	}
	q := Query{Page: -1}
	if _, err := q.check(Viewer{}); errstest.Code(err) != "request.invalid" {
		t.Errorf("page -1: got %v, want a refusal", err)
	}
}

func TestTextsOfAQuery(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", MaxSearch)
	for name, ask := range map[string]func(*Query, string){
		"q":            func(q *Query, s string) { q.Text = s },
		"submitted_by": func(q *Query, s string) { q.SubmittedBy = s },
		"fingerprint":  func(q *Query, s string) { q.Fingerprint = s },
	} {
		for text, ok := range map[string]bool{
			"": true, "a": true, long: true, long + "x": false, "a\x00": false,
			"a\xff": false,
		} {
			var q Query
			ask(&q, text)
			_, err := q.check(Viewer{})
			var want []string
			if !ok {
				want = []string{name}
			}
			if diff := cmp.Diff(want, errstest.Fields(err)); diff != "" {
				t.Errorf("%s %.10q: broken parameters (-want +got)\n%s", name, text, diff)
			}
		}
	}
}

// A cursor holds the sort key of its order, and nothing else.
func TestThePositionInEveryOrder(t *testing.T) {
	t.Parallel()
	it := Item{Proposal: Proposal{ID: "prop-1", Priority: High, VotesFor: 3, VotesAgainst: 5}}
	want := map[Sort]Position{
		SortReview: {Rank: 2, ID: "prop-1"}, SortVotes: {Score: -2, ID: "prop-1"},
		SortNewest: {ID: "prop-1"}, SortOldest: {ID: "prop-1"},
	}
	for _, s := range Sorts {
		f := Filter{Sort: s}
		if got := f.position(&it); got != want[s] {
			t.Errorf("%s: got %+v, want %+v", s, got, want[s])
		}
	}
}

func TestACursorContinuesItsList(t *testing.T) {
	t.Parallel()
	const id = "prop-00000000000000000000000001"
	first := Query{Sort: SortVotes, Category: Security}
	f, err := first.check(Viewer{})
	if err != nil {
		t.Fatal(err)
	}
	cursor := f.encodeCursor(Position{Score: -3, ID: id}, 4)
	for name, c := range map[string]struct {
		q    Query
		want []string
	}{
		"the same list":       {Query{Sort: SortVotes, Category: Security, Cursor: cursor}, nil},
		"with another limit":  {Query{Sort: SortVotes, Category: Security, Cursor: cursor, Limit: 7}, nil},
		"in another order":    {Query{Category: Security, Cursor: cursor}, []string{"cursor"}},
		"of another category": {Query{Sort: SortVotes, Cursor: cursor}, []string{"cursor"}},
		"of another status": {
			Query{Sort: SortVotes, Category: Security, Status: All, Cursor: cursor}, []string{"cursor"},
		},
		"of another priority": {
			Query{Sort: SortVotes, Category: Security, Priority: Low, Cursor: cursor}, []string{"cursor"},
		},
		"of one submitter": {
			Query{Sort: SortVotes, Category: Security, SubmittedBy: "user:ann", Cursor: cursor}, []string{"cursor"},
		},
		"of a search": {
			Query{Sort: SortVotes, Category: Security, Text: "retry", Cursor: cursor}, []string{"cursor"},
		},
		"with a page": {
			Query{Sort: SortVotes, Category: Security, Cursor: cursor, Page: 4}, []string{"cursor"},
		},
		"with something behind it": {Query{Sort: SortVotes, Category: Security, Cursor: cursor + "AA"}, []string{"cursor"}},
		"that was cut off":         {Query{Sort: SortVotes, Category: Security, Cursor: cursor[:8]}, []string{"cursor"}},
		"that is no base64":        {Query{Sort: SortVotes, Category: Security, Cursor: "!" + cursor}, []string{"cursor"}},
		"that is much too long": {
			Query{Sort: SortVotes, Category: Security, Cursor: cursor + strings.Repeat("A", 400)}, []string{"cursor"},
		},
		"of the same in other case": {
			Query{Sort: SortVotes, Category: Security, Cursor: strings.ToUpper(cursor)}, []string{"cursor"},
		},
	} {
		got, err := c.q.check(Viewer{})
		if diff := cmp.Diff(c.want, errstest.Fields(err)); diff != "" {
			t.Errorf("%s: broken parameters (-want +got)\n%s", name, diff)
		}
		if c.want == nil && (got.After == nil || *got.After != Position{Score: -3, ID: id} || c.q.Page != 4 ||
			got.Offset != 0) {
			t.Errorf("%s: got %+v, page %d, offset %d; want score -3 of %s, page 4, offset 0", name, got.After, c.q.Page,
				got.Offset, id)
		}
	}
}

func TestWhatSimilarOnesAreLookedForBy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		to    SimilarTo
		limit int
		want  []string
	}{
		{"a title", SimilarTo{Title: "t"}, 1, nil},
		{"a problem", SimilarTo{Problem: "p"}, MaxSimilar, nil},
		{
			"both, as long as can be",
			SimilarTo{Title: strings.Repeat("é", MaxTitle), Problem: strings.Repeat("é", MaxText)},
			1, nil,
		},
		{"neither", SimilarTo{}, 1, []string{"title"}},
		{"none of them", SimilarTo{Title: "t"}, 0, []string{"limit"}},
		{"too many of them", SimilarTo{Title: "t"}, MaxSimilar + 1, []string{"limit"}},
		{"a title that is too long", SimilarTo{Title: strings.Repeat("é", MaxTitle+1)}, 1, []string{"title"}},
		{"a problem that is too long", SimilarTo{Problem: strings.Repeat("é", MaxText+1)}, 1, []string{"problem"}},
		{"texts that are not UTF-8", SimilarTo{Title: "\xff", Problem: "\xff"}, 1, []string{"title", "problem"}},
	} {
		if diff := cmp.Diff(c.want, errstest.Fields(c.to.check(c.limit))); diff != "" {
			t.Errorf("%s: broken parameters (-want +got)\n%s", c.name, diff)
		}
	}
}
