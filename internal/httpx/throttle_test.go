package httpx

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

func TestAThrottleLetsAKeyActSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		th := NewThrottle(10*time.Second, 2, time.Now)
		for range 2 {
			if err := th.Take("ada"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(4 * time.Second)
		for _, err := range []error{th.Take("ada"), th.Check("ada")} {
			if errs.KindOf(err) != errs.RateLimited || errs.As(err).RetryAfter != 10*time.Second {
				t.Errorf("without a turn: err = %v, want RateLimited for 10s", err)
			}
		}
		if err := th.Take("bob"); err != nil {
			t.Errorf("another key: err = %v, want nil", err)
		}
		th.GiveBack("ada")
		if err := th.Take("ada"); err != nil {
			t.Errorf("after a turn was given back: err = %v, want nil", err)
		}
		time.Sleep(6 * time.Second)
		if err := th.Check("ada"); err != nil {
			t.Errorf("ten seconds after the burst: err = %v, want nil", err)
		}
	})
}
