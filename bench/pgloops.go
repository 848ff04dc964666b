package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	loopConns = 2   // as many as the store's, which send batches in turn
	loopBatch = 128 // rows of a batch; two statements of 64 rows
	loopRows  = 64
	rowsName  = "submit (limit: batched inserts of the same row)"
	lifeName  = "task send → completed (limit: the same rows, batched)"
)

// loop does the n-th part of the work of a bare program, and returns how many operations it was.
type loop func(ctx context.Context, conn *pgx.Conn, n int64) (int, error)

// besideLoop compares a job with a bare loop on the same PostgreSQL, in turn.
func besideLoop(
	ctx context.Context, set settings, name, url string, background *job, j job, conns int, l loop,
) (line, error) {
	var n atomic.Int64
	return besideRate(ctx, set, "postgres", name, background, j, func() (result, error) {
		return runLoop(ctx, set, url, conns, &n, l)
	})
}

// besideRate compares a job with a bare loop, in turn.
func besideRate(
	ctx context.Context, set settings, engine, name string, background *job, j job, bare func() (result, error),
) (line, error) {
	l, err := alternate(set, func() (result, error) { return beside(ctx, set, background, j) }, bare)
	l.Engine, l.Name, l.Callers = engine, name, j.Callers
	progress("%s, %s: %.0f/s, limit %.0f/s, ratio %.2f", engine, name, l.Rate, l.LimitRate, l.Ratio)
	return l, err
}

// runLoop runs a loop on so many connections.
func runLoop(ctx context.Context, set settings, url string, conns int, n *atomic.Int64, l loop) (result, error) {
	var wg sync.WaitGroup
	var sum atomic.Int64
	failed := make(chan error, conns)
	start := time.Now()
	for range conns {
		wg.Go(func() {
			conn, err := pgx.Connect(ctx, url)
			if err != nil {
				failed <- err
				return
			}
			defer func() { _ = conn.Close(ctx) }()
			for time.Since(start) < set.duration {
				did, err := l(ctx, conn, n.Add(1))
				if err != nil {
					failed <- err
					return
				}
				sum.Add(int64(did))
			}
		})
	}
	wg.Wait()
	r := result{Requests: int(sum.Load()), Seconds: time.Since(start).Seconds()}
	select {
	case err := <-failed:
		return result{}, err
	default:
		return r, nil
	}
}

// row is a row of a table, as a pattern for others.
type row struct {
	table   string // into which they are inserted
	columns []string
	values  []any
}

// readRows reads rows of Parley's table and makes an empty copy of the table, with all its indexes.
func readRows(ctx context.Context, url, table, where string, args ...any) ([]row, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	into := "bench_" + table
	for _, sql := range []string{
		`DROP TABLE IF EXISTS ` + into, `CREATE TABLE ` + into + ` (LIKE ` + table + ` INCLUDING ALL)`,
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return nil, err
		}
	}
	found, err := conn.Query(ctx, `SELECT * FROM `+table+` WHERE `+where, args...)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var out []row
	for found.Next() {
		r := row{table: into}
		if r.values, err = found.Values(); err != nil {
			return nil, err
		}
		for _, c := range found.FieldDescriptions() {
			r.columns = append(r.columns, c.Name)
		}
		out = append(out, r)
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no such rows", table)
	}
	return out, nil
}

// insert queues the insertion of so many copies of the row. Each has other values in some columns.
func (r *row) insert(b *pgx.Batch, copies int, change func(i int, column string) any) {
	for first := 0; first < copies; first += loopRows {
		var text strings.Builder
		var args []any
		text.WriteString("INSERT INTO " + r.table + " (" + strings.Join(r.columns, ", ") + ") VALUES ")
		for i := first; i < min(first+loopRows, copies); i++ {
			for at, column := range r.columns {
				text.WriteString(separator(at, i > first))
				value := change(i, column)
				if value == nil {
					value = r.values[at]
				}
				args = append(args, value)
				fmt.Fprintf(&text, "$%d", len(args))
			}
			text.WriteByte(')')
		}
		b.Queue(text.String(), args...)
	}
}

func separator(column int, later bool) string {
	switch {
	case column > 0:
		return ", "
	case later:
		return ", ("
	}
	return "("
}

// addRowsLoop compares submits with batched inserts of the same row into a table like Parley's.
func (w *world) addRowsLoop(ctx context.Context, set settings, rows int) (line, error) {
	url := w.data[1]
	found, err := readRows(ctx, url, "proposals", `org_id = $1 LIMIT 1`, org)
	if err != nil {
		return line{}, err
	}
	j := job{Addr: w.addr, Callers: writers, Requests: w.submits()}
	l, err := besideLoop(ctx, set, rowsName, url, nil, j, loopConns,
		func(ctx context.Context, conn *pgx.Conn, n int64) (int, error) {
			var b pgx.Batch
			found[0].insert(&b, loopBatch, func(i int, column string) any {
				if column == "id" {
					return fmt.Sprintf("prop-%020d%06d", n, i)
				}
				return nil
			})
			return loopBatch, conn.SendBatch(ctx, &b).Close()
		})
	l.Rows = rows
	return l, err
}

// echoed selects a task that the built-in echo has completed, like those that are measured. $1 is the
// sender's org.
const echoed = `sender_org = $1 AND agent_id = 'echo' AND state = 'completed' ORDER BY uid DESC LIMIT 1`

// addLifeLoop compares tasks with the batched writes of the same rows: the task and the first events
// of its log in one transaction, its update and the other events in another.
func (w *taskWorld) addLifeLoop(ctx context.Context, set settings, sends job) (line, error) {
	url := w.data[1]
	tasks, err := readRows(ctx, url, "tasks", echoed, org)
	if err != nil {
		return line{}, err
	}
	t := tasks[0]
	logged, err := readRows(ctx, url, "task_events", `org_id = $1 AND uid = $2 ORDER BY seq`, t.value("org_id"), t.value("uid"))
	if err != nil {
		return line{}, err
	}
	return besideLoop(ctx, set, lifeName, url, nil, sends, loopConns,
		func(ctx context.Context, conn *pgx.Conn, n int64) (int, error) {
			uids := make([]string, loopBatch)
			for i := range uids {
				uids[i] = fmt.Sprintf("bench-%020d%06d", n, i)
			}
			own := func(i int, column string) any {
				switch column {
				case "uid", "id", "lease":
					return uids[i]
				case "lease_expires":
					return n // any time: it is in an index
				case "state":
					return "working"
				}
				return nil
			}
			var sent, done pgx.Batch
			t.insert(&sent, loopBatch, own)
			done.Queue(`UPDATE `+t.table+` SET state = 'completed', seq = seq + 1, size = size + 1, lease = '',
				lease_expires = 0, updated_at = updated_at + 1 WHERE org_id = $1 AND uid = ANY ($2)`, t.value("org_id"), uids)
			for i := range logged {
				b := &sent
				if i > 0 && i >= len(logged)/2 {
					b = &done
				}
				logged[i].insert(b, loopBatch, own)
			}
			if err := conn.SendBatch(ctx, &sent).Close(); err != nil {
				return 0, err
			}
			return loopBatch, conn.SendBatch(ctx, &done).Close()
		})
}

func (r *row) value(column string) any {
	for i, name := range r.columns {
		if name == column {
			return r.values[i]
		}
	}
	return nil
}
