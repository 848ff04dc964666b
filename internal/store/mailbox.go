package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
)

// Mailbox stores direct messages.
type Mailbox struct{ *db }

// Mailbox returns the implementation of dispatch.Mailbox.
func (s *Store) Mailbox() Mailbox { return Mailbox{s.db} }

// Put implements dispatch.Mailbox.
func (mb Mailbox) Put(ctx context.Context, m dispatch.DirectMessage, l dispatch.MailboxLimits) error {
	data, err := json.Marshal(m.Message)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	return mb.eng.write(ctx, func(x *tx) error {
		for _, share := range l.Shares(&m) {
			w := where{sql: `org_id = $1 AND agent_id = $2`, args: []any{m.Org, m.Agent}}
			if share.SenderOrg != "" {
				w.and(`sender_org = ?`, share.SenderOrg)
			}
			if share.Sender != "" {
				w.and(`sender = ?`, share.Sender)
			}
			n, err := countUpTo(ctx, x, share.Most, `messages WHERE `+w.sql, w.args...)
			if err != nil || n >= share.Most {
				return cmp.Or(err, share.Full())
			}
		}
		x.exec(`INSERT INTO messages (org_id, agent_id, id, sender_org, sender, at, data)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			m.Org, m.Agent, m.ID, m.From.Org, m.From.Ref(), micros(m.At), string(data))
		return nil
	})
}

// List implements dispatch.Mailbox.
func (mb Mailbox) List(ctx context.Context, org, agent string, b dispatch.Batch) ([]dispatch.DirectMessage, error) {
	var out []dispatch.DirectMessage
	size := int64(0)
	const columns = `id, sender_org, sender, at`
	query := `SELECT ` + columns + `, data FROM messages WHERE org_id = $1 AND agent_id = $2 ORDER BY id LIMIT $3`
	if b.Bytes > 0 {
		query = mb.d.within(columns, query, "id", b.Bytes)
	}
	err := each(ctx, mb.eng, func(r rows) error {
		m := dispatch.DirectMessage{Org: org, Agent: agent}
		var sender, data string
		var at int64
		if err := r.Scan(&m.ID, &m.From.Org, &sender, &at, &data); err != nil {
			return err
		}
		if size += int64(len(data)); data == "" || b.Bytes > 0 && size > b.Bytes && len(out) > 0 {
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

// Ack implements dispatch.Mailbox.
func (mb Mailbox) Ack(ctx context.Context, org, agent string, ids []string) error {
	return mb.eng.add(ctx, func(x *tx) error {
		for _, id := range ids {
			x.exec(`DELETE FROM messages WHERE org_id = $1 AND agent_id = $2 AND id = $3`, org, agent, id)
		}
		return nil
	})
}

// Sweep implements dispatch.Mailbox.
func (mb Mailbox) Sweep(ctx context.Context, before time.Time, most int) (int, error) {
	n := 0
	err := mb.eng.write(ctx, func(x *tx) error {
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
