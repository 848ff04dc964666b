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
	// likeHits is how many proposals with a word are looked at, likeRaw how many entries of
	// the org in the index. A word with more of them says little.
	likeHits = 1000
	likeRaw  = 5 * likeHits
)

// Similar implements proposal.Store. It returns candidates: those with the most or the
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

// among is the condition for what can be a duplicate; w has the org as its first parameter.
func among(w *where, like proposal.Likeness) {
	w.and(`(p.status IN ('open', 'approved', 'rejected') OR p.status = 'draft' AND p.submitted_by = ?)`, like.Viewer.Principal.Ref())
	w.and(`p.id <> ?`, like.Except)
}

// likeByScan reads through the proposals of a small org.
func (s Proposals) likeByScan(ctx context.Context, r reader, like proposal.Likeness) ([]string, error) {
	w := where{sql: `p.org_id = $1`, args: []any{like.Org, s.d.likeWords(like.Words)}}
	among(&w, like)
	return strs(ctx, r, fmt.Sprintf(`SELECT k.id FROM (SELECT p.id, %s AS n FROM %s WHERE %s) k
		WHERE k.n > 0 ORDER BY k.n DESC, k.id DESC LIMIT %d`, s.d.likeCount, s.d.likeScan, w.sql, proposal.SimilarCandidates), w.args...)
}

// likeByIndex looks each word up. A proposal with few others that have the same word is
// more alike than one of many.
func (s Proposals) likeByIndex(ctx context.Context, r reader, like proposal.Likeness) ([]string, error) {
	score := map[string]float64{}
	for _, word := range like.Words {
		w := where{sql: `p.org_id = $1`, args: []any{like.Org, s.d.exactly(word)}}
		among(&w, like)
		ids, err := strs(ctx, r, fmt.Sprintf(`SELECT p.id FROM %s WHERE %s LIMIT %d`, fmt.Sprintf(s.d.likeHits, likeRaw), w.sql, likeHits), w.args...)
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

// records reads whole proposals, in no order.
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
	}, `SELECT `+recordColumns+` FROM proposals p WHERE p.org_id = $1 AND p.id IN (`+strings.Join(marks, ", ")+`)`, args...)
	return list, err
}
