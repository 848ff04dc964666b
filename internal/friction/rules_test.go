package friction

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/cursor"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/errs/errstest"
)

var (
	firstAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	nowAt   = firstAt.Add(time.Hour)
)

// report is one that keeps all rules.
func report() Report {
	return Report{
		Fingerprint: "ci:timeout", Title: "CI times out", Category: "reliability", Problem: "It waits.",
		SuggestedFix: "Wait less.",
		Evidence:     "exit 124", Occurrence: "run-7", Priority: "high",
	}
}

// reported returns the state after n reports; zero after none.
func reported(count int64, filed string) Friction {
	if count == 0 {
		return Friction{}
	}
	return Friction{
		Org: "acme", Fingerprint: "ci:timeout", Title: "old", Category: "process", Problem: "old", SuggestedFix: "old fix",
		Priority: "low", Count: count, ProposalID: filed, FirstAt: firstAt, LastAt: firstAt, LastBy: "agent:first",
	}
}

// A proposal is filed once, by the report that reaches the threshold. Tried for several
// thresholds and numbers of earlier reports, filed or not, new or repeated.
func TestWhichReportFilesAProposal(t *testing.T) {
	t.Parallel()
	for _, threshold := range []int{Off, 2, 3, 4, 5} {
		for before := range int64(7) {
			for _, filed := range []string{"", "prop-old"} {
				for _, known := range []bool{false, true} {
					if before == 0 && (known || filed != "") {
						continue // cannot be
					}
					name := fmt.Sprintf("threshold %d, %d reports before, filed as %q, repeated %v", threshold, before, filed, known)
					cur := Current{Friction: reported(before, filed), Known: known, Threshold: threshold}
					got := decideReport(cur, report(), "acme", "agent:scout", "prop-new", nowAt)
					if known {
						if diff := cmp.Diff(Change{Friction: cur.Friction}, got); diff != "" {
							t.Errorf("%s: want nothing to change (-want +got)\n%s", name, diff)
						}
						continue
					}
					files := filed == "" && threshold != Off && before+1 >= int64(threshold)
					if (got.File != nil) != files {
						t.Errorf("%s: files a proposal: got %v, want %v", name, got.File != nil, files)
					}
					want := Friction{
						Org: "acme", Fingerprint: "ci:timeout", Title: "CI times out", Category: "reliability", Problem: "It waits.",
						SuggestedFix: "Wait less.", Priority: "high", Count: before + 1, ProposalID: filed, FirstAt: firstAt,
						LastAt: nowAt,
						LastBy: "agent:scout",
					}
					if before == 0 {
						want.FirstAt = nowAt
					}
					if files {
						want.ProposalID = "prop-new"
					}
					if diff := cmp.Diff(want, got.Friction); diff != "" {
						t.Errorf("%s (-want +got)\n%s", name, diff)
					}
					evidence := &Evidence{Seq: before + 1, Reporter: "agent:scout", Occurrence: "run-7", Text: "exit 124", At: nowAt}
					if diff := cmp.Diff(evidence, got.Evidence); diff != "" {
						t.Errorf("%s: evidence (-want +got)\n%s", name, diff)
					}
				}
			}
		}
	}
}

// A report without a suggestion keeps an earlier one. If there is none, a sentence replaces it.
func TestTheSuggestionOfAFiledProposal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, earlier, now, kept, filed string }{
		{"nobody had one", "", "", "", noFix},
		{"an earlier reporter had one", "old fix", "", "old fix", "old fix"},
		{"this reporter has one", "", "new fix", "new fix", "new fix"},
		{"both had one", "old fix", "new fix", "new fix", "new fix"},
	} {
		f, r := reported(2, ""), report()
		f.SuggestedFix, r.SuggestedFix = c.earlier, c.now
		got := decideReport(Current{Friction: f, Threshold: 3}, r, "acme", "agent:scout", "prop-new", nowAt)
		if got.Friction.SuggestedFix != c.kept || got.File == nil || got.File.SuggestedFix != c.filed {
			t.Errorf("%s: kept %q, filed %+v; want %q and %q", c.name, got.Friction.SuggestedFix, got.File, c.kept, c.filed)
		}
	}
}

func TestWhatAFiledProposalSays(t *testing.T) {
	t.Parallel()
	earlier := []Evidence{
		{Seq: 1, Reporter: "agent:first", Text: "exit 1", At: firstAt},
		{Seq: 2, Reporter: "user:ann", Occurrence: "run-6", At: firstAt},
	}
	got := decideReport(Current{Friction: reported(2, ""), Evidence: earlier, Threshold: 3}, report(), "acme",
		"agent:scout", "prop-new", nowAt)
	want := &Draft{
		Org: "acme", ID: "prop-new", Title: "CI times out", Category: "reliability", SuggestedFix: "Wait less.",
		Priority: "high",
		By:       "agent:scout", At: nowAt,
		Problem: "It waits.\n\nReported 3 times as ci:timeout, first on 2026-01-02 03:04 UTC." +
			"\n\nagent:scout on 2026-01-02 04:04 UTC (run-7):\nexit 124" +
			"\n\nuser:ann on 2026-01-02 03:04 UTC (run-6)" +
			"\n\nagent:first on 2026-01-02 03:04 UTC:\nexit 1",
	}
	if diff := cmp.Diff(want, got.File); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(earlier) != 2 {
		t.Errorf("the evidence that was read has %d entries now, want 2", len(earlier))
	}
}

func TestThresholds(t *testing.T) {
	t.Parallel()
	for n := -2; n <= MaxThreshold+2; n++ {
		var want []string
		if n < 0 || n == 1 || n > 100 {
			want = []string{"threshold"}
		}
		if diff := cmp.Diff(want, errstest.Fields(ValidateThreshold(n))); diff != "" {
			t.Errorf("%d: broken fields (-want +got)\n%s", n, diff)
		}
	}
	if err := ValidateThreshold(DefaultThreshold); err != nil {
		t.Errorf("the default: got %v, want no error", err)
	}
}

func TestEveryFieldOfAReport(t *testing.T) {
	t.Parallel()
	for _, f := range []struct {
		name      string
		set       func(*Report, string)
		good, bad map[string]string
	}{
		{
			"fingerprint", func(r *Report, s string) { r.Fingerprint = s },
			map[string]string{"one letter": "a", "as long as can be": strings.Repeat("a", 200)},
			map[string]string{"nothing": "", "a space": "a b", "upper case": "A", "too long": strings.Repeat("a", 201)},
		},
		{
			"problem", func(r *Report, s string) { r.Problem = s },
			map[string]string{"as long as can be": strings.Repeat("é", MaxProblem)},
			map[string]string{"too long": strings.Repeat("é", MaxProblem+1)},
		},
		{
			"evidence", func(r *Report, s string) { r.Evidence = s },
			map[string]string{"nothing": "", "lines": "a\r\n\tb", "as long as can be": strings.Repeat("a", MaxEvidence)},
			map[string]string{
				"too many bytes": strings.Repeat("é", MaxEvidence/2) + "a", "NUL": "\x00", "escape": "\x1b[0m", "delete": "\x7f",
				"not UTF-8": "\xff",
			},
		},
		{
			"occurrence", func(r *Report, s string) { r.Occurrence = s },
			map[string]string{"nothing": "", "as long as can be": strings.Repeat("é", MaxOccurrence)},
			map[string]string{
				"too long": strings.Repeat("é", MaxOccurrence+1), "two lines": "a\nb", "a tab": "a\tb", "NUL": "\x00",
				"not UTF-8": "\xff",
			},
		},
	} {
		check := func(what, value string, want []string) {
			r := report()
			f.set(&r, value)
			if diff := cmp.Diff(want, errstest.Fields(r.validate(nil))); diff != "" {
				t.Errorf("%s, %s: broken fields (-want +got)\n%s", f.name, what, diff)
			}
		}
		for what, value := range f.good {
			check(what, value, nil)
		}
		for what, value := range f.bad {
			check(what, value, []string{f.name})
		}
	}
}

// The fields of the proposal to file are checked by the rules of proposals. Each field is
// reported once.
func TestTheRulesOfProposalsHoldForReports(t *testing.T) {
	t.Parallel()
	var asked []string
	refuse := func(names ...string) Check {
		return func(title, category, problem, fix, priority string) error {
			asked = []string{title, category, problem, fix, priority}
			var out []errs.Field
			for _, n := range names {
				out = append(out, errs.Field{Path: errs.At(n), Message: "is wrong"})
			}
			if out == nil {
				return nil
			}
			return errs.InvalidFields(out...)
		}
	}
	r := report()
	r.SuggestedFix, r.Priority = "", ""
	if err := r.validate(refuse()); err != nil || r.Priority != "normal" {
		t.Errorf("a report without a suggestion and priority: got %v, priority %q; want priority normal", err, r.Priority)
	}
	if diff := cmp.Diff([]string{"CI times out", "reliability", "It waits.", noFix, "normal"}, asked); diff != "" {
		t.Errorf("what proposals are asked about (-want +got)\n%s", diff)
	}
	r.Fingerprint, r.Problem = "", strings.Repeat("p", MaxProblem+1)
	got := errstest.Fields(r.validate(refuse("title", "problem")))
	if diff := cmp.Diff([]string{"fingerprint", "problem", "title"}, got); diff != "" {
		t.Errorf("rules of both: broken fields (-want +got)\n%s", diff)
	}
	r = report()
	other := errs.New(errs.Unavailable, "try.again", "later")
	if err := r.validate(func(_, _, _, _, _ string) error { return other }); errs.As(err) != other {
		t.Errorf("a failure that is about no field: got %v, want %v", err, other)
	}
}

func TestCursorsOfTheList(t *testing.T) {
	t.Parallel()
	at := func(l cursor.List, when time.Time, fingerprint string) string {
		return l.At().Time(when).Text(fingerprint).String()
	}
	when := time.UnixMicro(1000).UTC()
	good := at(pages, when, "ci:timeout")
	for name, c := range map[string]struct {
		cursor string
		want   *Position
	}{
		"a position":        {good, &Position{LastAt: when, Fingerprint: "ci:timeout"}},
		"no base64":         {"!", nil},
		"with padding":      {good + "=", nil},
		"cut off":           {good[:len(good)-4], nil},
		"of another list":   {at(cursor.Of("keys"), when, "ci:timeout"), nil},
		"no fingerprint":    {pages.At().Time(when).String(), nil},
		"a bad fingerprint": {at(pages, when, "CI"), nil},
		"nothing":           {"", nil},
	} {
		got, ok := decodeCursor(c.cursor)
		if ok != (c.want != nil) {
			t.Errorf("%s: got ok %v, want %v", name, ok, c.want != nil)
		}
		if diff := cmp.Diff(c.want, got); ok && diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
