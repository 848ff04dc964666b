package config

import (
	"regexp"
	"slices"
	"strings"
)

// clientEnv lists the variables that only commands against a running server read.
var clientEnv = []string{"PARLEY_SERVER", "PARLEY_KEY", "PARLEY_ORG", "PARLEY_CONFIG"}

// serviceLink matches the variables that Kubernetes sets in every pod of a namespace with a Service
// named parley. They are not settings.
var serviceLink = regexp.MustCompile(`^PARLEY_(SERVICE_(HOST|PORT(_.*)?)|PORT(_\d+_(TCP|UDP)(_(PROTO|PORT|ADDR))?)?)$`)

// UnknownEnv lists the PARLEY_* variables that no setting reads, so that typos can be reported.
func UnknownEnv(environ []string) []string {
	var out []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		rest, ours := strings.CutPrefix(name, "PARLEY_")
		if !ours || slices.Contains(clientEnv, name) || serviceLink.MatchString(name) ||
			strings.HasPrefix(rest, "TEST_") || slices.Contains(Keys(), strings.ToLower(rest)) {
			continue
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
