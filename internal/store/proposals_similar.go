package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/textindex"
)

// Similar implements proposal.Store. It returns candidates: the proposals with the most or the
// rarest of the words, those in titles before others.
func (s Proposals) Similar(ctx context.Context, like proposal.Likeness) ([]proposal.Proposal, error) {
	q := textindex.Query{
		Any: like.Words, Except: like.Except, Order: textindex.ByRelevance, Hidden: [2]string{
			statusTag(proposal.Draft), submitterTag(like.Viewer.Principal.Ref()), // also from admins
		},
		OneOf: []string{
			statusTag(proposal.Open), statusTag(proposal.Approved), statusTag(proposal.Rejected), statusTag(proposal.Draft),
		},
	}
	var found []proposal.Proposal
	err := s.slow(ctx, like.Org, func(ctx context.Context, r reader) error {
		return s.run(ctx, r, like.Org, q, func(m *matched) error {
			hits, err := m.pick(ctx, nil, 0, proposal.SimilarCandidates)
			if err == nil {
				found, err = records(ctx, r, like.Org, idsOf(hits))
			}
			return err
		})
	})
	return found, err
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
