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

// Messages for callers if the store cannot do its work. The cause is only logged, because it
// may contain host names, file names and statements.
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

// unavailable returns the error for a temporary fault.
func unavailable(cause error, fault string) error {
	e := errs.Wrap(cause, errs.Unavailable, "store.unavailable", "%s; try again in a moment", fault)
	e.RetryAfter = time.Second
	return e
}

// errTaken reports an id that is in use. Only writers that race for the id get it; otherwise
// the method has returned a better message before.
var errTaken = errs.New(errs.Conflict, errs.CodeExists, "the id is taken; choose another one")

// translate maps an error of an engine to an error of package errs.
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

// postgresFault returns the message for a SQLSTATE, or "" if the fault is not temporary.
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
		"55000",          // not in the required state, for example a server that stops
		"0A000",          // a cached plan whose table was migrated meanwhile
		"26000", "42P05": // a prepared statement that a pooler lost or kept
		return faultUnreachable
	}
	// Connection failures, lost races, exhausted resources, operator intervention, system errors.
	switch code[:min(2, len(code))] {
	case "08", "40", "53", "57", "58":
		return faultUnreachable
	}
	return ""
}

// lostConnection reports whether err means that there is no connection, or no longer one.
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
		return context.Canceled // only a canceled context interrupts
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

// retryable reports whether a transaction lost a race and can succeed if it is repeated.
func retryable(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	switch pg.Code {
	case "40001", "40P01": // serialization failure, deadlock
		return true
	case "23505":
		// Two concurrent writes of the same idempotency key, fingerprint, public name, principal or
		// owner of a text index: the next try finds what the other one wrote.
		unique := []string{
			"idempotency_pkey", "friction_pkey", "agents_public_name", "principals_pkey", "search_orgs_pkey",
		}
		return slices.Contains(unique, pg.ConstraintName)
	}
	return false
}

// isCode reports whether err is an error of PostgreSQL with the given SQLSTATE.
func isCode(err error, code string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == code
}

// readOnly reports whether the database refused a write because it is a standby or
// was made read-only.
func readOnly(err error) bool {
	return isCode(err, "25006") || err != nil && strings.Contains(err.Error(), "read only connection")
}
