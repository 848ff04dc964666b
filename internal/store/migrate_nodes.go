package store

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/secret"
)

// Node is a server that uses a store.
type Node struct {
	ID      string
	Host    string
	Version string
	Schema  int           // the newest that it supports; 0 if unknown
	Keys    []string      // ids of its keys for secrets; it encrypts with the first
	Seen    time.Duration // time since its last beat; 0 if it is certainly alive
}

// String describes the node for the operator.
func (n Node) String() string {
	out := n.Host
	if n.Version != "" {
		out += fmt.Sprintf(" (parley %s, seen %s ago)", n.Version, n.Seen.Round(time.Second/10))
	}
	return out
}

const (
	// aliveFor is how long a node counts as alive after its last beat. It spans many
	// beats, because a slow node must not be taken for a stopped one.
	aliveFor = 10 * time.Second
	// sweepNodes is how long the row of a vanished node is kept.
	sweepNodes = time.Hour
)

// makeNodes is for PostgreSQL only: a SQLite store has one server, which holds the lock of its
// folder.
const makeNodes = `CREATE TABLE IF NOT EXISTS nodes (
		id TEXT PRIMARY KEY, host TEXT NOT NULL, version TEXT NOT NULL, schema_number INTEGER NOT NULL,
		seen_at BIGINT NOT NULL)`

// register adds this node in the transaction that has read the schema. An incompatible
// migration that runs later sees the node; one that ran before is seen by the node.
func (d *dialect) register(m migrator, o Options, schema int) error {
	if d.makeNodes == "" {
		return nil
	}
	return m.exec(insertNode, o.Node, host(), o.Version, schema, keyIDs(o.Keys))
}

const insertNode = `INSERT INTO nodes (id, host, version, schema_number, keys, seen_at)
	VALUES ($1, $2, $3, $4, $5, ` + postgresClock + `)
	ON CONFLICT (id) DO UPDATE SET keys = excluded.keys, seen_at = excluded.seen_at`

func keyIDs(k *secret.Keyring) string { return strings.Join(k.Keys().IDs(), " ") }

func host() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown host"
	}
	return name
}

// Beat tells other processes that this node is alive. A server calls it about every second.
// It returns the migrations that a newer program has applied meanwhile. If one of them is
// incompatible, the error has the code CodeMigrated, as has every later error of the store.
func (s *Store) Beat(ctx context.Context) ([]Step, error) {
	newer, err := s.fence.look(ctx, s.eng)
	if err != nil {
		return nil, err
	}
	steps := make([]Step, len(newer))
	for i, a := range newer {
		steps[i] = a.Step
	}
	if err := s.fence.err(); err != nil || s.node == "" || s.d.makeNodes == "" {
		return steps, err
	}
	return steps, s.eng.write(ctx, func(t *tx) error {
		t.exec(insertNode, s.node, host(), s.version, s.fence.known, keyIDs(s.hooks.keys))
		t.exec(`DELETE FROM nodes WHERE seen_at < `+postgresClock+` - $1`, sweepNodes.Microseconds())
		return nil
	})
}

// leave removes this node from the nodes that use the store.
func (s *Store) leave() {
	if s.node == "" || s.d.makeNodes == "" || s.fence.err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	// If it fails, the node counts as alive for aliveFor, which is safe.
	_ = s.eng.write(ctx, func(t *tx) error {
		t.exec(`DELETE FROM nodes WHERE id = $1`, s.node)
		return nil
	})
}

// Nodes returns the servers of a PostgreSQL store that are alive.
func (s *Store) Nodes(ctx context.Context) ([]Node, error) {
	if s.d.makeNodes == "" {
		return nil, nil
	}
	var out []Node
	err := each(ctx, s.eng, func(rs rows) error {
		var n Node
		var keys string
		var ago int64
		err := rs.Scan(&n.ID, &n.Host, &n.Version, &n.Schema, &keys, &ago)
		n.Keys = strings.Fields(keys)
		n.Seen = time.Duration(ago) * time.Microsecond
		out = append(out, n)
		return err
	}, `SELECT id, host, version, schema_number, keys, ago FROM
			(SELECT id, host, version, schema_number, keys, `+postgresClock+` - seen_at AS ago FROM nodes) n
		WHERE ago < $1 ORDER BY host, id`, aliveFor.Microseconds())
	return out, err
}

// aliveNodes returns the nodes that do not support a schema.
func aliveNodes(ctx context.Context, r reader, schema int) ([]Node, error) {
	var out []Node
	err := each(ctx, r, func(rs rows) error {
		var n Node
		var ago int64
		if err := rs.Scan(&n.ID, &n.Host, &n.Version, &n.Schema, &ago); err != nil {
			return err
		}
		n.Seen = time.Duration(ago) * time.Microsecond
		out = append(out, n)
		return nil
	}, `SELECT id, host, version, schema_number, ago FROM
			(SELECT id, host, version, schema_number, `+postgresClock+` - seen_at AS ago FROM nodes) n
		WHERE schema_number < $1 AND ago < $2 ORDER BY host, id`, schema, aliveFor.Microseconds())
	return out, err
}
