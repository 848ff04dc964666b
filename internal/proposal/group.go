package proposal

import (
	"context"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// MaxGroups limits the number of groups.
const MaxGroups = 100

// GroupBy is the property by which proposals are grouped.
type GroupBy string

// The ways to group.
const (
	BySubmitter   GroupBy = "submitter"
	ByFingerprint GroupBy = "fingerprint" // only proposals that were filed from friction
)

// GroupBys lists the ways to group.
var GroupBys = []GroupBy{BySubmitter, ByFingerprint}

// Group summarizes the proposals of one group.
type Group struct {
	Key      string // a ref or a fingerprint
	Count    int64
	Evidence int64 // reports of the friction that filed them
	Oldest   time.Time
	Newest   time.Time
}

// Groups groups the proposals that the query matches and returns the largest groups, the largest
// first. It ignores the order and page of the query.
func (s *Proposals) Groups(ctx context.Context, a identity.Access, q Query, by GroupBy) ([]Group, error) {
	if err := a.For(identity.ListProposals); err != nil {
		return nil, err
	}
	q.Sort, q.Page, q.Limit, q.Cursor = "", 0, 0, ""
	f, err := q.check(viewer(a))
	if !slices.Contains(GroupBys, by) {
		wrong := errs.Field{Path: errs.At("by"), Message: "must be one of " + join(GroupBys)}
		if err != nil {
			return nil, errs.InvalidFields(append(errs.As(err).Fields, wrong)...)
		}
		return nil, errs.InvalidFields(wrong)
	}
	if err != nil {
		return nil, err
	}
	if by == ByFingerprint && f.Evidence == WithoutEvidence || f.nothing {
		return []Group{}, nil
	}
	return s.store.Groups(ctx, f, by)
}
