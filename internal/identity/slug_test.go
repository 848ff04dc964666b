package identity

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestIDsFollowTheirPatterns(t *testing.T) {
	t.Parallel()
	org, agent := regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`), regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	check := func(s string) bool {
		return ValidOrgID(s) == org.MatchString(s) && ValidAgentID(s) == agent.MatchString(s)
	}
	for _, s := range []string{
		"", "a", "-", ".a", "a.b", "a_b", "A", "a b", "a\n", "ä", strings.Repeat("a", 63),
		strings.Repeat("a", 64), strings.Repeat("a", 65),
	} {
		if !check(s) {
			t.Errorf("%q is not judged as its pattern does", s)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		if s := rapid.StringMatching(`[a-c0._\-A\n]{0,70}`).Draw(rt, "id"); !check(s) {
			rt.Fatalf("%q is not judged as its pattern does", s)
		}
	})
}
