package store

import (
	"context"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// Notes implements proposal.Store.
func (s Proposals) Notes(ctx context.Context, org string) ([]proposal.SavedNote, error) {
	return notesWhere(ctx, s.eng, `org_id = $1 ORDER BY title, id`, org)
}

func notesWhere(ctx context.Context, r reader, where string, args ...any) ([]proposal.SavedNote, error) {
	list := []proposal.SavedNote{}
	err := each(ctx, r, func(r rows) error {
		var n proposal.SavedNote
		var created int64
		err := r.Scan(&n.Org, &n.ID, &n.Title, &n.Text, &n.CreatedBy, &created)
		n.CreatedAt = fromMicros(created)
		list = append(list, n)
		return err
	}, `SELECT org_id, id, title, note, created_by, created_at FROM saved_notes WHERE `+where, args...)
	return list, err
}

// CreateNote implements proposal.Store.
func (s Proposals) CreateNote(
	ctx context.Context, n proposal.SavedNote, e identity.AuditEntry, most identity.Quota,
) (proposal.SavedNote, error) {
	n.CreatedAt = fromMicros(micros(n.CreatedAt)) // the stored precision
	err := s.writeOnce(ctx, &n, func(t *tx) error {
		if err := t.withinQuota(ctx, n.Org, []identity.Quota{most}, func(q identity.Quota) (int, error) {
			return countUpTo(ctx, t, q.Most, `saved_notes WHERE org_id = $1`, n.Org)
		}); err != nil {
			return err
		}
		t.exec(`INSERT INTO saved_notes (org_id, id, title, note, created_by, created_at)
			VALUES ($1, $2, $3, $4, $5, $6)`,
			n.Org, n.ID, n.Title, n.Text, n.CreatedBy, micros(n.CreatedAt))
		t.audit(e)
		return nil
	})
	return n, err
}

// DeleteNote implements proposal.Store.
func (s Proposals) DeleteNote(
	ctx context.Context, org, id string, entry func(proposal.SavedNote) identity.AuditEntry,
) (n proposal.SavedNote, err error) {
	err = s.eng.write(ctx, func(t *tx) error {
		found, err := notesWhere(ctx, t, `org_id = $1 AND id = $2`+t.d.forUpdate, org, id)
		if err == nil && len(found) == 0 {
			err = errs.ErrNotFound
		}
		if err != nil {
			return err
		}
		t.exec(`DELETE FROM saved_notes WHERE org_id = $1 AND id = $2`, org, id)
		n = found[0]
		t.audit(entry(n))
		return nil
	})
	return n, err
}
