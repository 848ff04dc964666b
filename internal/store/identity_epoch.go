package store

import (
	"context"
	"slices"
)

// newEpoch tells the caches of all nodes that a right may have been taken away in an
// org; an empty org means any. This node's caches are told right after the commit,
// those of other nodes find the new epoch when they next look.
func (t *tx) newEpoch(org string) {
	t.exec(`UPDATE identity_epoch SET epoch = epoch + 1 WHERE id = 1`)
	if !slices.Contains(t.revoked, org) {
		t.revoked = append(t.revoked, org)
	}
}

// OnRevoke has f called after each commit of this process that may have taken rights
// away in an org, and before the caller of the write is answered. An empty org means
// any. f must not use the store. OnRevoke is called before the first write.
func (s *Store) OnRevoke(f func(org string)) { s.revoked.f = f }

// revocations is where the engines tell of them.
type revocations struct{ f func(org string) }

func (r *revocations) tell(t *tx) {
	for _, org := range t.revoked {
		if r.f != nil {
			r.f(org)
		}
	}
}

// Epoch implements identity.KeyStore.
func (s Identity) Epoch(ctx context.Context) (int64, error) {
	var n int64
	_, err := one(ctx, s.eng, []any{&n}, `SELECT epoch FROM identity_epoch WHERE id = 1`)
	return n, err
}
