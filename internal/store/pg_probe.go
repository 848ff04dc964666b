package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// pgProbe checks whether the database accepts writes. It uses its own connection: a health check
// must not wait for requests or for a pool that they have exhausted.
type pgProbe struct {
	connect    func(context.Context) (*pgx.Conn, error)
	pulse      *pulse
	onReadOnly func()

	one  chan struct{} // held by the running check
	conn *pgx.Conn     // nil before the first check
}

// check writes a message to the write-ahead log and waits until it is on disk. It touches no
// table, so it needs no lock and leaves nothing to clean up. It first asks whether transactions
// may write, because such a message can be written to any server that is not a standby.
func (p *pgProbe) check(ctx context.Context) error {
	limited, cancel, err := p.pulse.bind(ctx, 0)
	if err != nil {
		return err
	}
	defer cancel()
	select {
	case p.one <- struct{}{}:
		defer func() { <-p.one }()
	case <-limited.Done():
		return blame(limited.Err(), ctx, limited)
	}
	if err = p.write(limited); err == nil {
		return nil
	}
	if p.conn != nil { // the next check may reach another server
		closeSoon(p.conn)
		p.conn = nil
	}
	if readOnly(err) {
		p.onReadOnly()
		return unavailable(err, faultReadOnly)
	}
	if limited.Err() != nil || timedOut(err) { // the deadline of the probe
		return unavailable(err, faultSilent)
	}
	return translate(err)
}

var errReadOnly = errors.New("the database is read-only: read only connection")

func (p *pgProbe) write(ctx context.Context) error {
	if p.conn == nil || p.conn.IsClosed() {
		conn, err := p.connect(ctx)
		if err != nil {
			return err
		}
		p.conn = conn
	}
	results, err := p.conn.PgConn().Exec(ctx, "SELECT current_setting('transaction_read_only')").ReadAll()
	if err != nil {
		return err
	}
	if len(results) > 0 && len(results[0].Rows) > 0 && string(results[0].Rows[0][0]) == "on" {
		return errReadOnly
	}
	_, err = p.conn.PgConn().Exec(ctx, "SELECT pg_logical_emit_message(true, 'parley', '')").ReadAll()
	if isCode(err, "42501") { // the role lacks the permission; that the server is no standby must suffice
		return nil
	}
	return err
}

func (p *pgProbe) close() {
	p.one <- struct{}{}
	if p.conn != nil {
		closeSoon(p.conn)
	}
}
