package errs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPathsAreWrittenAsGoWould(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]Path{
		"": nil, "title": At("title"), "skills[0].id": At("skills", 0, "id"), "a.b[1][2]": At("a", "b", 1, 2),
	} {
		if got := p.String(); got != want {
			t.Errorf("%#v: got %q, want %q", p, got, want)
		}
	}
}

func TestFieldsMoveUnderAPath(t *testing.T) {
	t.Parallel()
	got := Under([]Field{{Path: At("id"), Message: "a"}, {Path: nil, Message: "b"}}, "skills", 3)
	want := []Field{{Path: At("skills", 3, "id"), Message: "a"}, {Path: At("skills", 3), Message: "b"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

func TestNoFieldsCostNothing(t *testing.T) { // not parallel: it counts allocations
	index := 7
	if allocs := testing.AllocsPerRun(100, func() { Under(nil, "parts", index) }); allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}

func TestATransportSpellsTheMessage(t *testing.T) {
	t.Parallel()
	e := InvalidFields(Field{Path: At("skills", 0, "id"), Message: "is required"}, Field{Message: "must be an object"})
	if want := "skills[0].id is required; must be an object"; e.Message != want || e.Error() != want {
		t.Errorf("got %q, want %q", e.Message, want)
	}
	head := func(p Path) string { return p.Head() }
	if got, want := e.Explain(head), "skills is required; must be an object"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	renamed := e.Spelled(func(f Field) Field { return Under([]Field{f}, "agent")[0] })
	want := "agent.skills[0].id is required; agent must be an object"
	if renamed.Message != want || e.Fields[1].Path != nil {
		t.Errorf("got %q, want %q; the original has %v", renamed.Message, want, e.Fields)
	}
	whole := InvalidFields(Under([]Field{Refused(At("grants", 1), New(Invalid, "x.y", "unknown grant"))}, "rules", 0)...)
	if want := "rules[0].grants[1]: unknown grant"; whole.Message != want {
		t.Errorf("got %q, want %q", whole.Message, want)
	}
	other := New(Conflict, "x.y", "it is so")
	if got := other.Explain(func(Path) string { return "z" }); got != "it is so" {
		t.Errorf("got %q, want it is so", got)
	}
}
