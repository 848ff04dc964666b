package store

import "context"

// flushEvents numbers the events of a batch and queues their packs. It is the end of the writer's
// transaction, and there is no other writer: numbers are given in the order of the commits.
func (w *writer) flushEvents(t *tx) error {
	if len(t.events) == 0 {
		return nil
	}
	all := packs(t.events)
	ends := map[string]int64{} // by org: the number of its events, then the last number that was given
	for _, p := range all {
		ends[p.org] += p.n
	}
	for org, n := range ends {
		var last int64
		if _, err := one(context.Background(), w, []any{&last}, `INSERT INTO event_heads (org_id, seq) VALUES ($1, $2)
			ON CONFLICT (org_id) DO UPDATE SET seq = seq + excluded.seq RETURNING seq`, org, n); err != nil {
			return err
		}
		ends[org] = last - n
	}
	for _, p := range all {
		ends[p.org] += p.n
		t.exec(`INSERT INTO events (org_id, last_seq, n, at, types, data) VALUES ($1, $2, $3, $4, $5, $6)`,
			p.org, ends[p.org], p.n, p.at, int64(p.types), p.data())
	}
	return nil
}

// number implements engine. All events have numbers.
func (e *lite) number(context.Context, string) error { return nil }
