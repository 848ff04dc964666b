package task_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/oklog/ulid/v2"

	"github.com/parley-dev/parley/internal/task"
)

// Every way in which an attempt ends is derived from the log of the decisions.
func TestAttemptsAreDerivedFromTheLog(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 17, 8, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	lease := func(token, worker string, until int) *task.Lease {
		return &task.Lease{Token: token, Worker: worker, ExpiresAt: at(until)}
	}
	var log []task.Event
	current := task.Task{UID: "u1"}
	step := func(c task.Change, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		current, log = c.Task, append(log, c.Events...)
	}
	limits := task.DefaultLimits
	turn := func(text string) task.Turn {
		return task.Turn{Message: task.Message{Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: text}}}}
	}
	step(task.DecideNew(current, turn("hello"), lease("l1", "one", 10), limits, at(0)))
	step(task.DecideExpire(current, at(11), at(11)))
	step(task.DecideClaim(current, *lease("l2", "two", 40), at(12)))
	report := func(token string, r task.Report, seconds int) {
		t.Helper()
		step(task.DecideReport(current, token, r, limits, at(seconds), at(seconds)))
	}
	report("l2", task.Report{State: task.Working, Message: task.Says("half")}, 13)
	report("l2", task.Report{Extend: time.Minute}, 13)
	step(task.DecideReturn(current, "l2", at(14), at(14)))
	step(task.DecideClaim(current, *lease("l3", "three", 60), at(15)))
	report("l3", task.Report{State: task.InputRequired, Message: task.Says("which?")}, 16)
	step(task.DecideTurn(current, turn("this one"), limits, at(17)))
	step(task.DecideClaim(current, *lease("l4", "four", 90), at(18)))
	step(task.DecideCancel(current, at(20)))
	want := []task.Attempt{
		{
			Number: 1, Worker: "one", QueuedAt: at(0), StartedAt: at(0), EndedAt: at(11), Ended: task.LeaseExpired,
			State: task.Working, Text: "The worker was lost; waiting for attempt 2 of 3.",
		},
		{
			Number: 2, Worker: "two", QueuedAt: at(11), StartedAt: at(12), EndedAt: at(14), Ended: task.LeaseReturned,
			State: task.Working, Heartbeats: 1, Reports: 1, LastReport: at(13),
		},
		{
			Number: 2, Worker: "three", QueuedAt: at(14), StartedAt: at(15), EndedAt: at(16), Ended: task.LeaseDone,
			State: task.InputRequired, Text: "which?",
		},
		{ // the sender's time to respond is not part of the wait
			Number: 2, Worker: "four", QueuedAt: at(17), StartedAt: at(18), EndedAt: at(20), Ended: task.LeaseCanceled,
			State: task.Canceled,
		},
	}
	if diff := cmp.Diff(want, task.Attempts(log), cmpopts.IgnoreUnexported(task.Attempt{})); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	// Where the log begins in the middle of an attempt, a message to its worker starts no wait.
	cut := append([]task.Event{{Kind: task.TurnEvent, At: at(15)}}, log[len(log)-5:]...)
	if got := task.Attempts(cut); len(got) != 1 || !got[0].QueuedAt.Equal(at(17)) {
		t.Errorf("attempts of a cut log = %+v, want the last one, which waited since 17", got)
	}
	if got := task.Attempts(log[:3]); len(got) != 1 || got[0].Over() {
		t.Errorf("attempts = %+v, want one that is not over", got)
	}
}

func TestUIDsFromIsTheLowerBoundOfLaterUIDs(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 17, 8, 0, 0, 0, time.UTC)
	bound := task.UIDsFrom(at)
	uid := func(t time.Time) string {
		return strings.ToLower(ulid.MustNew(ulid.Timestamp(t), ulid.DefaultEntropy()).String())
	}
	if before, same := uid(at.Add(-time.Millisecond)), uid(at); before >= bound || same < bound {
		t.Errorf("bound = %s, want it after %s and not after %s", bound, before, same)
	}
}
