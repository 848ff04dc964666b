package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"
)

// mismatch compares a response with a pattern and returns where they differ, or "".
//
// The pattern is JSON in which some strings stand for a set of values: "<any>", "<string>",
// "<int>", "<time>" (ISO 8601, UTC), "<prop>" and "<followup>" (ids). An object may have more
// members than its pattern, unless the pattern has the member "=", which requires exactly its
// members. Arrays have the same length.
func mismatch(pattern string, answer []byte) string {
	var want, got any
	if err := json.Unmarshal([]byte(pattern), &want); err != nil {
		return fmt.Sprintf("the pattern is not JSON: %v", err)
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		return fmt.Sprintf("the answer is not JSON: %v", err)
	}
	return differ("", want, got)
}

func differ(at string, want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		m, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s: got %v, want an object", at, got)
		}
		return differObject(at, want, m)
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return fmt.Sprintf("%s: got %v, want %d elements: %v", at, got, len(want), want)
		}
		for i := range want {
			if d := differ(fmt.Sprintf("%s/%d", at, i), want[i], list[i]); d != "" {
				return d
			}
		}
		return ""
	case string:
		if test, ok := placeholders[want]; ok {
			if test(got) {
				return ""
			}
			return fmt.Sprintf("%s: got %v, want %s", at, got, want)
		}
	}
	if want != got {
		return fmt.Sprintf("%s: got %#v, want %#v", at, got, want)
	}
	return ""
}

func differObject(at string, want, got map[string]any) string {
	_, exact := want["="]
	for name, w := range want {
		if name == "=" {
			continue
		}
		g, ok := got[name]
		if !ok {
			return fmt.Sprintf("%s/%s is missing in %v", at, name, got)
		}
		if d := differ(at+"/"+name, w, g); d != "" {
			return d
		}
	}
	if exact && len(got) != len(want)-1 {
		var extra []string
		for name := range got {
			if _, ok := want[name]; !ok {
				extra = append(extra, name)
			}
		}
		sort.Strings(extra)
		return fmt.Sprintf("%s has more than the contract says: %s", at, strings.Join(extra, ", "))
	}
	return ""
}

var placeholders = map[string]func(any) bool{
	"<any>":      func(any) bool { return true },
	"<string>":   func(v any) bool { s, ok := v.(string); return ok && s != "" },
	"<int>":      func(v any) bool { f, ok := v.(float64); return ok && f == float64(int64(f)) },
	"<time>":     isTime,
	"<prop>":     matches(`^prop-[0-9a-z]{26}$`),
	"<followup>": matches(`^fup-[0-9a-z]{26}$`),
}

func matches(pattern string) func(any) bool {
	re := regexp.MustCompile(pattern)
	return func(v any) bool { s, ok := v.(string); return ok && re.MatchString(s) }
}

func isTime(v any) bool {
	s, ok := v.(string)
	if !ok || !strings.HasSuffix(s, "Z") {
		return false
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	// A wrong unit or an unset time would be years off.
	return err == nil && time.Since(at).Abs() < time.Hour
}

// A matcher that accepts everything would make every row pass.
func TestSpecMatcherSeesDifferences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, answer string
		same            bool
	}{
		{`{"a":1}`, `{"a":1,"b":2}`, true},
		{`{"=":0,"a":1}`, `{"a":1}`, true},
		{`{"a":"<int>","b":["<string>"]}`, `{"a":7,"b":["x"]}`, true},
		{`{"=":0,"a":1}`, `{"a":1,"b":2}`, false},
		{`{"a":null}`, `{}`, false},
		{`{"a":1}`, `{"a":"1"}`, false},
		{`{"a":[]}`, `{"a":[1]}`, false},
		{`{"a":[]}`, `{"a":null}`, false},
		{`{"a":"<time>"}`, `{"a":"1970-01-01T00:00:00Z"}`, false},
		{`{"a":"<prop>"}`, `{"a":"prop-1"}`, false},
		{`{"a":1}`, `nothing`, false},
	} {
		if d := mismatch(c.pattern, []byte(c.answer)); (d == "") != c.same {
			t.Errorf("mismatch(%s, %s) = %q, want same: %v", c.pattern, c.answer, d, c.same)
		}
	}
}
