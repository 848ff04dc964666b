package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/proposal"
)

// numbers is a query with an endless number of rows.
const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n`

// wantCanceled fails the test unless err means that the caller canceled. Any other error that is
// not an *errs.Error becomes a 500.
func wantCanceled(t *testing.T, what string, err error) {
	t.Helper()
	var known *errs.Error
	if !errors.Is(err, context.Canceled) || errors.As(err, &known) {
		t.Errorf("%s: %v, want context.Canceled", what, err)
	}
}

// TestAnInterruptedReadSaysThatItsCallerHasGone ends the context of reads on SQLite before and
// while they run. The engine has its own error for that.
func TestAnInterruptedReadSaysThatItsCallerHasGone(t *testing.T) {
	t.Parallel()
	s := openAt(t, Options{Dir: t.TempDir()})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, r := range map[string]reader{"a read": s.eng, "a slow read": s.eng.slow()} {
		// The statements differ, because a prepared one is not prepared again.
		_, err := one(gone, r, []any{new(int)}, fmt.Sprintf(`SELECT %d`, time.Now().UnixNano()))
		wantCanceled(t, name+" that is not prepared", err)
		ctx, cancel := context.WithCancel(t.Context())
		read := 0
		err = each(ctx, r, func(rows) error {
			if read++; read == 100 {
				cancel()
			}
			return nil
		}, numbers)
		wantCanceled(t, name+" between two rows", err)
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		_, err = one(ctx, r, []any{new(int)}, `SELECT count(*) FROM (`+numbers+`)`)
		wantCanceled(t, name+" of one row", err)
		if _, err := one(t.Context(), r, []any{new(int)}, `SELECT 1`); err != nil {
			t.Errorf("read of the next caller = %v, want no error", err)
		}
	}
	wantCanceled(t, "an epoch", s.readEpoch(gone))
	_, err := s.Tasks().Events(gone, "acme", "none", 0, 10)
	wantCanceled(t, "a log", err)
	_, _, err = s.Proposals().List(gone, proposal.Filter{Org: "acme", Limit: 10})
	wantCanceled(t, "a list", err)
}

// A slow read that exceeds its deadline is interrupted, too.
func TestASlowReadThatIsInterruptedByItsDeadlineIsBusy(t *testing.T) {
	t.Parallel()
	s := openAt(t, Options{Dir: t.TempDir(), SearchTimeout: 50 * time.Millisecond})
	err := s.slow(t.Context(), "acme", func(ctx context.Context, r reader) error {
		return each(ctx, r, func(rows) error { return nil }, numbers)
	})
	if e := errs.As(err); e.Kind != errs.Unavailable || e.Code != "search.busy" || e.RetryAfter <= 0 {
		t.Errorf("%v, want search.busy", err)
	}
}
