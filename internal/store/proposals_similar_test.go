package store

import (
	"context"
	"fmt"
	"testing"

	"github.com/parley-dev/parley/internal/pgtest"
)

// TestHitsOfOthersDoNotCount limits the hits that are read: those of another org, which are newer
// here, leave room for the org's own hits.
func TestHitsOfOthersDoNotCount(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"sqlite": {Dir: t.TempDir()}, "postgres": {URL: pgtest.URL(t)}} {
		s, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		addProposals(t, s, "quiet", 2)
		addProposals(t, s, "busy", 10)
		if x, ok := s.eng.(*lite); ok {
			if err := x.indexer.catchUp(t.Context(), 12); err != nil {
				t.Fatal(err)
			}
		}
		var ids []string
		err = s.slow(t.Context(), "quiet", func(ctx context.Context, r reader) error {
			ids, err = strs(ctx, r, "SELECT p.id FROM "+fmt.Sprintf(s.d.likeHits, 5)+" WHERE p.org_id = $1",
				"quiet", s.d.exactly("upload"))
			return err
		})
		if err != nil || len(ids) != 2 {
			t.Errorf("%s: %v, %v, want 2 of the org", name, ids, err)
		}
	}
}
