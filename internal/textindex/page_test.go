package textindex

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A scan from a key finds the same in a page with marks as in one without.
func TestScanFromMarks(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		keys := []string{"a"}
		for range 1 + rng.IntN(1500) {
			keys = append(keys, fmt.Sprintf("a%x", rng.IntN(1<<(1+rng.IntN(20)))))
		}
		slices.Sort(keys)
		keys = slices.Compact(keys)
		var data []byte
		before := ""
		for i, key := range keys {
			data = binary.AppendUvarint(appendShared(data, before, key), 0)
			data = appendStr(data, fmt.Sprint(i))
			before = key
		}
		marked := checked(t, seal(data))
		for range 2 {
			marked.near("a")
		}
		if got := marked.marks.Load(); got == nil || len(data) > 2*markEvery && len(*got) == 0 {
			t.Fatalf("a page of %d bytes has no marks", len(data))
		}
		found := func(p *Page, from string) (out []string) {
			if err := scan(p, from, func(e entry) bool {
				out = append(out, e.key+"="+string(e.inline))
				return len(out) < 3
			}); err != nil {
				t.Fatal(err)
			}
			return out
		}
		for _, key := range keys {
			for _, from := range []string{key, key + "0", key[:len(key)-1], key[:len(key)-1] + "~", "b"} {
				if diff := cmp.Diff(found(checked(t, seal(data)), from), found(marked, from)); diff != "" {
					t.Fatalf("from %q (-without +with marks)\n%s", from, diff)
				}
			}
		}
	}
}
