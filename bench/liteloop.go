package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// lite is a bare SQLite file with empty copies of some of Parley's tables, all their indexes and the
// settings of the store's writer.
type lite struct {
	*sqlite.Conn
	cleanup func()
}

func newLite(from *sqlite.Conn, tables ...string) (_ *lite, err error) {
	dir, err := os.MkdirTemp("", "parley-bench")
	if err != nil {
		return nil, err
	}
	l := &lite{cleanup: func() { _ = os.RemoveAll(dir) }}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.Conn, err = sqlite.OpenConn(filepath.Join(dir, "bare.db")); err != nil {
		return nil, err
	}
	for _, pragma := range []string{
		"auto_vacuum=INCREMENTAL", "journal_mode=WAL", "synchronous=FULL", "cache_size=-32768",
		"wal_autocheckpoint=16000", "journal_size_limit=67108864", "temp_store=MEMORY", "secure_delete=FAST",
	} {
		if err := sqlitex.ExecuteTransient(l.Conn, "PRAGMA "+pragma, nil); err != nil {
			return nil, err
		}
	}
	for _, table := range tables {
		// Tables come before their indexes.
		if err := sqlitex.Execute(from, `SELECT sql FROM sqlite_schema WHERE tbl_name = ? AND sql <> '' ORDER BY type DESC`,
			&sqlitex.ExecOptions{Args: []any{table}, ResultFunc: func(stmt *sqlite.Stmt) error {
				return sqlitex.ExecuteTransient(l.Conn, stmt.ColumnText(0), nil)
			}}); err != nil {
			return nil, fmt.Errorf("copy the table %s: %w", table, err)
		}
	}
	return l, nil
}

func (l *lite) close() {
	if l.Conn != nil {
		_ = l.Conn.Close()
	}
	l.cleanup()
}

// liteRows reads rows as patterns for others.
func liteRows(conn *sqlite.Conn, table, where string, args ...any) (out []row, err error) {
	err = sqlitex.Execute(conn, `SELECT * FROM `+table+` WHERE `+where, &sqlitex.ExecOptions{
		Args: args,
		ResultFunc: func(stmt *sqlite.Stmt) error {
			r := row{table: table}
			for i := range stmt.ColumnCount() {
				var v any
				switch stmt.ColumnType(i) {
				case sqlite.TypeInteger:
					v = stmt.ColumnInt64(i)
				case sqlite.TypeBlob:
					b := make([]byte, stmt.ColumnLen(i))
					stmt.ColumnBytes(i, b)
					v = b
				default:
					v = stmt.ColumnText(i)
				}
				r.columns, r.values = append(r.columns, stmt.ColumnName(i)), append(r.values, v)
			}
			out = append(out, r)
			return nil
		},
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s has no such rows", table)
	}
	return out, err
}

// insertInto inserts a copy of the row with other values in some columns.
func (r *row) insertInto(conn *sqlite.Conn, change func(column string) any) error {
	stmt, err := conn.Prepare(`INSERT INTO ` + r.table + ` (` + strings.Join(r.columns, ", ") +
		`) VALUES (?` + strings.Repeat(", ?", len(r.columns)-1) + `)`)
	if err != nil {
		return err
	}
	for i, column := range r.columns {
		value := change(column)
		if value == nil {
			value = r.values[i]
		}
		switch v := value.(type) {
		case int64:
			stmt.BindInt64(i+1, v)
		case []byte:
			stmt.BindBytes(i+1, v)
		case string:
			stmt.BindText(i+1, v)
		default:
			return fmt.Errorf("column %s: unexpected type %T", column, v)
		}
	}
	_, err = stmt.Step()
	return err
}

// life writes the rows of tasks.
type life struct {
	task   row
	logged []row
	pack   row // of the org's events
	n      int64
}

// addLiteLifeLoop is addLifeLoop for SQLite. The loop has one connection, as the store's writer has.
func (w *taskWorld) addLiteLifeLoop(ctx context.Context, set settings, sends job) (_ line, err error) {
	from, err := sqlite.OpenConn(filepath.Join(w.data[1], "parley.db"), sqlite.OpenReadOnly)
	if err != nil {
		return line{}, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	tasks, err := liteRows(from, "tasks", echoed, org)
	if err != nil {
		return line{}, err
	}
	l := life{task: tasks[0]}
	owner := l.task.value("org_id")
	if l.logged, err = liteRows(from, "task_events", `org_id = ? AND uid = ? ORDER BY seq`, owner, l.task.value("uid")); err != nil {
		return line{}, err
	}
	packs, err := liteRows(from, "events", `org_id = ? ORDER BY n DESC LIMIT 1`, owner)
	if err != nil {
		return line{}, err
	}
	l.pack = packs[0]
	conn, err := newLite(from, "tasks", "task_events", "events")
	if err != nil {
		return line{}, err
	}
	defer conn.close()
	return besideRate(ctx, set, w.engine, lifeName, nil, sends, func() (result, error) {
		start, r := time.Now(), result{}
		for time.Since(start) < set.duration && ctx.Err() == nil {
			if err := l.write(conn.Conn); err != nil {
				return r, err
			}
			r.Requests += loopBatch
		}
		r.Seconds = time.Since(start).Seconds()
		return r, ctx.Err()
	})
}

// write writes a batch of tasks from send to end, in two transactions.
func (l *life) write(conn *sqlite.Conn) error {
	uids := make([]string, loopBatch)
	for i := range uids {
		l.n++
		uids[i] = fmt.Sprintf("%026d", l.n)
	}
	half := max(1, len(l.logged)/2)
	if err := l.commit(conn, uids, l.logged[:half], func(uid string) error {
		return l.task.insertInto(conn, func(column string) any {
			switch column {
			case "uid", "id", "lease":
				return uid
			case "lease_expires":
				return l.n // any time: it is in an index
			case "state":
				return "working"
			}
			return nil
		})
	}); err != nil {
		return err
	}
	return l.commit(conn, uids, l.logged[half:], func(uid string) error {
		stmt, err := conn.Prepare(`UPDATE tasks SET state = 'completed', seq = seq + 1, size = size + 1, lease = '',
			lease_expires = 0, updated_at = updated_at + 1 WHERE org_id = ? AND uid = ?`)
		if err != nil {
			return err
		}
		stmt.BindText(1, fmt.Sprint(l.task.value("org_id")))
		stmt.BindText(2, uid)
		_, err = stmt.Step()
		return err
	})
}

// commit writes a part of each task and its log, and an event for each, in one transaction.
func (l *life) commit(conn *sqlite.Conn, uids []string, logged []row, write func(uid string) error) (err error) {
	end, err := sqlitex.ImmediateTransaction(conn)
	if err != nil {
		return err
	}
	defer end(&err)
	for _, uid := range uids {
		if err := write(uid); err != nil {
			return err
		}
		for i := range logged {
			if err := logged[i].insertInto(conn, func(column string) any {
				if column == "uid" {
					return uid
				}
				return nil
			}); err != nil {
				return err
			}
		}
	}
	events, _ := l.pack.value("n").(int64)
	for written := int64(0); written < int64(len(uids)); written += max(1, events) {
		l.n++
		if err := l.pack.insertInto(conn, func(column string) any {
			if column == "last_seq" {
				return l.n
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}
