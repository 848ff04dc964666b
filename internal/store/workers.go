package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// SeeWorker implements task.Store.
func (s *Store) SeeWorker(ctx context.Context, w task.Worker, limit int) error {
	write := s.eng.add
	if limit > 0 {
		write = s.eng.write
	}
	return write(ctx, func(x *tx) error {
		if limit > 0 {
			if err := x.roomForWorker(ctx, w, limit); err != nil {
				return err
			}
		}
		x.exec(`INSERT INTO workers (org_id, agent_id, name, capacity, seen_at) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (org_id, agent_id, name) DO UPDATE SET capacity = excluded.capacity, seen_at = excluded.seen_at`,
			w.Org, w.Agent, w.Name, w.Capacity, micros(w.SeenAt))
		return nil
	})
}

// Workers implements task.Store.
func (s *Store) Workers(ctx context.Context, org, agent string, most int) ([]task.Worker, error) {
	var out []task.Worker
	err := each(ctx, s.eng, func(r rows) error {
		w := task.Worker{Org: org, Agent: agent}
		var seen int64
		err := r.Scan(&w.Name, &w.Capacity, &seen)
		w.SeenAt = fromMicros(seen)
		out = append(out, w)
		return err
	}, `SELECT name, capacity, seen_at FROM workers WHERE org_id = $1 AND agent_id = $2 ORDER BY seen_at DESC, name LIMIT $3`, org, agent, most)
	return out, err
}

// LastSeen implements task.Store.
func (s *Store) LastSeen(ctx context.Context, org string, agents []string) (map[string]time.Time, error) {
	out := map[string]time.Time{}
	for part := range slices.Chunk(agents, maxMarks) {
		marks, args := make([]string, len(part)), []any{org}
		for i, id := range part {
			args = append(args, id)
			marks[i] = "$" + strconv.Itoa(len(args))
		}
		err := each(ctx, s.eng, func(r rows) error {
			var id string
			var seen int64
			err := r.Scan(&id, &seen)
			out[id] = fromMicros(seen)
			return err
		}, `SELECT agent_id, max(seen_at) FROM workers WHERE org_id = $1 AND agent_id IN (`+strings.Join(marks, ", ")+`) GROUP BY agent_id`, args...)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// maxMarks is how many parameters a list of a statement has; engines bound them.
const maxMarks = 1000

// roomForWorker refuses a new worker of an agent that has enough, unless some of them
// are silent for long: these are deleted.
func (x *tx) roomForWorker(ctx context.Context, w task.Worker, limit int) error {
	known, err := x.exists(ctx, `SELECT 1 FROM workers WHERE org_id = $1 AND agent_id = $2 AND name = $3`, w.Org, w.Agent, w.Name)
	if err != nil || known {
		return err
	}
	const ofAgent = `workers WHERE org_id = $1 AND agent_id = $2`
	n, err := countUpTo(ctx, x, limit, ofAgent, w.Org, w.Agent)
	if err != nil || n < limit {
		return err
	}
	old := micros(w.SeenAt.Add(-task.ForgetWorkers))
	if n, err = countUpTo(ctx, x, limit, ofAgent+` AND seen_at >= $3`, w.Org, w.Agent, old); err != nil || n >= limit {
		return cmp.Or(err, task.TooManyWorkers(limit))
	}
	x.exec(`DELETE FROM `+ofAgent+` AND seen_at < $3`, w.Org, w.Agent, old)
	return nil
}

// ForgetWorker implements task.Store.
func (s *Store) ForgetWorker(ctx context.Context, w task.Worker) error {
	return s.eng.add(ctx, func(x *tx) error {
		x.exec(`DELETE FROM workers WHERE org_id = $1 AND agent_id = $2 AND name = $3`, w.Org, w.Agent, w.Name)
		return nil
	})
}

// Loads implements task.Store.
func (s *Store) Loads(ctx context.Context, since time.Time) (map[task.AgentKey]task.Load, error) {
	out := map[task.AgentKey]task.Load{}
	sum := func(set func(l *task.Load, n int), sql string, args ...any) error {
		return each(ctx, s.eng, func(r rows) error {
			var k task.AgentKey
			var n int64
			err := r.Scan(&k.Org, &k.ID, &n)
			l := out[k]
			set(&l, int(n))
			out[k] = l
			return err
		}, sql, args...)
	}
	err := sum(func(l *task.Load, n int) { l.Capacity = n },
		`SELECT org_id, agent_id, CAST(sum(capacity) AS BIGINT) FROM workers WHERE seen_at > $1 GROUP BY org_id, agent_id`, micros(since))
	if err != nil {
		return nil, err
	}
	return out, sum(func(l *task.Load, n int) { l.Leased = n },
		`SELECT org_id, agent_id, count(*) FROM tasks WHERE lease_expires > 0 GROUP BY org_id, agent_id`)
}

// PutMessage implements task.Store.
func (s *Store) PutMessage(ctx context.Context, m task.DirectMessage, b task.Mailbox) error {
	data, err := json.Marshal(m.Message)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	return s.eng.write(ctx, func(x *tx) error {
		for _, share := range b.Shares(&m) {
			w := where{sql: `org_id = $1 AND agent_id = $2`, args: []any{m.Org, m.Agent}}
			if share.SenderOrg != "" {
				w.and(`sender_org = ?`, share.SenderOrg)
			}
			if share.Sender != "" {
				w.and(`sender = ?`, share.Sender)
			}
			if n, err := countUpTo(ctx, x, share.Most, `messages WHERE `+w.sql, w.args...); err != nil || n >= share.Most {
				return cmp.Or(err, share.Full())
			}
		}
		x.exec(`INSERT INTO messages (org_id, agent_id, id, sender_org, sender, at, data) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			m.Org, m.Agent, m.ID, m.From.Org, m.From.Ref(), micros(m.At), string(data))
		return nil
	})
}

// Messages implements task.Store.
func (s *Store) Messages(ctx context.Context, org, agent string, b task.Batch) ([]task.DirectMessage, error) {
	var out []task.DirectMessage
	size := int64(0)
	const columns = `id, sender_org, sender, at, data`
	query := `SELECT ` + columns + ` FROM messages WHERE org_id = $1 AND agent_id = $2 ORDER BY id LIMIT $3`
	if b.Bytes > 0 {
		query = s.d.within(columns, query, "id", b.Bytes)
	}
	err := each(ctx, s.eng, func(r rows) error {
		m := task.DirectMessage{Org: org, Agent: agent}
		var sender, data string
		var at int64
		if err := r.Scan(&m.ID, &m.From.Org, &sender, &at, &data); err != nil {
			return err
		}
		if size += int64(len(data)); b.Bytes > 0 && size > b.Bytes && len(out) > 0 {
			return errEnough
		}
		kind, id, _ := strings.Cut(sender, ":")
		m.From.Kind, m.From.ID, m.At = identity.Kind(kind), id, fromMicros(at)
		out = append(out, m)
		if err := json.Unmarshal([]byte(data), &out[len(out)-1].Message); err != nil {
			return fmt.Errorf("decode a message: %w", err)
		}
		return nil
	}, query, org, agent, b.Most)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return out, err
}

// AckMessages implements task.Store.
func (s *Store) AckMessages(ctx context.Context, org, agent string, ids []string) error {
	return s.eng.add(ctx, func(x *tx) error {
		for _, id := range ids {
			x.exec(`DELETE FROM messages WHERE org_id = $1 AND agent_id = $2 AND id = $3`, org, agent, id)
		}
		return nil
	})
}

// SweepMessages implements task.Store.
func (s *Store) SweepMessages(ctx context.Context, before time.Time, most int) (int, error) {
	n := 0
	err := s.eng.write(ctx, func(x *tx) error {
		n = 0
		return each(ctx, x, func(r rows) error {
			var org, agent, id string
			if err := r.Scan(&org, &agent, &id); err != nil {
				return err
			}
			n++
			x.exec(`DELETE FROM messages WHERE org_id = $1 AND agent_id = $2 AND id = $3`, org, agent, id)
			return nil
		}, `SELECT org_id, agent_id, id FROM messages WHERE at < $1 ORDER BY at LIMIT $2`, micros(before), most)
	})
	return n, err
}
