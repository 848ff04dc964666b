package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/textindex"
)

const (
	// mergeWidth is how many segments of similar size become one.
	mergeWidth = 8
	// largeSegment is the number of documents from which two segments that fit into one become one.
	largeSegment = textindex.MaxDocs / 4
	// mergeBytes limits a merged segment: texts can have very many words. largeBytes is the size from
	// which a segment counts as large, whatever the number of its documents.
	mergeBytes = 32 << 20
	largeBytes = mergeBytes / 4
	// keepReplaced is how long the pages of a replaced segment are kept for the searches that use it.
	keepReplaced = time.Minute
	sweepPages   = 64 // deleted in one write
)

// mergeAll merges segments until there are few.
func (x *searchIndex) mergeAll(ctx context.Context, org string) error {
	for {
		all, err := x.segments(ctx, x.eng, org)
		if err != nil {
			return err
		}
		group := toMerge(all)
		if len(group) == 0 {
			return nil
		}
		if err := x.merge(ctx, org, group); err != nil {
			return err
		}
	}
}

// toMerge chooses segments to merge: several of similar size, or one of which half is dead.
func toMerge(all []segmentRow) []segmentRow {
	used := slices.DeleteFunc(slices.Clone(all), func(s segmentRow) bool { return s.state != segmentUsed })
	slices.SortFunc(used, func(a, b segmentRow) int {
		return cmp.Or(cmp.Compare(a.alive(), b.alive()), cmp.Compare(a.id, b.id))
	})
	tiers := map[int][]segmentRow{}
	for _, s := range used {
		if 2*s.deadDocs > s.docs {
			return []segmentRow{s}
		}
		tiers[s.tier()] = append(tiers[s.tier()], s)
	}
	for tier, list := range tiers {
		group := fitting(list)
		large := len(group) < len(list) // what is left does not fit
		if len(group) >= mergeWidth || len(group) >= 2 && (large || tier == topTier) {
			return group
		}
	}
	return nil
}

const topTier = 100

// tier is the same for segments of similar size.
func (s *segmentRow) tier() int {
	tier := 0
	for n := s.alive(); n > 16; n /= mergeWidth {
		tier++
	}
	if s.alive() >= largeSegment || s.bytes >= largeBytes {
		tier = topTier
	}
	return tier
}

func (s *segmentRow) alive() int { return s.docs - s.deadDocs }

// fitting returns segments that fit into one.
func fitting(list []segmentRow) (group []segmentRow) {
	docs, bytes := 0, int64(0)
	for i := range list {
		n, size := docs+list[i].alive(), bytes+list[i].bytes
		if n <= textindex.MaxDocs && size <= mergeBytes {
			docs, bytes, group = n, size, append(group, list[i])
		}
	}
	return group
}

// merge replaces segments by one.
func (x *searchIndex) merge(ctx context.Context, org string, group []segmentRow) error {
	s := &searchState{}
	if err := x.openSegments(ctx, x.eng, org, s, group, nil); err != nil {
		return err
	}
	if err := x.loadAll(ctx, x.eng, org, s); err != nil {
		return err
	}
	pages, err := textindex.Merge(s.views)
	if err != nil {
		return err
	}
	docs := 0
	for i := range group {
		docs += group[i].alive()
	}
	return x.commit(ctx, org, pages, docs, func(t *tx) {
		for i := range group {
			t.exec(`UPDATE search_segments SET state = $3, changed_at = $4 WHERE org_id = $1 AND segment = $2`, org,
				group[i].id, segmentReplaced, micros(x.now()))
		}
	})
}

// sweepSegments deletes the pages of segments that were replaced some time ago.
func (x *searchIndex) sweepSegments(ctx context.Context, org string) error {
	all, err := x.segments(ctx, x.eng, org)
	if err != nil {
		return err
	}
	before := micros(x.now().Add(-keepReplaced))
	for _, s := range all {
		if s.state != segmentReplaced || s.changed > before {
			continue
		}
		for first := 0; ; first += sweepPages {
			n := 0
			left, err := one(ctx, x.eng, []any{&n}, `SELECT 1 FROM search_pages WHERE org_id = $1 AND segment = $2 LIMIT 1`,
				org, s.id)
			if err == nil {
				err = x.asOwner(ctx, org, func(t *tx) error {
					t.exec(`DELETE FROM search_pages WHERE org_id = $1 AND segment = $2 AND page < $3`, org, s.id, first+sweepPages)
					if !left {
						t.exec(`DELETE FROM search_segments WHERE org_id = $1 AND segment = $2`, org, s.id)
					}
					return nil
				})
			}
			if err != nil {
				return err
			}
			if !left {
				break
			}
		}
	}
	return nil
}

// verify reads a whole segment and returns its ids that are not dead.
func (x *searchIndex) verify(ctx context.Context, r reader, org string, row segmentRow) ([]string, error) {
	s := &searchState{}
	if err := x.openSegments(ctx, r, org, s, []segmentRow{row}, nil); err != nil {
		return nil, err
	}
	if err := x.loadAll(ctx, r, org, s); err != nil {
		return nil, err
	}
	ids, err := textindex.Verify(s.views[0])
	if err == nil && s.views[0].Dead().Count() != row.deadDocs {
		err = errors.Join(textindex.ErrDamaged, errors.New("a number of deleted documents"))
	}
	return ids, err
}
