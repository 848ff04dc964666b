package friction

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestFingerprints(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"a": true, "registry:timeout": true, "ci.deploy_step-2": true, "0f3a": true, strings.Repeat("a", 200): true,
		"": false, "A": false, "a b": false, "-a": false, ".": false, "a/b": false, "é": false, "a\n": false,
		strings.Repeat("a", 201): false,
	} {
		if ValidFingerprint(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}

// A proposal that is filed is always valid.
func TestTheFiledProposalIsWithinItsLimits(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var evidence []Evidence
	for i := range KeepEvidence {
		evidence = append(evidence, Evidence{
			Seq: int64(i + 1), Reporter: "agent:" + strings.Repeat("a", 64), Occurrence: strings.Repeat("ö", MaxOccurrence),
			Text: strings.Repeat("é", MaxEvidence/2), At: at,
		})
	}
	for n := range KeepEvidence {
		for _, size := range []int{1, MaxProblem - 1, MaxProblem} {
			r := Report{
				Fingerprint: strings.Repeat("f", 200), Title: "t", Category: "process",
				Problem: strings.Repeat("p", size), Priority: "low",
			}
			cur := Current{Friction: Friction{Count: int64(n + 1), FirstAt: at}, Evidence: evidence[:n+1], Threshold: n + 2}
			c := decideReport(cur, r, "acme", "agent:a", "prop-1", at)
			if c.File == nil {
				t.Fatalf("report %d of %d files nothing", n+2, n+2)
			}
			if got := utf8.RuneCountInString(c.File.Problem); got > maxText {
				t.Errorf("with %d pieces of evidence the problem has %d characters", n+2, got)
			}
			if c.File.SuggestedFix == "" {
				t.Error("a proposal needs a suggestion")
			}
		}
	}
}
