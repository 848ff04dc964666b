package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/task"
)

// collected is an engine that keeps the writes of add for a batch that the test sends.
type collected struct {
	engine
	batch []*request
}

func (c *collected) add(_ context.Context, fn func(*tx) error) error {
	c.batch = append(c.batch, &request{fn: fn, answered: make(chan struct{})})
	return nil
}

// finishing returns tasks of an org that a worker holds, and the changes that complete them. The
// changes differ in every column that a result sets.
func finishing(t *testing.T, s *Store, n int) (known []task.Task, done []task.Change) {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Microsecond)
	for i := range n {
		row := task.Task{
			Org: "acme", UID: fmt.Sprintf("t%02d", i), Agent: "echo", ID: fmt.Sprint("id", i), ContextID: "c",
			Sender: identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"},
			State:  task.Working, Seq: 1, StatusSeq: 1, Size: 5, LastTurn: "first", CreatedAt: now, UpdatedAt: now,
			Lease: task.Lease{Token: fmt.Sprint("lease", i), Worker: "w", ExpiresAt: now.Add(time.Hour)},
		}
		working := task.Event{Seq: 1, At: now, Kind: task.StatusEvent, State: task.Working}
		sent := task.Change{Task: row, Events: []task.Event{working}}
		if err := s.Tasks().Insert(t.Context(), sent, time.Hour); err != nil {
			t.Fatal(err)
		}
		row, err := s.Tasks().Row(t.Context(), row.Org, row.UID)
		if err != nil {
			t.Fatal(err)
		}
		known = append(known, row)
		k := int64(i)
		row.State, row.LastTurn = task.Completed, fmt.Sprint("turn", i)
		row.Seq, row.StatusSeq, row.Size = 102+k, 202+k, 302+k
		row.Delivered, row.UpdatedAt = row.Seq, now.Add(time.Duration(i+1)*time.Second)
		row.Lease.Token, row.Lease.ExpiresAt = "", time.Time{}
		completed := task.Event{Seq: row.Seq, At: row.UpdatedAt, Kind: task.StatusEvent, State: task.Completed}
		done = append(done, task.Change{Task: row, Events: []task.Event{completed}})
	}
	return known, done
}

// batchOf returns the writes that finish tasks.
func batchOf(t *testing.T, s *Store, known []task.Task, done []task.Change) []*request {
	t.Helper()
	c := &collected{engine: s.eng}
	s.eng = c
	defer func() { s.eng = c.engine }()
	for i := range known {
		if err := s.Tasks().Finish(t.Context(), known[i], done[i]); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.batch) != len(known) {
		t.Fatalf("%d writes in the batch, want %d", len(c.batch), len(known))
	}
	return c.batch
}

// A batch finishes many tasks with few statements, each as if it were alone.
func TestABatchFinishesManyTasks(t *testing.T) {
	t.Parallel()
	s := openFor(t, Options{URL: pgtest.URL(t)})
	known, done := finishing(t, s, 21)
	other := known[20] // not finished
	known, done = known[:20], done[:20]
	// Without an error no write was tried alone.
	if err := s.eng.(*pg).adder.sendAll(t.Context(), batchOf(t, s, known, done)); err != nil {
		t.Fatal(err)
	}
	for i := range done {
		got, err := s.Tasks().Row(t.Context(), "acme", known[i].UID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(done[i].Task, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", known[i].UID, diff)
		}
	}
	got, err := s.Tasks().Row(t.Context(), "acme", other.UID)
	if diff := cmp.Diff(other, got); err != nil || diff != "" {
		t.Errorf("another task: %v (-want +got):\n%s", err, diff)
	}
}

// pushLater sets a push configuration in a transaction that stays open until commit.
func pushLater(t *testing.T, url, uid string) (commit func()) {
	t.Helper()
	conn := connectTo(t, url)
	for _, sql := range []string{`BEGIN`, `UPDATE tasks SET push = 1 WHERE uid = '` + uid + `'`} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		t.Helper()
		if _, err := conn.Exec(t.Context(), `COMMIT`); err != nil {
			t.Fatal(err)
		}
	}
}

// untilBlocked waits until a statement of the test's database waits for a row lock.
func untilBlocked(t *testing.T, url string) {
	t.Helper()
	conn := connectTo(t, url)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		var n int
		if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no statement waits for a lock after a minute")
		}
	}
}

// A task that gets a push configuration while its batch waits for the row is not finished: its
// result would not be pushed. The others of the batch are.
func TestABatchLeavesATaskThatChangedMeanwhile(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := openFor(t, Options{URL: url})
	known, done := finishing(t, s, 2)
	check := func(uid string, state task.State, push bool) {
		t.Helper()
		got, err := s.Tasks().Row(t.Context(), "acme", uid)
		if err != nil || got.State != state || got.Push != push {
			t.Errorf("%s: %v, %s, push %t, want %s, push %t", uid, err, got.State, got.Push, state, push)
		}
	}

	// The statement of the batch alone, without a limit for its wait.
	x := newTx(nil, s.d, s.hooks)
	for i := range known {
		x.finishTask(&done[i].Task, &known[i])
	}
	both := combine(x.statements)
	if len(both) != 1 {
		t.Fatalf("%d statements for two tasks, want 1", len(both))
	}
	commit, conn, result := pushLater(t, url, known[0].UID), connectTo(t, url), make(chan error, 1)
	go func() { result <- send(context.WithoutCancel(t.Context()), conn, both) }()
	untilBlocked(t, url)
	commit()
	if err := <-result; !isCode(err, codeMoved) {
		t.Errorf("the statement returned %v, want the code %s", err, codeMoved)
	}
	check(known[0].UID, task.Working, true)
	check(known[1].UID, task.Working, false)

	// The whole batch.
	if _, err := connectTo(t, url).Exec(t.Context(), `UPDATE tasks SET push = 0`); err != nil {
		t.Fatal(err)
	}
	batch, sent := batchOf(t, s, known, done), make(chan struct{})
	commit = pushLater(t, url, known[0].UID)
	go func() {
		defer close(sent)
		s.eng.(*pg).adder.commit(batch)
	}()
	untilBlocked(t, url)
	commit()
	<-sent
	for _, r := range batch {
		if r.apart {
			<-r.answered
		}
	}
	if !errors.Is(batch[0].err, dispatch.ErrChanged) || batch[1].err != nil {
		t.Errorf("got %v and %v, want %v and none", batch[0].err, batch[1].err, dispatch.ErrChanged)
	}
	check(known[0].UID, task.Working, true)
	check(known[1].UID, task.Completed, false)
}

// Statements for many rows find each by an index, in tables of any size and without statistics.
func TestStatementsForManyRowsUseIndexes(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := openFor(t, Options{URL: url})
	s.eng.(*pg).stats.close()
	conn := connectTo(t, url)
	for _, table := range []string{"tasks", "events"} {
		if _, err := conn.Exec(t.Context(), `ALTER TABLE `+table+` SET (autovacuum_enabled = false)`); err != nil {
			t.Fatal(err)
		}
	}
	known, done := finishing(t, s, 16)
	x := newTx(nil, s.d, s.hooks)
	for i := range known {
		x.finishTask(&done[i].Task, &known[i])
	}
	finish := combine(x.statements)[0]
	for _, size := range []string{"small", "large", "analyzed"} {
		switch size {
		case "large":
			for _, sql := range []string{
				`INSERT INTO tasks (org_id, uid, agent_id, sender_org, sender, id, context_id, state, queued, seq, size,
						lease, lease_worker, lease_expires, delivered, last_turn, created_at, updated_at)
					SELECT 'acme', 'more' || n, 'echo', 'acme', 'user:ann', 'more' || n, 'c', 'completed', 0, 1, 1,
						'', '', 0, 1, '', 1, 1 FROM generate_series(1, 20000) n`,
				`INSERT INTO events (org_id, last_seq, n, at, types, data)
					SELECT 'org' || n % 20, n, 1, 1, 1, '' FROM generate_series(1, 20000) n`,
			} {
				if _, err := conn.Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
		case "analyzed":
			if _, err := conn.Exec(t.Context(), `ANALYZE tasks, events`); err != nil {
				t.Fatal(err)
			}
		}
		plan := planOf(t, s, finish)
		update := plan[strings.Index(plan, "Update on tasks"):]
		index := "Index Scan using tasks_pkey"
		if size == "small" { // then all indexes that begin with the org look alike
			index = "Index Scan using tasks_"
		}
		for _, want := range []string{"Tid Scan on tasks", "TID Cond: (ctid = found.ctid)", index} {
			if !strings.Contains(update, want) {
				t.Errorf("%s: the plan has no %q:\n%s", size, want, plan)
			}
		}
		// Once in the subquery, and once where PostgreSQL tests it again after a wait; see finishTasks.
		for _, condition := range []string{"push = 0", "done.known", "done.lease", "lease_expires > "} {
			if strings.Count(update, condition) != 2 {
				t.Errorf("%s: the condition %q does not appear twice:\n%s", size, condition, plan)
			}
		}
		subjects := planOf(t, s, statement{sql: s.d.addSubjects, args: []any{"org7", int64(500), int64(900)}})
		if !strings.Contains(subjects, "events_pkey") {
			t.Errorf("%s: the index of subjects does not read the log by its key:\n%s", size, subjects)
		}
		if both := plan + subjects; strings.Contains(both, "Seq Scan") {
			t.Errorf("%s: a plan scans a table:\n%s", size, both)
		}
	}
}

// planOf returns PostgreSQL's plan of a statement, which it does not run.
func planOf(t *testing.T, s *Store, q statement) string {
	t.Helper()
	return strings.Join(explain(t, s, func(r rows) (step string, err error) {
		err = r.Scan(&step)
		return step, err
	}, `EXPLAIN (COSTS off) `+q.sql, q.args...), "\n")
}
