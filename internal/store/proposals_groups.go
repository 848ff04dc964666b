package store

import (
	"context"
	"fmt"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// Groups implements proposal.Store. It reads all matching rows, from an index where one covers
// them.
func (s Proposals) Groups(ctx context.Context, f proposal.Filter, by proposal.GroupBy) ([]proposal.Group, error) {
	key, evidence, index := "p.submitted_by", "0", bySubmitter
	if by == proposal.ByFingerprint {
		key, evidence = "p.fingerprint", "sum(p.evidence)"
		f.Evidence = proposal.WithEvidence
	}
	switch {
	case f.Fingerprint != "":
		index = ""
	case f.Evidence == proposal.WithEvidence:
		index = byEvidence
	case f.Kind == identity.User:
		index = byCategory
	}
	groups := []proposal.Group{}
	err := s.slow(ctx, f.Org, func(ctx context.Context, r reader) error {
		q := newListQuery(s.d, f, 0)
		if len(f.Words) > 0 {
			ids, err := s.searchKeys(ctx, r, f)
			if err != nil {
				return err
			}
			keys, arg := s.d.listed(ids)
			q.arg(arg)
			q.from = "(" + keys + ") k " + s.d.byID
		} else if q.from = "proposals p"; index != "" {
			q.from += s.d.by(index)
		}
		// The indexes do not hold the time, but ids sort by it.
		at := func(id string) string {
			return `(SELECT submitted_at FROM proposals WHERE org_id = $1 AND id = g.` + id + `)`
		}
		groups = groups[:0]
		return each(ctx, r, func(r rows) error {
			var g proposal.Group
			var oldest, newest int64
			err := r.Scan(&g.Key, &g.Count, &g.Evidence, &oldest, &newest)
			g.Oldest, g.Newest = fromMicros(oldest), fromMicros(newest)
			groups = append(groups, g)
			return err
		}, fmt.Sprintf(`SELECT g.name, g.n, g.evidence, %[1]s, %[2]s FROM (
							SELECT %[3]s AS name, count(*) AS n, CAST(%[4]s AS BIGINT) AS evidence,
								min(p.id) AS oldest, max(p.id) AS newest
				FROM %[5]s GROUP BY %[3]s ORDER BY n DESC, evidence DESC, name LIMIT %[6]d
			) g ORDER BY g.n DESC, g.evidence DESC, g.name`,
			at("oldest"), at("newest"), key, evidence, q.matchConditions(), proposal.MaxGroups), q.args...)
	})
	return groups, err
}
