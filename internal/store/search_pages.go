package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-dev/parley/internal/cache"
	"github.com/parley-dev/parley/internal/textindex"
)

// maxKeptPages limits the pages of all indexes that are kept in memory, in bytes.
const maxKeptPages = 32 << 20

// pageKey names a page. No two segments of a store have the same number, and no page changes.
type pageKey struct {
	segment int64
	page    int
}

func newPageCache() *cache.Cache[pageKey, *textindex.Page] {
	const overhead = 160 // of an entry
	return cache.New(cache.Options[pageKey, *textindex.Page]{
		Max: maxKeptPages, Size: func(_ pageKey, p *textindex.Page) int64 { return p.Size() + overhead },
	})
}

// errPageGone is the error of pages that a segment lacks, because it was replaced or is damaged.
var errPageGone = errors.New("pages of a segment are gone")

// keptPages is the textindex.Source of the pages of a segment that searches have read.
type keptPages struct {
	pages   *cache.Cache[pageKey, *textindex.Page]
	segment int64
}

// Page implements textindex.Source.
func (k keptPages) Page(n int) *textindex.Page {
	page, _ := k.pages.Get(pageKey{k.segment, n})
	return page
}

// load reads the pages that views of segments lack. It keeps them for later searches.
func (x *searchIndex) load(ctx context.Context, r reader, org string, views []*textindex.View, ids []int64) error {
	return x.loadOnce(ctx, r, org, views, ids, func(key pageKey, page *textindex.Page) { x.pages.Set(key, page) })
}

// loadAll reads all pages of segments from the store, not from memory: damage must show, and pages of
// segments that are about to be replaced need not be kept.
func (x *searchIndex) loadAll(ctx context.Context, r reader, org string, s *searchState) error {
	for i, v := range s.views {
		v = textindex.NewView(v.Segment, v.Dead(), nil)
		s.views[i] = v
		n := 0
		if _, err := one(ctx, r, []any{&n}, `SELECT count(*) FROM search_pages WHERE org_id = $1 AND segment = $2`, org,
			s.ids[i]); err != nil {
			return err
		}
		v.AskAll(n)
	}
	return x.loadOnce(ctx, r, org, s.views, s.ids, func(pageKey, *textindex.Page) {})
}

// loadOnce reads the pages that views lack, and calls keep for each one.
func (x *searchIndex) loadOnce(
	ctx context.Context, r reader, org string, views []*textindex.View, ids []int64, keep func(pageKey, *textindex.Page),
) error {
	var segments, pages []int64
	byID := map[int64]*textindex.View{}
	for i, v := range views {
		missing := v.Missing()
		if len(missing) > 0 && i >= len(ids) {
			return fmt.Errorf("%w: a page in memory", textindex.ErrDamaged)
		}
		for _, n := range missing {
			id := ids[i]
			segments, pages = append(segments, id), append(pages, int64(n))
			byID[id] = v
		}
	}
	read := 0
	err := x.readPages(ctx, r, org, segments, pages, func(segment int64, n int, data []byte) error {
		page, err := textindex.Check(data)
		if err != nil {
			return err
		}
		byID[segment].AddPage(n, page)
		keep(pageKey{segment, n}, page)
		read++
		return nil
	})
	if err == nil && read < len(pages) {
		err = errPageGone
	}
	return err
}

// readPages calls fn for the pages that exist.
func (x *searchIndex) readPages(
	ctx context.Context, r reader, org string, segments, pages []int64, fn func(segment int64, page int, data []byte) error,
) error {
	const most = 512 // in one query
	for len(pages) > 0 {
		n := min(most, len(pages))
		args := append([]any{org}, x.d.pairs(segments[:n], pages[:n])...)
		if err := each(ctx, r, func(r rows) error {
			var segment int64
			var page int
			var data []byte
			if err := r.Scan(&segment, &page, &data); err != nil {
				return err
			}
			return fn(segment, page, data)
		}, x.d.pages, args...); err != nil {
			return err
		}
		segments, pages = segments[n:], pages[n:]
	}
	return nil
}
