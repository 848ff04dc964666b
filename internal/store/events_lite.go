package store

import "context"

// flushEvents numbers the events of a batch and queues their packs. It is the end of the writer's
// transaction, and there is no other writer: numbers are given in the order of the commits.
func (w *writer) flushEvents(t *tx) error {
	ctx := context.Background()
	for _, p := range packs(t.events) {
		var last int64
		if _, err := one(ctx, w, []any{&last},
			`INSERT INTO event_heads (org_id, seq) VALUES ($1, $2)
				ON CONFLICT (org_id) DO UPDATE SET seq = seq + excluded.seq RETURNING seq`, p.org, p.n); err != nil {
			return err
		}
		t.exec(`INSERT INTO events (org_id, last_seq, n, at, types, data) VALUES ($1, $2, $3, $4, $5, $6)`,
			p.org, last, p.n, p.at, int64(p.types), p.data.String())
	}
	return nil
}

// number implements engine. All events have numbers.
func (e *lite) number(context.Context, string) error { return nil }
