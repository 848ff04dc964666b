package store

import (
	"context"
	"errors"
	"time"

	"github.com/parley-dev/parley/internal/event"
)

// maxSwept limits the packs, and roughly the events, of one transaction.
const maxSwept = 500

// Expire implements event.Store. It deletes packs whose events are all older than before.
func (s Events) Expire(ctx context.Context, before time.Time) (deleted int, _ error) {
	orgs, err := strs(ctx, s.eng, `SELECT org_id FROM event_heads h WHERE kept <= seq AND $1 > (
			SELECT at FROM events e WHERE e.org_id = h.org_id ORDER BY last_seq LIMIT 1)`+limit(100), micros(before))
	for _, org := range orgs {
		if ctx.Err() != nil {
			break
		}
		n := 0
		if failed := s.eng.write(ctx, func(t *tx) (err error) {
			n, err = t.expire(ctx, org, before)
			t.auditDeleted(ctx, org, sweptEvents, n, s.now(), before)
			return err
		}); failed != nil {
			err = errors.Join(err, failed) // and go on with the other orgs
			continue
		}
		deleted += n
	}
	return deleted, err
}

// IndexSubjects implements event.Store.
func (s Events) IndexSubjects(ctx context.Context, org string) (added int, err error) {
	h, err := s.head(ctx, org)
	if err != nil || h.indexed >= h.seq {
		return 0, err
	}
	err = s.eng.write(ctx, func(t *tx) (err error) {
		added, err = t.indexSubjects(ctx, org)
		return err
	})
	return added, err
}

// oldest calls fn for the oldest packs of an org after a number, until it has seen enough events.
// data is the expression for their text, or for what fn needs of it.
func (t *tx) oldest(ctx context.Context, org string, after int64, data string, fn func(p *storedPack) error) error {
	events := int64(0)
	err := each(ctx, t, func(r rows) error {
		var p storedPack
		if err := r.Scan(&p.last, &p.n, &p.at, &p.data); err != nil {
			return err
		}
		if events += p.n; events > maxSwept && events > p.n {
			return errEnough
		}
		return fn(&p)
	}, `SELECT last_seq, n, at, `+data+` FROM events WHERE org_id = $1 AND last_seq > $2 ORDER BY last_seq`+
		limit(maxSwept), org, after)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// subjects returns the subjects of a pack, each once.
func (p *storedPack) subjects(org string) ([]string, error) {
	var list []string
	seen := map[string]bool{}
	err := unpack(org, p, 0, func(e *event.Event) bool {
		if !seen[e.Subject] {
			seen[e.Subject] = true
			list = append(list, e.Subject)
		}
		return true
	})
	return list, err
}

// expire deletes the oldest packs of an org, and returns how many events they had.
func (t *tx) expire(ctx context.Context, org string, before time.Time) (deleted int, err error) {
	kept, indexed := int64(0), int64(0)
	// Nodes take turns, so that each event is counted once.
	if _, err := one(ctx, t, []any{&indexed}, `SELECT indexed FROM event_heads WHERE org_id = $1`+t.d.forUpdate,
		org); err != nil {
		return 0, err
	}
	err = t.oldest(ctx, org, 0, t.d.packText, func(p *storedPack) error {
		if p.at >= micros(before) {
			return errEnough
		}
		deleted, kept = deleted+int(p.n), p.last+1
		t.exec(`DELETE FROM events WHERE org_id = $1 AND last_seq = $2`, org, p.last)
		if p.last > indexed {
			return nil
		}
		subjects, err := p.subjects(org)
		if err != nil {
			return nil //nolint:nilerr // a damaged pack goes, too; its entries in the index find nothing
		}
		for _, subject := range subjects {
			t.exec(`DELETE FROM event_subjects WHERE org_id = $1 AND subject = $2 AND last_seq = $3`,
				org, subject, p.last)
		}
		return nil
	})
	if deleted > 0 {
		// What is deleted needs no index.
		t.exec(`UPDATE event_heads SET kept = $2, indexed = CASE WHEN indexed < $2 - 1 THEN $2 - 1 ELSE indexed END
			WHERE org_id = $1 AND kept < $2`, org, kept)
	}
	return deleted, err
}

// indexSubjects adds packs of one org to the index, and returns how many. Several nodes may do it
// at once. The row of the head is changed last, so that its lock is held shortly. An entry
// for a pack that another node deletes meanwhile stays, and finds nothing.
func (t *tx) indexSubjects(ctx context.Context, org string) (added int, err error) {
	var indexed int64
	if _, err := one(ctx, t, []any{&indexed}, `SELECT indexed FROM event_heads WHERE org_id = $1`, org); err != nil {
		return 0, err
	}
	before := indexed
	err = t.oldest(ctx, org, indexed, "''", func(p *storedPack) error {
		added++
		indexed = p.last
		return nil
	})
	if added > 0 {
		t.exec(t.d.addSubjects, org, before, indexed)
		t.exec(`UPDATE event_heads SET indexed = $2 WHERE org_id = $1 AND indexed < $2`, org, indexed)
	}
	return added, err
}
