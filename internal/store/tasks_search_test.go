package store

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

const manyTasksCount = 20_000

// manyTasks adds tasks of the org a. The last ones are the newest. Every second task is of the
// agent odd, the others of even; the three oldest are of rare. Every 1000th has failed and every
// 5000th waits, one of them for a second attempt. User ann sent all but the fifth, which is of eve.
func manyTasks(t *testing.T, s *Store, sent time.Time) {
	t.Helper()
	numbers := fmt.Sprintf(`WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d) `,
		manyTasksCount)
	if err := s.eng.write(t.Context(), func(x *tx) error {
		x.exec(numbers+`INSERT INTO tasks (org_id, uid, agent_id, sender_org, sender, id, context_id, state, queued, seq,
				size, lease, lease_worker, lease_expires, delivered, last_turn, created_at, updated_at, status_seq)
			SELECT 'a', $1 || (100000 + n),
				CASE WHEN n <= 3 THEN 'rare' WHEN n % 2 = 1 THEN 'odd' ELSE 'even' END,
				'a', CASE WHEN n = 5 THEN 'user:eve' ELSE 'user:ann' END, 't' || n, 'c',
				CASE WHEN n % 1000 = 0 THEN 'failed' WHEN n = 10001 THEN 'working' WHEN n % 5000 = 1 THEN 'submitted'
					ELSE 'completed' END,
				CASE WHEN n % 5000 = 1 THEN 1 ELSE 0 END, 2, 10, '', '', 0, 2, '', n, n, 2 FROM numbers`, task.UIDsFrom(sent))
		x.exec(`UPDATE tasks SET listed = state WHERE state = 'failed'`)
		x.exec(numbers + `INSERT INTO task_events (org_id, uid, seq, at, data)
			SELECT org_id, uid, 2, updated_at,
				'[{"K":"turn","Message":{"Role":"user","Parts":null}},{"K":"status","State":"failed",' ||
				'"Message":{"Role":"agent","Parts":[{"Kind":"text","Text":"broken"}]}}]'
			FROM tasks WHERE org_id = 'a' AND state = 'failed'`)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.eng.write(t.Context(), func(x *tx) error {
		x.exec(`ANALYZE tasks`)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

var (
	annOfA = identity.Principal{Org: "a", Kind: identity.User, ID: "ann"}
	eveOfA = identity.Principal{Org: "a", Kind: identity.User, ID: "eve"}
)

// A search finds what a scan of all tasks would, in its order. Each page reads a limited number of
// rows, by an index.
func TestASearchOfTasksReadsALimitedNumberOfRows(t *testing.T) {
	t.Parallel()
	sent := time.Date(2026, 11, 17, 8, 0, 0, 0, time.UTC)
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		manyTasks(t, s, sent)
		for name, c := range map[string]struct {
			search dispatch.Search
			match  func(n int) bool
			pages  int // 0: not counted
		}{
			"all":           {dispatch.Search{}, func(int) bool { return true }, 0},
			"a dense agent": {dispatch.Search{Agent: "odd"}, func(n int) bool { return n > 3 && n%2 == 1 }, 0},
			"a rare agent":  {dispatch.Search{Agent: "rare"}, func(n int) bool { return n <= 3 }, 1},
			"a rare sender": {dispatch.Search{Sender: eveOfA}, func(n int) bool { return n == 5 }, 1},
			"new":           {dispatch.Search{State: task.Submitted}, func(n int) bool { return n%5000 == 1 && n != 10001 }, 1},
			"waiting":       {dispatch.Search{Queued: true}, func(n int) bool { return n%5000 == 1 }, 1},
			"failed":        {dispatch.Search{State: task.Failed}, func(n int) bool { return n%1000 == 0 }, 1},
			"failed of ann": {dispatch.Search{State: task.Failed, Sender: annOfA}, func(n int) bool { return n%1000 == 0 }, 1},
			"no such agent": {dispatch.Search{Agent: "none"}, func(int) bool { return false }, 1},
			"a rare state":  {dispatch.Search{State: task.Working}, func(n int) bool { return n == 10001 }, 5},
			"failed of odd": {dispatch.Search{State: task.Failed, Agent: "odd"}, func(int) bool { return false }, 1},
			"failed of even": {
				dispatch.Search{State: task.Failed, Agent: "even"},
				func(n int) bool { return n%1000 == 0 },
				1,
			},
			"rejected of even": {dispatch.Search{State: task.Rejected, Agent: "even"}, func(int) bool { return false }, 1},
			"waiting for odd": {
				dispatch.Search{Queued: true, Agent: "odd"},
				func(n int) bool { return n > 1 && n%5000 == 1 },
				1,
			},
			"new of odd, by ann": {
				dispatch.Search{State: task.Submitted, Agent: "odd", Sender: annOfA},
				func(n int) bool { return n == 5001 || n == 15001 },
				1,
			},
			"dense together": {dispatch.Search{State: task.Completed, Agent: "odd", Sender: annOfA}, func(n int) bool {
				return n > 5 && n%2 == 1 && n%5000 != 1
			}, 0},
			"sent later":   {dispatch.Search{From: sent.Add(time.Millisecond)}, func(int) bool { return false }, 1},
			"sent earlier": {dispatch.Search{Until: sent}, func(int) bool { return false }, 1},
			"sent between": {
				dispatch.Search{From: sent, Until: sent.Add(time.Second), Agent: "rare"},
				func(n int) bool { return n <= 3 },
				1,
			},
			"another org": {dispatch.Search{Org: "b"}, func(int) bool { return false }, 1},
		} {
			t.Run(name, func(t *testing.T) {
				var want, got []string
				for n := manyTasksCount; n > 0; n-- {
					if c.match(n) {
						want = append(want, fmt.Sprintf("t%d", n))
					}
				}
				q := c.search
				q.Limit = 1000
				if q.Org == "" {
					q.Org = "a"
				}
				pages := 0
				for {
					found, err := searchBounded(t, s, q)
					if err != nil {
						t.Fatal(err)
					}
					pages++
					for i := range found.Tasks {
						got = append(got, found.Tasks[i].ID)
					}
					if n := len(found.Tasks); found.Partial &&
						(found.Next == "" || n > 0 && found.Next > found.Tasks[n-1].UID) {
						t.Fatalf("partial page continues at %q, want the place where it stopped", found.Next)
					}
					if q.Before = found.Next; q.Before == "" || pages > 100 {
						break
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("found (-want +got):\n%s", diff)
				}
				if c.pages > 0 && pages != c.pages {
					t.Errorf("%d pages, want %d", pages, c.pages)
				}
			})
		}
	})
}

// recorder is an engine that records its queries with their parameters.
type recorder struct {
	engine
	list []statement
}

func (r *recorder) stale() reader { return r.slow() }

func (r *recorder) slow() reader { return r }

func (r *recorder) query(ctx context.Context, sql string, args ...any) (rows, error) {
	r.list = append(r.list, statement{sql: sql, args: args})
	return r.engine.query(ctx, sql, args...)
}

// recorded returns the tasks of a store whose queries are recorded.
func recorded(s *Store) (Tasks, *recorder) {
	r := &recorder{engine: s.eng}
	return Tasks{&db{eng: r, d: s.d, hooks: s.hooks, lane: s.lane, now: s.now}}, r
}

// searchBounded runs a search, and fails the test if a query reads more than it may.
func searchBounded(t *testing.T, s *Store, q dispatch.Search) (dispatch.Found, error) {
	t.Helper()
	tasks, r := recorded(s)
	found, err := tasks.Search(t.Context(), q)
	for _, query := range r.list {
		wantBounded(t, s, query)
	}
	return found, err
}

var readRows = regexp.MustCompile(`(?:actual rows=|Rows Removed by Filter: )(\d+)`)

// wantBounded fails the test if a query scans the table, or reads more rows than a search may. The
// rows of a subquery are limited, so that they may be scanned.
func wantBounded(t *testing.T, s *Store, q statement) {
	t.Helper()
	if s.d == &sqliteDialect {
		for _, step := range plan(t, s, q.sql) {
			limited := strings.Contains(q.sql, ") tasks") // a subquery
			if strings.HasPrefix(step, "SCAN tasks") && !limited || strings.HasPrefix(step, "SCAN tasks USING") {
				t.Errorf("plan of %s has %q, want a search by an index", q.sql, step)
			}
		}
		return
	}
	plan, _ := buffers(t, s, q)
	if strings.Contains(plan, "Seq Scan on tasks") {
		t.Errorf("%s scans all tasks:\n%s", q.sql, plan)
	}
	// An index keeps entries of rows that were changed until PostgreSQL cleans up.
	const most = dispatch.MaxSearched + 1 + dispatch.MaxSearched/50
	for _, m := range readRows.FindAllStringSubmatch(plan, -1) {
		if n, _ := strconv.Atoi(m[1]); n > most {
			t.Errorf("%s reads %d rows, want %d at most:\n%s", q.sql, n, most, plan)
		}
	}
}

// busyAgent adds tasks of another agent, half of which have failed and half of which wait: more
// than a search reads.
func busyAgent(t *testing.T, s *Store) {
	t.Helper()
	if err := s.eng.write(t.Context(), func(x *tx) error {
		x.exec(`INSERT INTO tasks (org_id, uid, agent_id, sender_org, sender, id, context_id, state, queued, seq,
				size, lease, lease_worker, lease_expires, delivered, last_turn, created_at, updated_at, status_seq)
			SELECT org_id, 'busy' || uid, 'busy', sender_org, sender, id, context_id,
				CASE WHEN agent_id = 'even' THEN 'failed' ELSE 'submitted' END,
				CASE WHEN agent_id = 'even' THEN 0 ELSE 1 END, seq, size, lease, lease_worker, lease_expires, delivered,
				last_turn, created_at, updated_at, status_seq
			FROM tasks WHERE org_id = 'a'`)
		x.exec(`ANALYZE tasks`)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// A search for what one index has in the order of the list reads that index and nothing else.
func TestASearchWalksTheIndexThatFits(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		manyTasks(t, s, time.Now())
		busyAgent(t, s)
		for index, q := range map[string]dispatch.Search{
			"tasks_queue":  {Queued: true, Agent: "odd"},
			"tasks_failed": {State: task.Failed, Agent: "even"},
			"tasks_listed": {State: task.Failed},
		} {
			q.Org, q.Limit = "a", 2
			tasks, r := recorded(s)
			if found, err := tasks.Search(t.Context(), q); err != nil || len(found.Tasks) != 2 {
				t.Fatalf("%s: found %+v, %v, want two tasks", index, found, err)
			}
			for _, query := range r.list {
				steps, pages := "", 0
				if s.d == &sqliteDialect {
					steps = strings.Join(plan(t, s, query.sql), "\n")
				} else {
					steps, pages = buffers(t, s, query)
				}
				if !strings.Contains(steps, index) || strings.Contains(steps, "TEMP B-TREE") || pages > 100 {
					t.Errorf("plan of %s =\n%s\nwant few pages, by %s", query.sql, steps, index)
				}
			}
		}
	})
}

// The failures of an agent are found by their index, with their messages.
func TestFailuresAreFoundByTheirIndex(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		manyTasks(t, s, time.Now())
		tasks, r := recorded(s)
		failed, err := tasks.Failed(t.Context(), "a", "even", 7)
		if err != nil || len(failed) != 7 || failed[0].ID != "t20000" || failed[6].ID != "t14000" {
			t.Fatalf("failed = %+v, %v, want the seven newest", failed, err)
		}
		if m := failed[0].Message; m == nil || m.Text() != "broken" {
			t.Errorf("message = %+v, want broken", m)
		}
		for _, q := range r.list {
			if s.d == &sqliteDialect {
				steps := strings.Join(plan(t, s, q.sql), "\n")
				if !strings.Contains(steps, "tasks_failed (org_id=? AND agent_id=?)") {
					t.Errorf("plan = %s, want a search of tasks_failed", steps)
				}
				continue
			}
			if plan, pages := buffers(t, s, q); !strings.Contains(plan, "tasks_failed") || pages > 100 {
				t.Errorf("%s reads %d pages, want few, by an index:\n%s", q.sql, pages, plan)
			}
		}
		if other, err := tasks.Failed(t.Context(), "b", "even", 7); err != nil || len(other) > 0 {
			t.Errorf("failed in another org = %v, %v, want none", other, err)
		}
	})
}
