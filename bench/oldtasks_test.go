package main

import (
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/dispatch"
)

// TestOldTasksAreOrdinaryTasks adds old tasks and has the store delete them by their age.
func TestOldTasksAreOrdinaryTasks(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			if engine == "postgres" && testing.Short() {
				t.Skip("starts PostgreSQL; run without -short")
			}
			s, cleanup, err := openStore(t.Context(), engine)
			if err != nil {
				t.Fatal(err)
			}
			defer cleanup()
			if err := s.fill(t.Context(), org, 1, listed); err != nil {
				t.Fatal(err)
			}
			if err := addFinished(t.Context(), s.Store); err != nil {
				t.Fatal(err)
			}
			const n = 30
			if err := addOldTasks(t.Context(), engine, s.data, n, 48*time.Hour); err != nil {
				t.Fatal(err)
			}
			db, err := openSQL(engine, s.data)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			count := func(table string) (rows int) {
				if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM `+table).Scan(&rows); err != nil {
					t.Fatal(err)
				}
				return rows
			}
			if tasks, logs := count("tasks"), count("task_events"); tasks != n+1 || logs != 2*(n+1) {
				t.Errorf("%d tasks with %d rows of their logs, want %d with two each", tasks, logs, n+1)
			}
			sweeper := dispatch.New(dispatch.Options{Stores: s.DispatchStores(), Now: app.Now, Node: "test"})
			for _, c := range []struct {
				keep time.Duration
				want int
			}{{72 * time.Hour, 0}, {24 * time.Hour, n}} {
				if swept, err := sweeper.Sweep(t.Context(), c.keep); err != nil || swept != c.want {
					t.Errorf("tasks kept for %s: %d swept, %v, want %d", c.keep, swept, err, c.want)
				}
			}
			if left := count("tasks"); left != 1 {
				t.Errorf("%d tasks after the sweep, want that of now", left)
			}
		})
	}
}
