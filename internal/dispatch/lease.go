package dispatch

import (
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/task"
)

// newLease returns a new lease. The token contains the uid of the task, so that a report needs
// no index of tokens. It is unique, so that a stale lease is recognized.
func (b *board) newLease(uid, worker string, until time.Time) task.Lease {
	return task.Lease{Token: b.newID("lease-" + uid + "-"), Worker: worker, ExpiresAt: until}
}

// taskOf returns the uid of the task in a lease token.
func taskOf(token string) (string, bool) {
	rest, ok := strings.CutPrefix(token, "lease-")
	if !ok {
		return "", false
	}
	uid, _, ok := strings.Cut(rest, "-")
	return uid, ok && len(token) <= task.MaxID
}
