package store

import (
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

// On PostgreSQL claims end with the session of their node, or when it has not given a sign of life
// for a while.
func TestClaimsEndWithTheNode(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	frozen := openClaims(t, Options{URL: url, Node: "frozen"})
	killed := openClaims(t, Options{URL: url, Node: "killed"})
	other := openClaims(t, Options{URL: url, Node: "other"})
	defer func() { _, _ = frozen.Close(), other.Close() }()
	for _, s := range []claims{frozen, killed, other} {
		s.claim(s.node)
	}
	other.want(3, "while all run")
	// Its row in nodes is still fresh.
	if err := killed.eng.close(); err != nil {
		t.Fatal(err)
	}
	until(t, "the claim of the killed node is released", func() bool {
		webhooks, pushes := other.claimed()
		return len(webhooks) == 2 && len(pushes) == 2
	})
	// The session of a frozen node stays open.
	other.exec(`UPDATE nodes SET seen_at = seen_at - $1 WHERE id = 'frozen'`, aliveFor.Microseconds())
	other.want(1, "when a node is frozen")
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
	if err := killed.eng.close(); err != nil {
		t.Fatal(err)
	}
	other.want(2, "while the node may be alive")
	other.exec(`UPDATE nodes SET seen_at = seen_at - $1 WHERE id = 'killed'`, aliveFor.Microseconds())
	other.want(1, "when it is gone")
}
