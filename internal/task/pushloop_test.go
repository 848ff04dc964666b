package task

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

func TestRetriesBackOff(t *testing.T) {
	t.Parallel()
	r := PushRetry{}.orDefault()
	for failures, most := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 10: 512 * time.Second, 11: 10 * time.Minute, 12: 10 * time.Minute, 1000: 10 * time.Minute,
	} {
		for range 100 {
			if got := r.after(failures); got > most || got < most*3/4 {
				t.Fatalf("after %d failures: %s; want at most %s", failures, got, most)
			}
		}
	}
	if r.Attempts != 12 || r.Claim != 30*time.Second {
		t.Errorf("%+v", r)
	}
}

// A delivery's id travels in a header and is signed with a dot behind it.
func TestDeliveryIDsAreSafeAndTellConfigurationsApart(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, id := range []string{"push-1", "a.b", "a b", "ä", "a/b", strings.Repeat("x", 65), strings.Repeat("x", 66), "a\"b"} {
		p := Push{UID: "01k", PushConfig: PushConfig{ID: id}}
		got := deliveryID(&p, 7)
		if strings.ContainsAny(got, ". /\"ä") || len(got) > 80 || !strings.HasPrefix(got, "01k-") || !strings.HasSuffix(got, "-7") {
			t.Errorf("%q: %s", id, got)
		}
		if other, taken := seen[got]; taken {
			t.Errorf("%q and %q are both %s", id, other, got)
		}
		seen[got] = id
		if again := deliveryID(&p, 7); again != got {
			t.Errorf("%q: %s, then %s", id, got, again)
		}
	}
}

func TestALongErrorIsCut(t *testing.T) {
	t.Parallel()
	if got := shorten("a\x00b", 10); got != "ab" {
		t.Errorf("%q", got)
	}
	if got := shorten(strings.Repeat("ä", 300), 501); got != strings.Repeat("ä", 250)+"…" {
		t.Errorf("%q", got)
	}
}

type busy time.Duration

func (b busy) Error() string             { return "busy" }
func (b busy) RetryAfter() time.Duration { return time.Duration(b) }

func TestAReceiverMayAskForLongerNotForShorter(t *testing.T) {
	t.Parallel()
	r := PushRetry{}.orDefault()
	if got := r.next(1, fmt.Errorf("push: %w", busy(time.Minute))); got != time.Minute {
		t.Error(got)
	}
	if got := r.next(1, busy(24*time.Hour)); got != r.Most {
		t.Error(got)
	}
	if got := r.next(8, busy(time.Second)); got < time.Minute {
		t.Error(got)
	}
	if got := r.next(1, io.EOF); got > r.First {
		t.Error(got)
	}
}

// pushStore keeps one configuration, as it was last written.
type pushStore struct {
	Store
	push Push
}

func (s *pushStore) UpdatePush(_ context.Context, _, _, _ string, decide func(Push, time.Time) (Push, error)) (Push, error) {
	out, err := decide(s.push, time.Unix(2000, 0))
	if err == nil {
		s.push = out
	}
	return out, err
}

func (s *pushStore) TaskRow(context.Context, string, string) (Task, error) {
	return Task{}, errs.ErrNotFound
}

// A configuration can be changed after it was chosen and before it is claimed.
func TestAClaimThatNoLongerFitsIsReleased(t *testing.T) {
	t.Parallel()
	until := time.Unix(2030, 0)
	store := &pushStore{push: Push{
		Org: "acme", UID: "1", SenderOrg: "acme", PushConfig: PushConfig{ID: "p", URL: "https://stalls.example/x"},
		State: PushActive, Head: 1, DueAt: until, ClaimedUntil: until,
	}}
	l := newPushLoop(&Tasks{Options: Options{Store: store, OnError: func(err error) { t.Error(err) }}})
	l.room.Receivers[store.push.Receiver()] = pushPerReceiver
	l.start(t.Context(), store.push)
	l.work.Wait()
	if l.room.Most != pushSlots || len(l.room.Orgs) != 0 || l.room.Receivers[store.push.Receiver()] != pushPerReceiver {
		t.Errorf("room for %d, orgs %v, receivers %v; want what was there before", l.room.Most, l.room.Orgs, l.room.Receivers)
	}
	if p := store.push; !p.ClaimedUntil.IsZero() || !p.DueAt.Equal(time.Unix(2000, 0)) {
		t.Errorf("claimed until %s, due at %s; want it due at once and not claimed", p.ClaimedUntil, p.DueAt)
	}
}
