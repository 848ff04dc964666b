package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/store"
	"github.com/parley-dev/parley/internal/task"
)

// TestALargeDecisionIsMadeAgainIfTheRowChanged runs a decision that is large enough to be made
// before the write, and changes the row in between.
func TestALargeDecisionIsMadeAgainIfTheRowChanged(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), store.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	now := time.Now()
	row := task.Task{
		Org: "main", UID: "t1", Agent: "echo", ID: "a",
		Sender: identity.Principal{Org: "main", Kind: identity.User, ID: "ann"},
		State:  task.Submitted, Seq: 1, StatusSeq: 1, CreatedAt: now, UpdatedAt: now,
	}
	submitted := task.Event{Seq: 1, At: now, Kind: task.StatusEvent, State: task.Submitted}
	first := task.Change{Task: row, Events: []task.Event{submitted}}
	if err := s.Tasks().Insert(t.Context(), first, 0); err != nil {
		t.Fatal(err)
	}
	say := func(text string) func(task.Current) (task.Change, error) {
		return func(cur task.Current) (task.Change, error) {
			c := task.Change{Task: cur.Task}
			c.Task.Seq++
			m := &task.Message{Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: text}}}
			c.Events = []task.Event{{Seq: c.Task.Seq, At: now, Kind: task.TurnEvent, Message: m}}
			return c, nil
		}
	}
	large, calls := strings.Repeat("x", 100<<10), 0
	if _, err := s.Tasks().Update(t.Context(), "main", "t1", int64(len(large)), func(
		cur task.Current,
	) (task.Change, error) {
		if calls++; calls == 1 { // before the write; another write happens in between
			if _, err := s.Tasks().Update(t.Context(), "main", "t1", 0, say("between")); err != nil {
				t.Error(err)
			}
		}
		return say(large)(cur)
	}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Tasks().ByUID(t.Context(), "main", "t1", task.All)
	if err != nil {
		t.Fatal(err)
	}
	if calls != 2 || got.Seq != 3 || len(got.History) != 2 || got.History[0].Parts[0].Text != "between" ||
		got.History[1].Parts[0].Text != large {
		t.Errorf("%d calls, %d events, %d messages, want 2, 3, and both messages in order",
			calls, got.Seq, len(got.History))
	}
	calls = 0
	if _, err := s.Tasks().Update(t.Context(), "main", "t1", int64(len(large)), func(
		cur task.Current,
	) (task.Change, error) {
		calls++
		return say(large)(cur)
	}); err != nil || calls != 1 {
		t.Errorf("%v: the decision was made %d times though the row was the same, want once, before the write", err, calls)
	}
}

// TestALargeCommandIsDecidedAhead is the same for a command with an idempotency key. The kept
// outcome belongs to the decision that is written.
func TestALargeCommandIsDecidedAhead(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), store.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	now := time.Now()
	row := task.Task{
		Org: "main", UID: "t1", Agent: "echo", ID: "a",
		Sender: identity.Principal{Org: "main", Kind: identity.User, ID: "ann"},
		State:  task.Working, Seq: 1, StatusSeq: 1, CreatedAt: now, UpdatedAt: now,
	}
	first := task.Change{Task: row, Events: []task.Event{{Seq: 1, At: now, Kind: task.StatusEvent, State: task.Working}}}
	if err := s.Tasks().Insert(t.Context(), first, 0); err != nil {
		t.Fatal(err)
	}
	say := func(cur task.Current) (task.Change, error) {
		c := task.Change{Task: cur.Task, Reported: task.Reported{Seq: cur.Task.Seq + 1}}
		c.Task.Seq++
		c.Events = []task.Event{{Seq: c.Task.Seq, At: now, Kind: task.StatusEvent, State: task.Working}}
		return c, nil
	}
	const large = 100 << 10
	calls := 0
	update := func(key string, meanwhile func()) task.Reported {
		k, err := idempotency.New("report", key, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, _, err := idempotency.Begin(t.Context(), k, "main", "agent:echo", "secret")
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.Tasks().UpdateOnce(ctx, "main", "t1", large, func(cur task.Current) (task.Change, error) {
			if calls++; calls == 1 {
				meanwhile()
			}
			return say(cur)
		})
		if err != nil {
			t.Fatal(err)
		}
		return c.Reported
	}
	for key, c := range map[string]struct {
		meanwhile func()
		calls     int
	}{
		"alone": {func() {
			// In the only writer this would wait for itself.
			if err := s.Audit().Append(t.Context(), identity.AuditEntry{Org: "main", ID: "e", At: now}); err != nil {
				t.Error(err)
			}
		}, 1},
		"raced": {func() {
			if _, err := s.Tasks().Update(t.Context(), "main", "t1", 0, say); err != nil {
				t.Error(err)
			}
		}, 2},
	} {
		calls = 0
		got := update(key, c.meanwhile)
		row, err := s.Tasks().Row(t.Context(), "main", "t1")
		if err != nil || calls != c.calls || got.Seq != row.Seq {
			t.Errorf("%s: %v, decided %d times for event %d of %d, want %d times, for the last",
				key, err, calls, got.Seq, row.Seq, c.calls)
		}
		if again := update(key, func() {}); again != got {
			t.Errorf("%s: repeated it returns %+v, want %+v", key, again, got)
		}
	}
}
