package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
)

// intoPostgres adds all rows in one transaction. No other transaction has these rows, so servers do not
// wait for it, except to add what must be unique in the store, such as a public agent with the id of one
// of the org's.
func (im *orgImport) intoPostgres(ctx context.Context, o Options) error {
	if err := im.refuse(ctx, im.store.eng); err != nil {
		return err
	}
	if _, err := im.store.purgeLeft(ctx, im.org, im.progress, im.unborn); err != nil {
		return fmt.Errorf("remove what is left of an earlier org: %w", err)
	}
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
	// As every write does; see fence.
	if err := to.exec(im.store.fence.check.sql, im.store.fence.check.args...); err != nil {
		return fmt.Errorf("the store was migrated by a newer parley: %w", err)
	}
	if err := to.exec(lockOrgID, "org "+im.org); err != nil {
		return err
	}
	if err := im.refuse(ctx, to); err != nil {
		return err
	}
	have, err := im.known(ctx, to)
	if err != nil {
		return err
	}
	for i := range im.tables {
		t := &im.tables[i]
		if orgTables[t.name].leaves(im.secrets) {
			continue
		}
		if err := im.copyTable(ctx, to, t, have); err != nil {
			return fmt.Errorf("import the table %s: %w", t.name, translate(err))
		}
	}
	if err := to.exec(awaitProposals+` WHERE org_id = $1 ORDER BY id`, im.org); err != nil {
		return fmt.Errorf("queue the proposals for the text index: %w", err)
	}
	last := newTx(to, &postgresDialect, im.store.hooks)
	last.audit(im.entry)
	last.newEpoch(im.org)
	last.newVersions(im.org, im.entry.At)
	for _, s := range last.statements {
		if err := to.exec(s.sql, s.args...); err != nil {
			return err
		}
	}
	return translate(tx.Commit(ctx))
}

// copyTable copies one table.
func (im *orgImport) copyTable(ctx context.Context, to postgresTarget, t *copyTable, have map[string]bool) error {
	next, stop := iter.Pull2(func(yield func([]any, error) bool) {
		err := im.each(ctx, t, "", have, func(values []any) error {
			if !yield(values, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	})
	defer stop()
	n, err := to.fill(ctx, t, func() ([]any, error) {
		values, err, more := next()
		if !more {
			return nil, io.EOF
		}
		return values, err
	})
	im.progress(t.name, n)
	return err
}

var errStopped = errors.New("stopped")
