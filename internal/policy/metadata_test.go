package policy

import (
	"testing"
	"time"
)

func TestTheMetadataOfARerun(t *testing.T) {
	t.Parallel()
	for metadata, want := range map[string]string{
		"":                                  `{"parley.dev/rerun_of":"a \"b\""}`,
		`{}`:                                `{"parley.dev/rerun_of":"a \"b\""}`,
		`{"x":{"y":[1]}}`:                   `{"x":{"y":[1]},"parley.dev/rerun_of":"a \"b\""}`,
		`{"parley.dev/rerun_of":"a","z":1}`: `{"z":1,"parley.dev/rerun_of":"a \"b\""}`,
		`{"parley.dev/policy":{"timeout_seconds":5}}`: `{"parley.dev/policy":{"timeout_seconds":5},` +
			`"parley.dev/rerun_of":"a \"b\""}`,
		`{"parley.dev/policy":{"deadline":"2026-01-01T00:00:00Z","retry":{}}}`: `{"parley.dev/policy":` +
			`{"timeout_seconds":61,"retry":{}},"parley.dev/rerun_of":"a \"b\""}`,
		`{"parley.dev/policy":{}}`: `{"parley.dev/policy":{},"parley.dev/rerun_of":"a \"b\""}`,
	} {
		got, err := Rerun([]byte(metadata), `a "b"`, time.Minute+time.Millisecond)
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v; want %s", metadata, got, err, want)
		}
		if !IsRerun(got) {
			t.Errorf("%s is not known as that of a rerun", got)
		}
	}
	for _, metadata := range []string{"", `{}`, `{"x":"parley.dev/rerun_of"}`, `{"x":{"parley.dev/rerun_of":"a"}}`} {
		if IsRerun([]byte(metadata)) {
			t.Errorf("%s is taken for that of a rerun", metadata)
		}
	}
}
