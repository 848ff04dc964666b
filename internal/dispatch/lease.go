package dispatch

import (
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/task"
)

// newLease makes a lease of a task. Its token names the task, so that a report needs no
// index of tokens, and is new for every lease, so that an old one is told from a live one.
func (b *board) newLease(uid, worker string, until time.Time) task.Lease {
	return task.Lease{Token: b.newID("lease-" + uid + "-"), Worker: worker, ExpiresAt: until}
}

// taskOf is the uid in a lease's token.
func taskOf(token string) (string, bool) {
	rest, ok := strings.CutPrefix(token, "lease-")
	if !ok {
		return "", false
	}
	uid, _, ok := strings.Cut(rest, "-")
	return uid, ok && len(token) <= task.MaxID
}
