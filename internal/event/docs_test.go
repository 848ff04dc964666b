package event

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the table of types in docs/events.md")

// TestDocumentHasAllTypes compares the table in docs/events.md with Kinds.
func TestDocumentHasAllTypes(t *testing.T) {
	t.Parallel()
	const file, begin, end = "../../docs/events.md", "-run TestDocumentHasAllTypes -update -->\n", "<!-- end of types -->"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(raw), begin)
	shown, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no table of types between %q and %q", file, begin, end)
	}
	want := tableOfTypes()
	if diff := cmp.Diff(want, shown); diff != "" && !*update {
		t.Errorf("the table differs from Kinds; run with -update (-Kinds +document):\n%s", diff)
	}
	if *update {
		if err := os.WriteFile(file, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// tableOfTypes has the types in the order of Kinds, but those about one kind of record together.
func tableOfTypes() string {
	var abouts []string
	rows := map[string]string{}
	for _, k := range Kinds {
		if rows[k.About] == "" {
			abouts = append(abouts, k.About)
		}
		rows[k.About] += fmt.Sprintf("| `%s` | %s | %s | %d |\n", k.Type, k.Text, k.Seen, k.Version)
	}
	table := "| type | what happened | who sees it | version |\n|---|---|---|---|\n"
	for _, about := range abouts {
		table += rows[about]
	}
	return table
}
