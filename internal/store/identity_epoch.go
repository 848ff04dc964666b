package store

import (
	"context"
	"slices"
)

// newEpoch invalidates the identity caches of all nodes, because rights in an org may have
// been revoked; an empty org means any. The caches of this node are emptied right after the
// commit, those of other nodes when they next poll the epoch.
func (t *tx) newEpoch(org string) {
	t.exec(`UPDATE identity_epoch SET epoch = epoch + 1 WHERE id = 1`)
	if !slices.Contains(t.revoked, org) {
		t.revoked = append(t.revoked, org)
	}
}

// OnRevoke registers a function that is called after each commit of this process that may
// have revoked rights in an org, and before the write returns to its caller. An empty org
// means any. f must not use the store. OnRevoke must be called before the first write.
func (s *Store) OnRevoke(f func(org string)) { s.revoked.f = f }

// revocations holds the function that was registered with OnRevoke.
type revocations struct{ f func(org string) }

func (r *revocations) tell(t *tx) {
	for _, org := range t.revoked {
		if r.f != nil {
			r.f(org)
		}
	}
}

// Epoch implements identity.CredentialStore.
func (s Identity) Epoch(ctx context.Context) (int64, error) {
	var n int64
	_, err := one(ctx, s.eng, []any{&n}, `SELECT epoch FROM identity_epoch WHERE id = 1`)
	return n, err
}
