package store

import (
	"context"
	"database/sql"
	"strings"
)

// prepared is a statement of SQLite's with its parameters by position.
type prepared struct {
	*sql.Stmt
	order []int // the n-th "?" takes the argument order[n]; nil: they are in order
}

// prepare prepares a statement that has numbered parameters. The driver looks a
// numbered parameter up among all arguments by its name, which for the wide rows of
// a task costs more than the row; a "?" it takes by position.
func prepare(ctx context.Context, db interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}, query string,
) (*prepared, error) {
	text, order := positional(query)
	stmt, err := db.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	return &prepared{stmt, order}, nil
}

// positional replaces every $n by "?" and tells which argument each one takes. Our
// statements have no $ elsewhere.
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
		text.WriteByte('?')
		inOrder = inOrder && n-1 == len(order)
		order = append(order, n-1)
	}
	if inOrder {
		order = nil
	}
	return text.String(), order
}

// arrange puts the arguments where the statement wants them.
func (p *prepared) arrange(args []any) []any {
	if p.order == nil {
		return args
	}
	out := make([]any, len(p.order))
	for i, n := range p.order {
		out[i] = args[n]
	}
	return out
}

// run executes the statement and tells how many rows it changed.
func (p *prepared) run(ctx context.Context, args []any) (int64, error) {
	res, err := p.ExecContext(ctx, p.arrange(args)...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// read queries.
func (p *prepared) read(ctx context.Context, args []any) (rows, error) {
	rs, err := p.QueryContext(ctx, p.arrange(args)...)
	return liteRows{rs}, err
}
