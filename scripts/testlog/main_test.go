package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnfinished(t *testing.T) {
	t.Parallel()
	// lines turns "action package test" into events.
	lines := func(events ...string) string {
		var b strings.Builder
		for _, e := range events {
			f := append(strings.Fields(e), "")
			b.WriteString(`{"Action":"` + f[0] + `","Package":"` + f[1] + `","Test":"` + f[2] + `"}` + "\n")
		}
		return b.String()
	}
	for name, test := range map[string]struct {
		in   string
		want []string
	}{
		"passed": {lines("start a", "run a T1", "pass a T1", "skip a T2", "pass a"), nil},
		"a failed test that passed when it was repeated": {
			lines("run a T1", "run a T2", "fail a T1", "pass a T2", "fail a", "run a T1", "pass a T1", "pass a"), nil,
		},
		"no test failed": {
			lines("output a", "fail a", "pass a"), []string{"a: failed, but none of its tests did"},
		},
		"no test failed when it was repeated": {
			lines("run a T1", "fail a T1", "fail a", "run a T1", "pass a T1", "fail a"),
			[]string{"a: failed, but none of its tests did"},
		},
		"the process was ended": {
			lines("run a T1", "fail a T1", "run a T2", "fail a", "run b T", "pass b T", "pass b"),
			[]string{"a: T2 has begun and not ended"},
		},
		"all was ended": {lines("run a T1"), []string{"a: has not ended"}},
		"build failed":  {lines("output a", "fail a"), []string{"a: failed, but none of its tests did"}},
	} {
		got, err := unfinished(strings.NewReader(test.in))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	if _, err := unfinished(strings.NewReader("{")); err == nil {
		t.Error("a file that is cut is accepted")
	}
}
