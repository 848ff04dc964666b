package trace_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/trace"
)

const (
	id      = "4bf92f3577b34da6a3ce929d0e0e4736"
	span    = "00f067aa0ba902b7"
	sampled = "00-" + id + "-" + span + "-01"
)

func TestParse(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 250)
	for name, c := range map[string]struct {
		parent, state []string
		want          trace.Context
	}{
		"none":                     {nil, nil, trace.Context{}},
		"sampled":                  {[]string{sampled}, nil, trace.Context{Parent: sampled}},
		"not sampled":              {[]string{sampled[:53] + "00"}, nil, trace.Context{Parent: sampled[:53] + "00"}},
		"with a state":             {[]string{sampled}, []string{"a=1,b=2"}, trace.Context{Parent: sampled, State: "a=1,b=2"}},
		"states in two headers":    {[]string{sampled}, []string{"a=1", "b=2"}, trace.Context{Parent: sampled, State: "a=1,b=2"}},
		"two parents":              {[]string{sampled, sampled}, nil, trace.Context{}},
		"upper case":               {[]string{strings.ToUpper(sampled)}, nil, trace.Context{}},
		"zero trace":               {[]string{"00-" + strings.Repeat("0", 32) + "-" + span + "-01"}, nil, trace.Context{}},
		"zero span":                {[]string{"00-" + id + "-" + strings.Repeat("0", 16) + "-01"}, nil, trace.Context{}},
		"version ff":               {[]string{"ff" + sampled[2:]}, nil, trace.Context{}},
		"version 00 and more":      {[]string{sampled + "-00"}, nil, trace.Context{}},
		"a later version":          {[]string{"01" + sampled[2:] + "-more"}, nil, trace.Context{Parent: sampled}},
		"later, not sampled":       {[]string{"cc" + sampled[2:53] + "0e"}, nil, trace.Context{Parent: sampled[:53] + "00"}},
		"later, glued":             {[]string{"01" + sampled[2:] + "x"}, nil, trace.Context{}},
		"short":                    {[]string{sampled[:54]}, nil, trace.Context{}},
		"not hexadecimal":          {[]string{"00-" + id[:31] + "g-" + span + "-01"}, nil, trace.Context{}},
		"a state without a parent": {nil, []string{"a=1"}, trace.Context{}},
		"an invalid state":         {[]string{sampled}, []string{"a"}, trace.Context{Parent: sampled}},
		"a control character":      {[]string{sampled}, []string{"a=1\n2"}, trace.Context{Parent: sampled}},
		"a long state loses its end": {
			[]string{sampled},
			[]string{"a=" + long, "b=" + long, "c=" + long},
			trace.Context{Parent: sampled, State: "a=" + long + ",b=" + long},
		},
		"one long member": {[]string{sampled}, []string{"a=" + strings.Repeat("x", 600)}, trace.Context{Parent: sampled}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := trace.Parse(c.parent, c.state)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("Parse (-want +got):\n%s", diff)
			}
			if back := trace.FromString(got.String()); back != got {
				t.Errorf("FromString(%q) = %+v, want %+v", got.String(), back, got)
			}
		})
	}
}

// A server that exports no traces passes on what a request came with.
func TestFromReturnsTheContextOfTheRequest(t *testing.T) {
	t.Parallel()
	want := trace.Context{Parent: sampled, State: "a=1"}
	ctx := context.WithValue(t.Context(), trace.Key{}, &want)
	if got := trace.From(ctx); got != want {
		t.Errorf("From = %+v, want %+v", got, want)
	}
	if got := trace.From(t.Context()); got != (trace.Context{}) {
		t.Errorf("From of a context without one = %+v", got)
	}
}

// While traces are off, nothing is allocated for them.
func TestNoTracerAllocatesNothing(t *testing.T) {
	var tracer *trace.Tracer
	ctx := t.Context()
	none := testing.AllocsPerRun(100, func() {
		inner, s := tracer.Start(ctx, trace.Internal, "x")
		s.Fail("x")
		s.Link(trace.Context{})
		s.End()
		_ = trace.From(inner)
		_ = trace.Parse(nil, nil)
		_ = s.TraceID()
	})
	if none != 0 {
		t.Errorf("%v allocations", none)
	}
}
