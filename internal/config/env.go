package config

import (
	"regexp"
	"slices"
	"strings"
)

// clientEnv are the variables that the commands against a running server read.
var clientEnv = []string{"PARLEY_SERVER", "PARLEY_KEY", "PARLEY_ORG", "PARLEY_CONFIG"}

// serviceLink matches what Kubernetes sets in every pod beside a Service that is
// called parley; nobody wrote these as settings.
var serviceLink = regexp.MustCompile(`^PARLEY_(SERVICE_(HOST|PORT(_.*)?)|PORT(_\d+_(TCP|UDP)(_(PROTO|PORT|ADDR))?)?)$`)

// UnknownEnv lists the PARLEY_* variables of an environment that no setting
// reads, so that a mistyped one can be pointed out.
func UnknownEnv(environ []string) []string {
	var out []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		rest, ours := strings.CutPrefix(name, "PARLEY_")
		if !ours || slices.Contains(clientEnv, name) || serviceLink.MatchString(name) || strings.HasPrefix(rest, "TEST_") ||
			slices.Contains(Keys(), strings.ToLower(rest)) {
			continue
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
