package store

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"zombiezen.com/go/sqlite"

	"github.com/parley-dev/parley/internal/errs"
)

// What callers are told about a store that cannot do its work. The cause goes to the
// log only: it may name hosts, files and statements.
const (
	faultUnreachable = "the store cannot be reached right now"
	faultSilent      = "the database does not respond"
	faultReadOnly    = "the store is read-only right now"
	faultFull        = "the disk of the store is full"
	faultDamaged     = "the file of the store is damaged or cannot be accessed"
	faultLocked      = "the data is locked by another operation"
	faultSlow        = "the store took too long"
	faultBusy        = "all connections to the store are in use"
)

// unavailable is the error for a fault that may pass.
func unavailable(cause error, fault string) error {
	e := errs.Wrap(cause, errs.Unavailable, "store.unavailable", "%s; try again in a moment", fault)
	e.RetryAfter = time.Second
	return e
}

// errTaken is the refusal of an id that is in use, seen only when two writers
// race for it; otherwise the method has said it in better words before.
var errTaken = errs.New(errs.Conflict, errs.CodeExists, "it exists already; choose another id")

// translate gives an engine's error the kind that the rest of the program knows.
func translate(err error) error {
	var known *errs.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "23505":
			if !retryable(err) {
				return errTaken
			}
		case "23503":
			return errs.ErrNotFound
		}
		if fault := postgresFault(pg.Code); fault != "" {
			return unavailable(err, fault)
		}
		return err
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	if lostConnection(err) {
		return unavailable(err, faultUnreachable)
	}
	if errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) {
		return unavailable(err, faultSlow)
	}
	return translateSQLite(err)
}

// postgresFault says which fault a SQLSTATE stands for; empty: none that may pass.
func postgresFault(code string) string {
	switch code {
	case "25006": // read-only transaction
		return faultReadOnly
	case "53100": // disk full
		return faultFull
	case "53300": // too many connections
		return faultBusy
	case "55P03": // lock not available
		return faultLocked
	case "57014", "25P04": // statement or transaction timeout
		return faultSlow
	case "XX001", "XX002": // corrupted data or index
		return faultDamaged
	case "23505", // see retryable
		"25P03",          // the session was idle for too long
		"55000",          // not in the required state, as a server that stops
		"0A000",          // a cached plan whose table was migrated meanwhile
		"26000", "42P05": // a prepared statement that a pooler lost or kept
		return faultUnreachable
	}
	// Connection, lost race, resources, operator intervention, system error.
	switch code[:min(2, len(code))] {
	case "08", "40", "53", "57", "58":
		return faultUnreachable
	}
	return ""
}

// lostConnection reports whether err says that there is no connection, or none any more.
func lostConnection(err error) bool {
	var connect *pgconn.ConnectError
	var network *net.OpError
	switch {
	case errors.As(err, &connect), errors.Is(err, net.ErrClosed):
		return true
	case errors.As(err, &network):
		return !network.Timeout()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNREFUSED):
		return true
	}
	return pgconn.SafeToRetry(err) && !errors.Is(err, context.DeadlineExceeded) // "conn closed", "conn busy"
}

func translateSQLite(err error) error {
	code := sqlite.ErrCode(err)
	switch code {
	case sqlite.ResultConstraintPrimaryKey, sqlite.ResultConstraintUnique:
		return errTaken
	case sqlite.ResultConstraintForeignKey:
		return errs.ErrNotFound
	case sqlite.ResultInterrupt:
		return context.Canceled // only a caller that went away interrupts
	}
	switch code.ToPrimary() {
	case sqlite.ResultBusy, sqlite.ResultLocked:
		return unavailable(err, faultLocked)
	case sqlite.ResultFull:
		return unavailable(err, faultFull)
	case sqlite.ResultReadOnly:
		return unavailable(err, faultReadOnly)
	case sqlite.ResultIOErr, sqlite.ResultNoMem:
		return unavailable(err, faultUnreachable)
	case sqlite.ResultCorrupt, sqlite.ResultNotADB, sqlite.ResultCantOpen, sqlite.ResultPerm:
		return unavailable(err, faultDamaged)
	}
	return err
}

// retryable reports whether a transaction lost a race that another try can win.
func retryable(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	switch pg.Code {
	case "40001", "40P01": // serialization failure, deadlock
		return true
	case "23505":
		// The same idempotency key, the first reports of one friction, or the same public
		// name or principal, at the same moment: the next try finds what the other wrote.
		return slices.Contains([]string{"idempotency_pkey", "friction_pkey", "agents_public_name", "principals_pkey"}, pg.ConstraintName)
	}
	return false
}

// isCode reports whether err is PostgreSQL's, with the given SQLSTATE.
func isCode(err error, code string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == code
}

// readOnly reports whether the database refused a write because it is a standby or
// was made read-only.
func readOnly(err error) bool {
	return isCode(err, "25006") || err != nil && strings.Contains(err.Error(), "read only connection")
}
