package store

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/identity"
)

// rows is the result of a query on either engine.
type rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close()
}

// reader runs queries, inside or outside of a transaction.
type reader interface {
	query(ctx context.Context, sql string, args ...any) (rows, error)
}

// each calls fn for every row of a query.
func each(ctx context.Context, r reader, fn func(rows) error, sql string, args ...any) error {
	rs, err := r.query(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rs.Close()
	for rs.Next() {
		if err := fn(rs); err != nil {
			return err
		}
	}
	return translate(rs.Err())
}

// one scans the first row of a query and reports whether there was one.
func one(ctx context.Context, r reader, dest []any, sql string, args ...any) (bool, error) {
	found := false
	err := each(ctx, r, func(rs rows) error {
		if found {
			return nil
		}
		found = true
		return rs.Scan(dest...)
	}, sql, args...)
	return found, err
}

// strs reads one column of text.
func strs(ctx context.Context, r reader, sql string, args ...any) ([]string, error) {
	var list []string
	err := each(ctx, r, func(r rows) error {
		var s string
		err := r.Scan(&s)
		list = append(list, s)
		return err
	}, sql, args...)
	return list, err
}

// where is a condition that is built step by step. Each ? becomes the next numbered parameter.
type where struct {
	sql  string
	args []any
}

func (w *where) and(sql string, args ...any) {
	for _, a := range args {
		w.args = append(w.args, a)
		sql = strings.Replace(sql, "?", "$"+strconv.Itoa(len(w.args)), 1)
	}
	w.sql += " AND " + sql
}

// limit returns a LIMIT clause, or "" for 0.
func limit(n int) string {
	if n <= 0 {
		return ""
	}
	return " LIMIT " + strconv.Itoa(n)
}

// micros returns a time as it is stored; the zero time is 0.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// fromMicros is the inverse of micros.
func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// hashText returns a hash as it is stored; the zero hash is "".
func hashText(h identity.Hash) string {
	if h == (identity.Hash{}) {
		return ""
	}
	return hex.EncodeToString(h[:])
}

func fromHashText(s string) (h identity.Hash, err error) {
	if s == "" {
		return h, nil
	}
	if n, err := hex.Decode(h[:], []byte(s)); err != nil || n != len(h) {
		return h, fmt.Errorf("stored hash is malformed: %w", err)
	}
	return h, nil
}
