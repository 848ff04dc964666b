package wire

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/policy"
)

func TestReadPolicy(t *testing.T) {
	t.Parallel()
	both := policy.Retry{Attempts: 3, Lost: true, Failed: true}
	for _, c := range []struct {
		metadata string
		want     policy.Policy
		mistakes string // their paths
	}{
		{"", policy.Policy{}, ""},
		{`{"a":1}`, policy.Policy{}, ""},
		{`{"a":{"parley.dev/policy":{"timeout_seconds":5}}}`, policy.Policy{}, ""},
		{`{"parley.dev/policy":null}`, policy.Policy{}, ""},
		{`{"parley.dev/policy":{}}`, policy.Policy{}, ""},
		{`{"parley.dev/policy":{"timeout_seconds":5}}`, policy.Policy{Timeout: 5 * time.Second}, ""},
		{`{"parley.dev\/policy":{"timeout_seconds":5.0}}`, policy.Policy{Timeout: 5 * time.Second}, ""},
		{`{"\u0070arley.dev/policy":{"timeout_seconds":5}}`, policy.Policy{Timeout: 5 * time.Second}, ""},
		{
			`{"x":[1],"parley.dev/policy":{"deadline":"2026-01-01T13:00:00+01:00"},"y":2}`,
			policy.Policy{Deadline: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)},
			"",
		},
		{`{"parley.dev/policy":{"retry":{}}}`, policy.Policy{Retry: both}, ""},
		{
			`{"parley.dev/policy":{"retry":{"max_attempts":10,"backoff_seconds":3600,"on":["failed"]}}}`,
			policy.Policy{Retry: policy.Retry{Attempts: 10, Backoff: time.Hour, Failed: true}},
			"",
		},
		{`{"parley.dev/policy":{"retry":{"on":["lost","lost"]}}}`, policy.Policy{Retry: policy.Retry{Attempts: 3, Lost: true}}, ""},

		{`{"parley.dev/policy":5}`, policy.Policy{}, "parley.dev/policy"},
		{`{"parley.dev/policy":{"timeout":5}}`, policy.Policy{}, "parley.dev/policy.timeout"},
		{`{"parley.dev/policy":{"timeout_seconds":0}}`, policy.Policy{}, "parley.dev/policy.timeout_seconds"},
		{`{"parley.dev/policy":{"timeout_seconds":2592001}}`, policy.Policy{}, "parley.dev/policy.timeout_seconds"},
		{`{"parley.dev/policy":{"timeout_seconds":1.5}}`, policy.Policy{}, "parley.dev/policy.timeout_seconds"},
		{`{"parley.dev/policy":{"timeout_seconds":null}}`, policy.Policy{}, "parley.dev/policy.timeout_seconds"},
		{`{"parley.dev/policy":{"deadline":"tomorrow"}}`, policy.Policy{}, "parley.dev/policy.deadline"},
		{`{"parley.dev/policy":{"deadline":5}}`, policy.Policy{}, "parley.dev/policy.deadline"},
		{
			`{"parley.dev/policy":{"deadline":"2026-01-01T12:00:00Z","timeout_seconds":5}}`,
			policy.Policy{},
			"parley.dev/policy.timeout_seconds",
		},
		{
			`{"parley.dev/policy":{"retry":{"max_attempts":11,"backoff_seconds":-1,"on":["never",3]}}}`,
			policy.Policy{},
			"parley.dev/policy.retry.max_attempts parley.dev/policy.retry.backoff_seconds " +
				"parley.dev/policy.retry.on[0] parley.dev/policy.retry.on[1]",
		},
		{`{"parley.dev/policy":{"retry":{"on":[]}}}`, policy.Policy{}, "parley.dev/policy.retry.on"},
		{`{"parley.dev/policy":{"retry":{"times":3}}}`, policy.Policy{}, "parley.dev/policy.retry.times"},
	} {
		got, fields := ReadPolicy([]byte(c.metadata))
		var paths []string
		for _, f := range fields {
			paths = append(paths, f.Path.String())
		}
		if mistakes := strings.Join(paths, " "); mistakes != c.mistakes {
			t.Errorf("%s: mistakes in %q; want %q", c.metadata, mistakes, c.mistakes)
		}
		if got.Deadline = got.Deadline.UTC(); c.mistakes == "" && got != c.want {
			t.Errorf("%s: got %+v; want %+v", c.metadata, got, c.want)
		}
	}
}
