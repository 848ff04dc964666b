package store

import (
	"slices"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/pgtest"
)

// claims is a store of a node that claims deliveries.
type claims struct {
	*testing.T
	*Store
}

func openClaims(t *testing.T, o Options) claims {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return claims{t, s}
}

func (c claims) exec(sql string, args ...any) {
	c.Helper()
	if err := c.eng.write(c.Context(), func(x *tx) error {
		x.exec(sql, args...)
		return nil
	}); err != nil {
		c.Fatal(err)
	}
}

// claim makes a webhook and a push configuration that this node has claimed for an hour.
func (c claims) claim(id string) {
	c.Helper()
	until := micros(time.Now().Add(time.Hour))
	c.exec(`INSERT INTO webhooks (org_id, id, url, receiver, types, categories, priorities, description, state, format,
			secret, private_key, public_key, created_at, updated_at, created_by, version, cursor, due_at, claimed_until,
			claimed_by)
		VALUES ('acme', $1, '', '', '', '', '', '', 'active', '', '', '', '', 0, 0, '', 1, 0, $2, $2, $3)`,
		id, until, c.claimer)
	c.exec(`INSERT INTO push_configs (org_id, uid, id, url, receiver, token, scheme, credentials, form, created_at,
			sender_org, sender, cursor, head, state, due_at, claimed_until, claimed_by)
		VALUES ('acme', 'u', $1, '', '', '', '', '', '', 0, 'acme', '', 0, 1, 'active', $2, $2, $3)`,
		id, until, c.claimer)
}

// claimed returns which rows are claimed, after this node released what was lost.
func (c claims) claimed() (webhooks, pushes []string) {
	c.Helper()
	for table, out := range map[string]*[]string{"webhooks": &webhooks, "push_configs": &pushes} {
		err := c.Webhooks().Release(c.Context())
		if err == nil {
			err = c.Deliveries().Release(c.Context())
		}
		if err == nil {
			err = each(c.Context(), c.eng, func(r rows) error {
				var id, by string
				var due, until int64
				err := r.Scan(&id, &due, &until, &by)
				switch held := until > 0; {
				case held != (by != "") || held != (due > micros(time.Now().Add(time.Minute))):
					c.Errorf("%s of %s: due at %d, claimed until %d by %q; want a claim or none", id, table, due, until, by)
				case held:
					*out = append(*out, id)
				}
				return err
			}, `SELECT id, due_at, claimed_until, claimed_by FROM `+table+` ORDER BY id`)
		}
		if err != nil {
			c.Fatal(err)
		}
	}
	return webhooks, pushes
}

func (c claims) want(n int, when string) {
	c.Helper()
	if webhooks, pushes := c.claimed(); len(webhooks) != n || len(pushes) != n {
		c.Errorf("%s: claimed webhooks %v and pushes %v, want %d of each", when, webhooks, pushes, n)
	}
}

// A SQLite store has one server: what an earlier one had claimed is due at the start of the next.
func TestClaimsEndWithTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openClaims(t, Options{Dir: dir, Node: "one"})
	s.claim("a")
	s.want(1, "while the node runs")
	if err := s.eng.close(); err != nil { // as after a crash: nothing is released
		t.Fatal(err)
	}
	command := openClaims(t, Options{Dir: dir})
	command.want(1, "for a command")
	if err := command.Close(); err != nil {
		t.Fatal(err)
	}
	next := openClaims(t, Options{Dir: dir, Node: "two"})
	defer func() { _ = next.Close() }()
	next.claim("b")
	next.want(1, "after the restart")
}

// An older program that ends a claim leaves claimed_by as it is. The time of its next attempt stays.
func TestClaimsThatOlderProgramsEndedAreNotReleased(t *testing.T) {
	t.Parallel()
	s := openClaims(t, Options{Dir: t.TempDir(), Node: "one"})
	defer func() { _ = s.Close() }()
	s.claim("a")
	next := micros(time.Now().Add(time.Hour))
	for _, table := range []string{"webhooks", "push_configs"} {
		s.exec(`UPDATE `+table+` SET claimed_by = 'gone', claimed_until = 0, due_at = $1`, next)
	}
	if err := s.Webhooks().Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Deliveries().Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"webhooks", "push_configs"} {
		var due int64
		if _, err := one(t.Context(), s.eng, []any{&due}, `SELECT due_at FROM `+table); err != nil || due != next {
			t.Errorf("%s: due at %d, %v; want %d", table, due, err, next)
		}
	}
}

// seen makes the last beat of a node this long ago. These tests do not beat, so one in the future is
// never too old, however slow the machine is.
func (c claims) seen(node string, ago time.Duration) {
	c.Helper()
	c.exec(`UPDATE nodes SET seen_at = `+postgresClock+` - $1 WHERE id = $2`, ago.Microseconds(), node)
}

// keeps waits until a node keeps its claims although its last beat was this long ago. If the machine
// is so slow that the beat becomes too old meanwhile, the node claims again.
func (c claims) keeps(node string, ago time.Duration) {
	c.Helper()
	until(c.T, node+" keeps its claims", func() bool {
		for _, table := range []string{"webhooks", "push_configs"} {
			c.exec(`UPDATE `+table+` SET due_at = $1, claimed_until = $1, claimed_by = $2 WHERE id = $2`,
				micros(time.Now().Add(time.Hour)), node)
		}
		c.seen(node, ago)
		webhooks, pushes := c.claimed()
		return slices.Contains(webhooks, node) && slices.Contains(pushes, node)
	})
}

// locked reports whether a session holds the advisory lock of a node.
func (c claims) locked(node string) bool {
	c.Helper()
	var held bool
	if _, err := one(c.Context(), c.eng, []any{&held}, `SELECT hashtextextended($1, 0) IN (`+lockedNodes+`)`,
		node); err != nil {
		c.Fatal(err)
	}
	return held
}

const inFuture = -time.Hour

// On PostgreSQL claims end soon after the session of their node, or when it has not given a sign of
// life for a while.
func TestClaimsEndWithTheNode(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	frozen := openClaims(t, Options{URL: url, Node: "frozen"})
	killed := openClaims(t, Options{URL: url, Node: "killed"})
	other := openClaims(t, Options{URL: url, Node: "other"})
	defer func() { _, _ = frozen.Close(), other.Close() }()
	for _, s := range []claims{frozen, killed, other} {
		s.claim(s.node)
		s.seen(s.node, inFuture)
	}
	other.want(3, "while all run")
	if err := killed.eng.close(); err != nil {
		t.Fatal(err)
	}
	until(t, "the session of the killed node ends", func() bool { return !other.locked("killed") })
	other.want(3, "while the node may be connecting again")
	other.seen("killed", aliveUnlocked)
	other.want(2, "when it is gone")
	// The session of a frozen node stays open.
	other.seen("frozen", aliveFor)
	other.want(1, "when a node is frozen")
	other.keeps("frozen", aliveUnlocked)
	other.keeps("killed", time.Second)
}

// A restart of PostgreSQL ends the sessions of all nodes. They keep their claims, and take their locks
// again.
func TestClaimsOutliveASession(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	live := openClaims(t, Options{URL: url, Node: "live"})
	other := openClaims(t, Options{URL: url, Node: "other"})
	defer func() { _, _ = live.Close(), other.Close() }()
	live.claim("live")
	live.seen("live", inFuture)
	for range 3 {
		var ended bool // after at most ten seconds
		if _, err := one(t.Context(), other.eng, []any{&ended}, `SELECT pg_terminate_backend(pid, 10000) FROM pg_locks
			WHERE locktype = 'advisory' AND objsubid = 1
				AND ((CAST(classid AS BIGINT) << 32) | CAST(objid AS BIGINT)) = hashtextextended('live', 0)
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`); err != nil || !ended {
			t.Fatalf("the session of the node ended: %v, %v", ended, err)
		}
		other.want(1, "after its session ended")
		until(t, "the node holds its lock again", func() bool { return other.locked("live") })
	}
	other.want(1, "when it is connected again")
}

// Behind a pooler a session does not belong to a node, so only the beats count.
func TestClaimsBehindAPoolerEndWithTheBeats(t *testing.T) {
	t.Parallel()
	url := pgtest.StartPooler(t, pgtest.URL(t)).URL(t, pgtest.URL(t))
	killed := openClaims(t, Options{URL: url, Node: "killed"})
	other := openClaims(t, Options{URL: url, Node: "other"})
	defer func() { _ = other.Close() }()
	killed.claim("killed")
	other.claim("other")
	other.seen("killed", inFuture)
	if err := killed.eng.close(); err != nil {
		t.Fatal(err)
	}
	other.want(2, "while the node may be alive")
	other.seen("killed", aliveFor)
	other.want(1, "when it is gone")
}

// A row that a frozen node has locked does not keep the others from being released.
func TestALockedClaimDelaysNoOther(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := openClaims(t, Options{URL: url, Node: "one"})
	defer func() { _ = s.Close() }()
	for _, id := range []string{"a", "b", "c"} {
		s.claim(id)
	}
	for _, table := range []string{"webhooks", "push_configs"} {
		s.exec(`UPDATE ` + table + ` SET claimed_by = 'gone'`)
	}
	conn := connect(t, url)
	mustExec(t, conn, "BEGIN")
	for _, table := range []string{"webhooks", "push_configs"} {
		mustExec(t, conn, "SELECT 1 FROM "+table+" WHERE id = 'b' FOR UPDATE")
	}
	s.want(1, "while a row is locked")
	mustExec(t, conn, "ROLLBACK")
	s.want(0, "after the lock")
}

// PostgreSQL ends a transaction whose process is frozen, so that its locks do not stay.
func TestFrozenTransactionsEnd(t *testing.T) {
	t.Parallel()
	s := openFor(t, Options{URL: pgtest.URL(t)})
	for name, r := range map[string]reader{"pool": s.eng, "slow pool": s.eng.slow()} {
		var limit string
		_, err := one(t.Context(), r, []any{&limit}, `SELECT current_setting('idle_in_transaction_session_timeout')`)
		if err != nil || limit != "5s" {
			t.Errorf("%s: the limit is %q, %v; want 5s", name, limit, err)
		}
	}
}
