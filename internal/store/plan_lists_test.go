package store

import (
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// everyList calls fn with a filter for every combination of the parameters of a list.
func everyList(fn func(f proposal.Filter)) {
	base := proposal.Filter{Org: "acme", Limit: 20}
	for _, admin := range []bool{true, false} {
		for _, status := range append([]proposal.Status{""}, proposal.Statuses...) {
			for _, category := range []proposal.Category{"", proposal.Security} {
				for _, priority := range []proposal.Priority{"", proposal.Low} {
					for _, evidence := range []proposal.Evidence{"", proposal.WithEvidence, proposal.WithoutEvidence} {
						f := base
						f.Viewer = proposal.Viewer{Principal: annOf("acme"), Admin: admin}
						f.Status, f.Category, f.Priority, f.Evidence = status, category, priority, evidence
						everySubmitterAndSort(f, fn)
					}
				}
			}
		}
	}
}

func everySubmitterAndSort(f proposal.Filter, fn func(f proposal.Filter)) {
	for _, sort := range proposal.Sorts {
		for _, after := range []*proposal.Position{nil, {Score: 3, ID: propID(7)}} {
			f.Sort, f.After = sort, after
			for _, kind := range []identity.Kind{"", identity.User, identity.Agent} {
				f.SubmittedBy, f.Kind = "", kind
				fn(f)
			}
			f.SubmittedBy, f.Kind = "user:ann", ""
			fn(f)
		}
	}
}

// Every range of a list is found in one index, in its order. The index has the columns of all
// filters, except for the fingerprint.
func TestListsAreReadInTheOrderOfAnIndex(t *testing.T) {
	t.Parallel()
	s := openAt(t, Options{Dir: t.TempDir()})
	seen := map[string]bool{}
	everyList(func(f proposal.Filter) {
		q := newListQuery(s.d, f, manyRows+1)
		for _, arm := range q.arms(q.ranges()) {
			sql := `SELECT ` + q.keyColumns() + arm
			if seen[sql] {
				continue
			}
			seen[sql] = true
			args := q.args // of all arms
			if text, order := positional(sql); order == nil {
				args = args[:strings.Count(text, "?")]
			}
			steps := searches(t, s, sql, args...)
			indexed := strings.Contains(arm, "INDEXED BY")
			covered := !indexed || f.Evidence != "" || strings.Contains(steps[0], "COVERING INDEX")
			if len(steps) != 1 || !covered {
				t.Fatalf("%+v: %s: plan = %q, want one search of an index with all columns", f, sql, steps)
			}
			if i := strings.Index(arm, "INDEXED BY "); i >= 0 {
				seen[strings.Fields(arm[i:])[2]] = true
			}
		}
	})
	for _, index := range []string{
		byReview, byCategory, bySubmitter, byEvidence, byVotes, bySubmitterVotes, byEvidenceVotes,
	} {
		if !seen[index] {
			t.Errorf("no list uses %s", index)
		}
	}
}
