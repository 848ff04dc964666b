package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/backup"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/task"
)

const day = 24 * time.Hour

func TestMissingPartitions(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	from := now.Add(partitionLead)
	for name, c := range map[string]struct {
		have      []partition
		retention time.Duration
		want      []partition
	}{
		"none yet":      {nil, 40 * day, []partition{newPartition(from, from.Add(10*day))}},
		"short":         {nil, time.Hour, []partition{newPartition(from, from.Add(day))}},
		"for ever":      {nil, 0, []partition{newPartition(from, from.Add(90*day))}},
		"far enough":    {[]partition{newPartition(now, now.Add(10*day))}, 40 * day, nil},
		"ends soon":     {[]partition{newPartition(now, now.Add(9*day))}, 40 * day, []partition{newPartition(now.Add(9*day), now.Add(19*day))}},
		"ended":         {[]partition{newPartition(now.Add(-9*day), now)}, 40 * day, []partition{newPartition(from, from.Add(10*day))}},
		"other program": {[]partition{{"task_events_before", "", "t000001z"}}, 4 * day, []partition{newPartition(from, from.Add(day))}},
	} {
		if diff := cmp.Diff(c.want, missing(c.have, now, c.retention), cmp.AllowUnexported(partition{})); diff != "" {
			t.Errorf("%s: diff (-want +got):\n%s", name, diff)
		}
	}
}

// agedLog is a store with tasks of different ages.
type agedLog struct {
	*Store
	t   *testing.T
	url string
	now time.Time
}

func newAgedLog(t *testing.T) *agedLog {
	t.Helper()
	l := &agedLog{t: t, url: pgtest.URL(t), now: time.Now().UTC().Truncate(time.Second)}
	s, err := Open(t.Context(), Options{URL: l.url, Now: func() time.Time { return l.now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	l.Store = s
	if err := s.eng.write(t.Context(), func(x *tx) error {
		x.exec(`INSERT INTO orgs (id, name, created_at) VALUES ('a', 'A', 1), ('b', 'B', 1)`)
		x.exec(`INSERT INTO event_heads (org_id) VALUES ('a'), ('b')`)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return l
}

// add creates a task now.
func (l *agedLog) add(org string, n int, state task.State) task.Ref {
	l.t.Helper()
	uid := idAt(l.now) + fmt.Sprintf("%016d", n)
	c := task.Change{
		Task: task.Task{
			Org: org, UID: uid, Agent: "bot", Sender: annOf(org), ID: uid, State: state, Seq: 1, Size: 100, StatusSeq: 1,
			CreatedAt: l.now, UpdatedAt: l.now,
		},
		Events: []task.Event{{Seq: 1, At: l.now, Kind: task.StatusEvent, State: state}},
	}
	if err := l.Tasks().Insert(l.t.Context(), c, 0); err != nil {
		l.t.Fatal(err)
	}
	return task.Ref{Org: org, UID: uid}
}

// pass lets time pass, in steps of some hours, as the server does.
func (l *agedLog) pass(d, retention time.Duration) {
	l.t.Helper()
	for end := l.now.Add(d); l.now.Before(end); {
		l.now = l.now.Add(6 * time.Hour)
		if err := l.KeepPartitions(l.t.Context(), l.now, retention); err != nil {
			l.t.Fatal(err)
		}
		if retention <= 0 {
			continue
		}
		if _, err := l.Tasks().Sweep(l.t.Context(), l.now.Add(-retention), 1000); err != nil {
			l.t.Fatal(err)
		}
	}
}

func (l *agedLog) number(sql string) (n int) {
	l.t.Helper()
	if _, err := one(l.t.Context(), l.eng, []any{&n}, sql); err != nil {
		l.t.Fatal(err)
	}
	return n
}

func (l *agedLog) tables() []partition {
	l.t.Helper()
	have, err := logPartitions(l.t.Context(), l.eng)
	if err != nil {
		l.t.Fatal(err)
	}
	return have
}

// whole reports whether a task has its log.
func (l *agedLog) whole(ref task.Ref) bool {
	l.t.Helper()
	_, err := l.Tasks().ByUID(l.t.Context(), ref.Org, ref.UID, task.Content{History: true, Artifacts: true})
	if err != nil && !errors.Is(err, errs.ErrNotFound) {
		l.t.Fatal(err)
	}
	return err == nil
}

func TestOldLogsAreDroppedWithTheirPartition(t *testing.T) {
	t.Parallel()
	const retention = 8 * day
	l := newAgedLog(t)
	l.pass(day, retention) // from now on there are partitions
	ended, asks := l.add("a", 1, task.Completed), l.add("a", 2, task.InputRequired)
	other := l.add("b", 3, task.Completed)
	if n := l.number(`SELECT count(*) FROM task_events_rest`); n != 0 {
		t.Fatalf("%d rows are in no partition of a period", n)
	}
	l.pass(6*day, retention)
	young := l.add("b", 4, task.Completed)

	l.pass(2*day+12*time.Hour, retention)
	if l.whole(ended) || l.whole(other) || !l.whole(asks) || !l.whole(young) {
		t.Errorf("found %t %t %t %t, want only tasks that are young or have not ended",
			l.whole(ended), l.whole(other), l.whole(asks), l.whole(young))
	}
	l.keepsOnlyKnown()
	l.pass(4*day, retention)
	if n := l.number(`SELECT count(*) FROM task_events`); n != 2 {
		t.Errorf("%d rows of logs are left, want those of the tasks that are kept", n)
	}
	if !l.whole(asks) || l.number(`SELECT count(*) FROM task_events_rest`) != 1 {
		t.Error("the log of a task that has not ended did not move to the rest")
	}
	if have := l.tables(); len(have) > keptPeriods+3 {
		t.Errorf("%d partitions, want those of %s and the next: %v", len(have), retention, have)
	}
}

// keepsOnlyKnown checks that logs without a task are no damage, and that a back-up leaves them out.
func (l *agedLog) keepsOnlyKnown() {
	l.t.Helper()
	ctx := l.t.Context()
	orphans := l.number(`SELECT count(*) FROM task_events e WHERE NOT EXISTS (
		SELECT 1 FROM tasks t WHERE t.org_id = e.org_id AND t.uid = e.uid)`)
	if orphans == 0 {
		l.t.Fatal("the logs of deleted tasks were deleted row by row")
	}
	snapshot, err := OpenSnapshot(ctx, Options{URL: l.url})
	if err != nil {
		l.t.Fatal(err)
	}
	defer func() { _ = snapshot.Close() }()
	found, err := snapshot.Check(ctx, func(string) {})
	if err != nil || len(found) > 0 {
		l.t.Errorf("check found %v, %v", found, err)
	}
	w, err := backup.NewWriter(io.Discard, backup.Header{})
	if err != nil {
		l.t.Fatal(err)
	}
	written := map[string]int64{}
	if err := snapshot.Write(ctx, w, func(table string, rows int64) { written[table] = rows }); err != nil {
		l.t.Fatal(err)
	}
	if written["task_events"] != written["tasks"] || written["tasks"] == 0 {
		l.t.Errorf("a back-up has %d logs of %d tasks", written["task_events"], written["tasks"])
	}
	for table := range written {
		if strings.HasPrefix(table, "task_events_") {
			l.t.Errorf("a back-up has the partition %s", table)
		}
	}
}

func TestAPartitionWithManyKeptTasksStays(t *testing.T) {
	t.Parallel()
	const retention = 4 * day
	l := newAgedLog(t)
	l.pass(day, retention)
	first := l.add("a", 0, task.InputRequired)
	for i := range fewKept.tasks {
		l.add("a", int(i)+1, task.InputRequired)
	}
	table := func(want bool) {
		t.Helper()
		has := slices.ContainsFunc(l.tables(), func(p partition) bool { return p.from <= first.UID && first.UID < p.to })
		if has != want {
			t.Errorf("after %s: the partition exists: %t, want %t", l.now, has, want)
		}
		if !l.whole(first) {
			t.Error("a log is lost")
		}
	}
	l.pass(retention+day, retention)
	table(true) // for another period, in which the tasks may end
	l.pass(2*day, retention)
	table(false)
	if n := l.number(`SELECT count(*) FROM task_events_rest`); n != int(fewKept.tasks)+1 {
		t.Errorf("%d logs moved to the rest", n)
	}
}

// TestAPartitionIsKeptDuringAnImport drops nothing while the tasks of imported logs may be missing.
func TestAPartitionIsKeptDuringAnImport(t *testing.T) {
	t.Parallel()
	const retention = 4 * day
	l := newAgedLog(t)
	l.pass(day, retention)
	old := l.add("a", 1, task.Completed)
	if err := l.eng.write(t.Context(), func(x *tx) error {
		x.exec(`INSERT INTO org_settings (org_id, name, value) VALUES ('c', $1, 'x')`, settingImporting)
		x.exec(`INSERT INTO task_events (org_id, uid, seq, at, data) VALUES ('c', $1, 1, 1, '[]')`, old.UID)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	l.pass(retention+4*day, retention)
	if n := l.number(`SELECT count(*) FROM task_events WHERE org_id = 'c'`); n != 1 {
		t.Error("the log of an org that is being imported is lost")
	}
}

func TestTasksAreKeptForEver(t *testing.T) {
	t.Parallel()
	l := newAgedLog(t)
	l.pass(day, 0)
	ref := l.add("a", 1, task.Completed)
	l.pass(200*day, 0)
	if have := l.tables(); !l.whole(ref) || len(have) != 4 {
		t.Errorf("found: %t; partitions: %v; want four of 90 days", l.whole(ref), have)
	}
	// With a retention, logs in such long partitions are deleted row by row.
	l.pass(6*time.Hour, 8*day)
	if n := l.number(`SELECT count(*) FROM task_events`); l.whole(ref) || n != 0 {
		t.Errorf("found: %t, and %d rows of logs", l.whole(ref), n)
	}
}

// TestADeletedOrgLosesOnlyItsLogs has rows at the same place of several partitions.
func TestADeletedOrgLosesOnlyItsLogs(t *testing.T) {
	t.Parallel()
	l := newAgedLog(t)
	l.pass(day, 0)
	l.add("a", 1, task.Completed)
	l.pass(100*day, 0)
	other := l.add("b", 2, task.Completed)
	if err := l.purge(t.Context(), "a", func(string, int64) {}, func(context.Context, *tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if n := l.number(`SELECT count(*) FROM task_events`); n != 1 || !l.whole(other) {
		t.Errorf("%d logs are left, and that of the other org: %t", n, l.whole(other))
	}
}

// TestTheLogOfAnOlderStoreIsAPartition has two tasks in the table of schema 0026.
func TestTheLogOfAnOlderStoreIsAPartition(t *testing.T) {
	t.Parallel()
	old := idAt(time.Now()) + "0000000000000001"
	eachOlderStore(t, 26, []string{
		`INSERT INTO task_events (org_id, uid, seq, at, data) VALUES ('a', '` + old + `', 1, 1, '[{"K":"status"}]')`,
		`INSERT INTO task_events (org_id, uid, seq, at, data) VALUES ('a', '0', 1, 1, '[{"K":"status"}]')`,
	}, func(t *testing.T, s *Store) {
		for _, uid := range []string{old, "0"} {
			events, err := s.Tasks().Events(t.Context(), "a", uid, 0, 10)
			if err != nil || len(events) != 1 {
				t.Errorf("%s: %d events, %v", uid, len(events), err)
			}
		}
		if s.d != &postgresDialect {
			return
		}
		now := time.Now()
		if err := s.KeepPartitions(t.Context(), now, 4*day); err != nil {
			t.Fatal(err)
		}
		have, err := logPartitions(t.Context(), s.eng)
		if err != nil || len(have) < 2 || have[len(have)-1].table != "task_events_before" {
			t.Fatalf("partitions: %v, %v", have, err)
		}
		if to, ok := timeOf(have[len(have)-1].to); !ok || to.Before(now) || to.After(now.Add(2*time.Hour)) {
			t.Errorf("the rows so far end at %s", to)
		}
		// All their tasks are deleted.
		if err := s.KeepPartitions(t.Context(), now.Add(7*day), 4*day); err != nil {
			t.Fatal(err)
		}
		if events, err := s.Tasks().Events(t.Context(), "a", old, 0, 10); err != nil || len(events) != 0 {
			t.Errorf("%d events are left, %v", len(events), err)
		}
	})
}
