package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
)

// liteConn is one connection to SQLite with its prepared statements, used by one goroutine at
// a time. It calls the engine directly: with database/sql every parameter and every column
// costs several times as much.
type liteConn struct {
	conn  *sqlite.Conn
	stmts map[string]*liteStmt
	// stopped, if set, interrupts the running statement when it is closed; see interruptAfter.
	stopped chan struct{}
}

// liteStmt is a prepared statement with its parameters by position.
type liteStmt struct {
	stmt  *sqlite.Stmt
	order []int // the n-th "?" takes the argument order[n]; nil if they are in order
}

// busyTimeout is how long a connection waits for a lock: the command line may write at the same time.
const busyTimeout = 10 * time.Second

// maxStatements limits the statements that one connection keeps prepared. List queries have
// many forms, but a finite number; past this limit all are dropped and prepared again.
const maxStatements = 512

func openLite(path string, pragmas ...string) (*liteConn, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		return nil, err
	}
	c := &liteConn{conn: conn, stmts: map[string]*liteStmt{}}
	conn.SetBusyTimeout(busyTimeout)
	for _, p := range pragmas {
		if err := c.exec("PRAGMA " + p); err != nil {
			_ = c.close()
			return nil, fmt.Errorf("%s: %w", p, err)
		}
	}
	if err := c.addFunctions(); err != nil {
		_ = c.close()
		return nil, err
	}
	return c, nil
}

// addFunctions adds the SQL functions for packs of n events: pack_text(data), and pack_subjects(data, n),
// which is a JSON array; both are NULL if the pack is damaged.
func (c *liteConn) addFunctions() error {
	return errors.Join(
		c.conn.CreateFunction("pack_text", &sqlite.FunctionImpl{
			NArgs: 1, Deterministic: true,
			Scalar: func(_ sqlite.Context, args []sqlite.Value) (sqlite.Value, error) {
				text, err := expandPack(args[0].Blob())
				if err != nil {
					return sqlite.Value{}, nil //nolint:nilerr // NULL: the library loses errors of functions
				}
				return sqlite.TextValue(text), nil
			},
		}),
		c.conn.CreateFunction("pack_subjects", &sqlite.FunctionImpl{
			NArgs: 2, Deterministic: true,
			Scalar: func(_ sqlite.Context, args []sqlite.Value) (sqlite.Value, error) {
				text, err := expandPack(args[0].Blob())
				if err != nil {
					return sqlite.Value{}, nil //nolint:nilerr // see above
				}
				p := storedPack{last: args[1].Int64(), n: args[1].Int64(), data: text}
				subjects, err := p.subjects("")
				if err != nil {
					return sqlite.Value{}, nil //nolint:nilerr // see above
				}
				list, err := json.Marshal(subjects)
				if err != nil {
					return sqlite.Value{}, nil //nolint:nilerr // see above
				}
				return sqlite.TextValue(string(list)), nil
			},
		}),
	)
}

func (c *liteConn) close() error { return errors.Join(c.forget(), c.conn.Close()) }

// forget drops all prepared statements.
func (c *liteConn) forget() (err error) {
	for text, s := range c.stmts {
		err = errors.Join(err, s.stmt.Finalize())
		delete(c.stmts, text)
	}
	return err
}

// exec runs a statement and ignores how many rows it changes.
func (c *liteConn) exec(sql string, args ...any) error {
	_, err := c.run(sql, args)
	return err
}

// run runs a statement and returns how many rows it changed.
func (c *liteConn) run(sql string, args []any) (int, error) {
	s, err := c.prepare(sql)
	if err != nil {
		return 0, err
	}
	if err := s.bind(args); err != nil {
		return 0, err
	}
	for more := true; more; {
		if more, err = s.stmt.Step(); err != nil {
			return 0, err // Step has reset the statement
		}
	}
	changed := c.conn.Changes()
	return changed, s.stmt.Reset()
}

// read runs a query and calls done when its rows are closed.
func (c *liteConn) read(sql string, args []any, done func()) (rows, error) {
	s, err := c.prepare(sql)
	if err != nil {
		return nil, err
	}
	if err := s.bind(args); err != nil {
		return nil, err
	}
	return &liteRows{stmt: s.stmt, done: done}, nil
}

func (c *liteConn) prepare(sql string) (*liteStmt, error) {
	if s, ok := c.stmts[sql]; ok {
		return s, nil
	}
	if len(c.stmts) >= maxStatements {
		if err := c.forget(); err != nil {
			return nil, err
		}
	}
	text, order := positional(sql)
	stmt, _, err := c.conn.PrepareTransient(text)
	if err != nil {
		return nil, err
	}
	s := &liteStmt{stmt, order}
	c.stmts[sql] = s
	return s, nil
}

// positional replaces every $n by "?" and returns the argument that each one takes, because
// SQLite numbers parameters by their first appearance. Our statements contain no other $.
//
// The planner looks at the values of parameters after LIMIT, OFFSET and LIKE, and so prepares the
// statement again whenever they change. That takes as long as a short query. It does not look
// behind a sign.
func positional(query string) (string, []int) {
	var text strings.Builder
	var order []int
	inOrder := true
	for i := 0; i < len(query); {
		c := query[i]
		i++
		if c != '$' {
			text.WriteByte(c)
			continue
		}
		n := 0
		for i < len(query) && '0' <= query[i] && query[i] <= '9' {
			n = 10*n + int(query[i]-'0')
			i++
		}
		if planned(text.String()) {
			text.WriteByte('+')
		}
		text.WriteByte('?')
		inOrder = inOrder && n-1 == len(order)
		order = append(order, n-1)
	}
	if inOrder {
		order = nil
	}
	return text.String(), order
}

// planned reports whether the planner looks at a parameter that follows this text.
func planned(before string) bool {
	const space = " \t\n"
	before = strings.TrimRight(before, space)
	switch before[strings.LastIndexAny(before, space)+1:] {
	case "LIMIT", "OFFSET", "LIKE":
		return true
	}
	return false
}

// bind sets the parameters. The first Step returns any error of binding.
func (s *liteStmt) bind(args []any) error {
	n := len(args)
	if s.order != nil {
		n = len(s.order)
	}
	for i := range n {
		arg := i
		if s.order != nil {
			arg = s.order[i]
		}
		switch v := args[arg].(type) {
		case string:
			s.stmt.BindText(i+1, v)
		case []byte:
			s.stmt.BindBytes(i+1, v)
		case int64:
			s.stmt.BindInt64(i+1, v)
		case int:
			s.stmt.BindInt64(i+1, int64(v))
		default:
			return fmt.Errorf("unsupported type of parameter %d: %T", arg+1, v)
		}
	}
	return nil
}

// liteRows are the rows of a query.
type liteRows struct {
	stmt *sqlite.Stmt
	done func()
	err  error
}

// Next implements rows.
func (r *liteRows) Next() bool {
	if r.err != nil {
		return false
	}
	var more bool
	more, r.err = r.stmt.Step()
	return more && r.err == nil
}

// Scan implements rows.
func (r *liteRows) Scan(dest ...any) error {
	for i, d := range dest {
		switch p := d.(type) {
		case *string:
			r.scanText(i, p)
		case *int64:
			*p = r.stmt.ColumnInt64(i)
		case *int:
			*p = r.stmt.ColumnInt(i)
		case *[]byte:
			*p = make([]byte, r.stmt.ColumnLen(i))
			r.stmt.ColumnBytes(i, *p)
		default:
			return fmt.Errorf("unsupported destination of column %d: %T", i+1, d)
		}
	}
	return nil
}

// scanText reads a column of text. A value that equals that of the row before is not copied: rows
// often repeat a status, a category or a principal.
func (r *liteRows) scanText(i int, dest *string) {
	const short = 48
	n := r.stmt.ColumnLen(i)
	if n == len(*dest) && n <= short {
		var buf [short]byte
		r.stmt.ColumnBytes(i, buf[:n])
		if string(buf[:n]) == *dest {
			return
		}
	}
	*dest = r.stmt.ColumnText(i)
}

// Err implements rows.
func (r *liteRows) Err() error {
	if r.err == nil {
		return nil
	}
	return translate(r.err)
}

// Close implements rows.
func (r *liteRows) Close() {
	_ = r.stmt.Reset() // repeats the error of the last Step, which Err returns
	r.done()
}
