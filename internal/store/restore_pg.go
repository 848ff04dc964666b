package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
)

// intoPostgres makes the schema of the back-up, and adds the rows in one transaction.
func (r *restore) intoPostgres(ctx context.Context, o Options) error {
	if err := r.refuseNewer(ctx, o); err != nil {
		return err
	}
	older := o
	older.schema, older.Migrate = r.schema, MigrateSafely
	s, err := Open(ctx, older)
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	if err := r.fillDatabase(ctx, o); err != nil {
		return err
	}
	return finishRestore(ctx, o)
}

// refuseNewer returns an error if the database has a newer schema than the back-up. The rows are added
// with the schema of the back-up, and migrated afterwards.
func (r *restore) refuseNewer(ctx context.Context, o Options) error {
	conn, err := connectBare(ctx, o)
	if err != nil {
		return err
	}
	defer closeSoon(conn)
	known, schema := false, 0
	err = conn.QueryRow(ctx, `SELECT to_regclass('schema_migrations') IS NOT NULL`).Scan(&known)
	if err == nil && known {
		err = conn.QueryRow(ctx, `SELECT coalesce(max(number), 0) FROM schema_migrations`).Scan(&schema)
	}
	if err == nil && schema > len(r.schema) {
		err = fmt.Errorf("the database has schema %d already, and the back-up has the older schema %d; restore into a "+
			"database without tables, which is then brought up to date", schema, len(r.schema))
	}
	return err
}

func (r *restore) fillDatabase(ctx context.Context, o Options) error {
	conn, err := connectBare(ctx, o)
	if err != nil {
		return err
	}
	defer closeSoon(conn)
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	to := postgresTarget{barePostgres{tx}, ctx}
	if err := to.exec(noLimits); err != nil {
		return err
	}
	// A server that starts meanwhile waits, and then finds the restored orgs.
	if err := to.exec(`LOCK TABLE orgs IN ACCESS EXCLUSIVE MODE`); err != nil {
		return err
	}
	n := 0
	if _, err := one(ctx, to, []any{&n}, `SELECT count(*) FROM orgs`); err != nil {
		return err
	}
	if n > 0 {
		return errOccupied
	}
	if err := r.all(ctx, to, &postgresForm); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	_, _ = conn.Exec(ctx, `ANALYZE`) // else PostgreSQL does it by itself, later
	return nil
}

// postgresTarget fills a PostgreSQL database.
type postgresTarget struct {
	barePostgres
	ctx context.Context
}

func (t postgresTarget) exec(sql string, args ...any) error {
	_, err := t.Exec(t.ctx, sql, args...)
	return err
}

// fill implements target.
func (t postgresTarget) fill(ctx context.Context, table *copyTable, next func() ([]any, error)) (int64, error) {
	n := 0
	return t.CopyFrom(ctx, pgx.Identifier{table.name}, table.names(), pgx.CopyFromFunc(func() ([]any, error) {
		values, err := next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		n++
		for i, v := range values {
			if s, ok := v.(string); ok && strings.IndexByte(s, 0) >= 0 {
				return nil, fmt.Errorf("row %d has a zero byte in the column %s, which PostgreSQL cannot store", n,
					table.columns[i].name)
			}
		}
		return values, err
	}))
}
