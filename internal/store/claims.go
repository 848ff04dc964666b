package store

import (
	"context"
	"fmt"
	"time"
)

// A claim of a delivery names its node, so that it ends with the node and not only when it expires.
// A SQLite store has one server, so all claims of other nodes are those of an earlier process. On
// PostgreSQL a node is gone when its last beat is older than aliveFor, or only older than
// aliveUnlocked if no session holds its advisory lock: the operating system closes the connection
// with the process. A missing lock alone proves nothing, because a restart of the database ends all
// sessions, and nodes reconnect at different times. Behind a pooler only the beats count.
//
// A node that was only slow or disconnected may lose its claims in this way. It cannot settle them
// any more, and a receiver may get an event twice.

// noLockPrefix begins the name in claimed_by of a node that holds no advisory lock.
const noLockPrefix = "~"

// holdNode takes the advisory lock of a node, as long as the session lasts. It is shared, so that it
// never waits.
const holdNode = `SELECT pg_advisory_lock_shared(hashtextextended($1, 0))`

// aliveUnlocked is how long a node counts as alive after its last beat if its lock is not held. It
// spans some beats.
const aliveUnlocked = 3 * time.Second

// lockedNodes selects the keys of the advisory locks of nodes, and possibly others.
const lockedNodes = `SELECT (CAST(classid AS BIGINT) << 32) | CAST(objid AS BIGINT) FROM pg_locks
	WHERE locktype = 'advisory' AND objsubid = 1
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

// The condition that the claim of a row is one of a node that is gone. The parameter is this node.
// Programs that do not know claimed_by leave its old value when they end a claim.
const sqliteClaimLost = `claimed_until > 0 AND claimed_by <> '' AND claimed_by <> $%d`

var postgresClaimLost = sqliteClaimLost + fmt.Sprintf(` AND claimed_by NOT IN (
		SELECT id FROM nodes WHERE seen_at > `+postgresClock+` -
			CASE WHEN hashtextextended(id, 0) IN (`+lockedNodes+`) THEN %[1]d ELSE %[2]d END
		UNION ALL SELECT '`+noLockPrefix+`' || id FROM nodes WHERE seen_at > `+postgresClock+` - %[1]d)`,
	aliveFor.Microseconds(), aliveUnlocked.Microseconds())

// keepClaimer is the value of claimed_by in a write of progress. mark is the parameter with the end
// of the claim.
func keepClaimer(mark string) string {
	return `CASE WHEN CAST(` + mark + ` AS BIGINT) = 0 THEN '' ELSE claimed_by END`
}

// releaseClaims makes due again the rows of a table that nodes that are gone had claimed.
// A row that is locked, perhaps by the frozen node itself, is left to the next call.
func (s *db) releaseClaims(ctx context.Context, table, key string) error {
	if s.claimer == "" {
		return nil // not a server
	}
	n := 0
	if _, err := one(ctx, s.eng, []any{&n}, `SELECT count(*) FROM `+table+` WHERE `+fmt.Sprintf(s.d.claimLost, 1),
		s.claimer); err != nil || n == 0 {
		return err
	}
	return s.eng.write(ctx, func(t *tx) error {
		now := t.d.clockNow(s.now)
		t.exec(fmt.Sprintf(`UPDATE %[1]s SET due_at = %[2]s, claimed_until = 0, claimed_by = ''
			WHERE (%[3]s) IN (SELECT %[3]s FROM %[1]s WHERE %[4]s%[5]s)`,
			table, now.sql, key, fmt.Sprintf(t.d.claimLost, len(now.args)+1), t.d.skipLocked),
			append(now.args, s.claimer)...)
		return nil
	})
}

// Release implements delivery.Store.
func (ds Deliveries) Release(ctx context.Context) error {
	return ds.releaseClaims(ctx, "push_configs", "org_id, uid, id")
}

// Release implements webhook.Store.
func (s Webhooks) Release(ctx context.Context) error {
	return s.releaseClaims(ctx, "webhooks", "org_id, id")
}
