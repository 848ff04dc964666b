package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// openPostgresSnapshot uses a connection of its own: the limits for statements of servers are too
// short for it.
func openPostgresSnapshot(ctx context.Context, o Options) (*Snapshot, error) {
	conn, err := connectBare(ctx, o)
	if err != nil {
		return nil, err
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err == nil {
		_, err = tx.Exec(ctx, noLimits)
	}
	if err != nil {
		closeSoon(conn)
		return nil, fmt.Errorf("begin to read: %w", err)
	}
	return &Snapshot{
		Engine: postgresDialect.name, reader: barePostgres{tx}, form: &postgresForm,
		close: func() error {
			closeSoon(conn)
			return nil
		},
	}, nil
}

// noLimits is valid until the transaction ends, also behind a pooler.
const noLimits = `SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;
	SET LOCAL idle_in_transaction_session_timeout = 0`

// connectBare returns a connection that holds no state in its session, because a pooler may share it.
func connectBare(ctx context.Context, o Options) (*pgx.Conn, error) {
	cfg, err := parsePostgres(o)
	if err != nil {
		return nil, err
	}
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	return connectFirst(ctx, cfg)
}

// barePostgres reads in one transaction.
type barePostgres struct{ pgx.Tx }

func (t barePostgres) query(ctx context.Context, sql string, args ...any) (rows, error) {
	rs, err := t.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return rs, nil
}
