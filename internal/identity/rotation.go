package identity

import (
	"fmt"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// CheckOverlap returns an error if an overlap is out of bounds.
func CheckOverlap(d time.Duration) error {
	if d < 0 || d > MaxOverlap {
		return errs.InvalidFields(errs.NewField("overlap",
			fmt.Sprintf("must be an integer between 0 and %d", int(MaxOverlap/time.Second))))
	}
	return nil
}

// decideRotation returns the successor of a key, without id, prefix and creator, and the
// expiry of the old key.
func decideRotation(old Key, now time.Time, overlap time.Duration) (Rotation, error) {
	if old.Disabled {
		return Rotation{}, DisabledPrincipal(old.Principal)
	}
	if s := old.State(now); s != KeyLive {
		return Rotation{}, errs.New(errs.Conflict, "identity.key_not_live", "the key is %s; make a new one instead", s)
	}
	if old.ReplacedBy != "" {
		return Rotation{}, errs.New(errs.Conflict, "identity.key_replaced",
			"the key was rotated already; rotate %s instead", old.ReplacedBy)
	}
	next := old
	next.ID, next.Prefix, next.CreatedBy, next.Replaces = "", "", "", old.ID
	next.CreatedAt, next.LastUsedAt = now, time.Time{}
	end := now.Add(overlap)
	if !old.ExpiresAt.IsZero() && old.ExpiresAt.Before(end) {
		end = old.ExpiresAt
	}
	return Rotation{OldExpires: end, New: next}, nil
}
