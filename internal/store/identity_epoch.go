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

// Epoch implements identity.CredentialStore.
func (s Identity) Epoch(ctx context.Context) (int64, error) {
	var n int64
	_, err := one(ctx, s.eng, []any{&n}, `SELECT epoch FROM identity_epoch WHERE id = 1`)
	if e, ok := s.eng.(*lite); ok && err == nil {
		e.noticed(n)
	}
	return n, err
}
