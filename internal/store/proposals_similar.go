package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/proposal"
)

const (
	// likeHits limits the proposals read for one word, likeRaw the entries of the org in the
	// index. A word with more of them does not indicate likeness.
	likeHits = 1000
	likeRaw  = 5 * likeHits
)

// Similar implements proposal.Store. It returns candidates: the proposals with the most or the
// rarest of the words.
func (s Proposals) Similar(ctx context.Context, like proposal.Likeness) ([]proposal.Proposal, error) {
	var found []proposal.Proposal
	err := s.slow(ctx, like.Org, func(ctx context.Context, r reader) error {
		scan, err := s.searchScans(ctx, r, like.Org)
		if err != nil {
			return err
		}
		var ids []string
		if scan {
			ids, err = s.likeByScan(ctx, r, like)
		} else {
			ids, err = s.likeByIndex(ctx, r, like)
		}
		if err == nil {
			found, err = records(ctx, r, like.Org, ids)
		}
		return err
	})
	return found, err
}

// among adds the condition for possible duplicates to w, whose first parameter is the org.
func among(w *where, like proposal.Likeness) {
	w.and(`(p.status IN ('open', 'approved', 'rejected') OR p.status = 'draft' AND p.submitted_by = ?)`,
		like.Viewer.Principal.Ref())
	w.and(`p.id <> ?`, like.Except)
}

// likeByScan scans the proposals of a small org.
func (s Proposals) likeByScan(ctx context.Context, r reader, like proposal.Likeness) ([]string, error) {
	w := where{sql: `p.org_id = $1`, args: []any{like.Org, s.d.likeWords(like.Words)}}
	among(&w, like)
	return strs(ctx, r, fmt.Sprintf(`SELECT k.id FROM (SELECT p.id, %s AS n FROM %s WHERE %s) k
			WHERE k.n > 0 ORDER BY k.n DESC, k.id DESC LIMIT %d`,
		s.d.likeCount, s.d.likeScan, w.sql, proposal.SimilarCandidates), w.args...)
}

// likeByIndex looks up each word. A rare word counts more than one that many proposals have.
func (s Proposals) likeByIndex(ctx context.Context, r reader, like proposal.Likeness) ([]string, error) {
	score := map[string]float64{}
	for _, word := range like.Words {
		w := where{sql: `p.org_id = $1`, args: []any{like.Org, s.d.exactly(word)}}
		among(&w, like)
		ids, err := strs(ctx, r, fmt.Sprintf(`SELECT p.id FROM %s WHERE %s LIMIT %d`,
			fmt.Sprintf(s.d.likeHits, likeRaw), w.sql, likeHits), w.args...)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			score[id] += 1 / math.Log2(float64(2+len(ids)))
		}
	}
	ids := slices.SortedFunc(maps.Keys(score), func(a, b string) int {
		return cmp.Or(-cmp.Compare(score[a], score[b]), -cmp.Compare(a, b))
	})
	return ids[:min(len(ids), proposal.SimilarCandidates)], nil
}

// records returns whole proposals in no particular order.
func records(ctx context.Context, r reader, org string, ids []string) ([]proposal.Proposal, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	args, marks := []any{org}, make([]string, len(ids))
	for i, id := range ids {
		args = append(args, id)
		marks[i] = fmt.Sprintf("$%d", len(args))
	}
	list := make([]proposal.Proposal, 0, len(ids))
	err := each(ctx, r, func(r rows) error {
		p := proposal.Proposal{Org: org}
		err := scanRecord(r, &p)
		list = append(list, p)
		return err
	}, `SELECT `+recordColumns+` FROM proposals p
		WHERE p.org_id = $1 AND p.id IN (`+strings.Join(marks, ", ")+`)`, args...)
	return list, err
}
