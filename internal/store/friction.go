package store

import (
	"context"
	"fmt"
	"strconv"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// Friction stores friction reports.
type Friction struct{ *db }

// Friction returns the implementation of friction.Store.
func (s *Store) Friction() Friction { return Friction{s.db} }

// Report implements friction.Store. It locks the row of the fingerprint. If two reports are
// the first of a fingerprint at the same time, one fails on the primary key and runs again.
func (s Friction) Report(
	ctx context.Context, by identity.Principal, fingerprint, occurrence string, once *idempotency.Key,
	decide func(friction.Current) friction.Change,
) (friction.Outcome, error) {
	var out friction.Outcome
	err := s.eng.write(ctx, func(t *tx) error {
		out = friction.Outcome{}
		now := s.now()
		if done, err := t.replay(ctx, once, by, now, &out); done || err != nil {
			out.Replayed = true
			return err
		}
		cur, err := t.currentFriction(ctx, by, fingerprint, occurrence)
		if err != nil {
			return err
		}
		c := decide(cur)
		out = friction.Outcome{
			Friction: c.Friction, Threshold: cur.Threshold, Counted: c.Evidence != nil, Filed: c.File != nil,
		}
		t.applyFriction(&c)
		return t.remember(once, by, now, out)
	})
	return out, err
}

// currentFriction reads the state that a report is decided on.
func (t *tx) currentFriction(
	ctx context.Context, by identity.Principal, fingerprint, occurrence string,
) (cur friction.Current, err error) {
	if cur.Threshold, err = threshold(ctx, t, by.Org); err != nil {
		return cur, err
	}
	cur.Friction, err = oneFriction(ctx, t, by.Org, fingerprint, t.d.forUpdate)
	if errs.KindOf(err) == errs.NotFound {
		return cur, nil
	}
	if err != nil {
		return cur, err
	}
	if occurrence != "" {
		var seq int64
		cur.Known, err = one(ctx, t, []any{&seq}, `SELECT seq FROM friction_reports
			WHERE org_id = $1 AND fingerprint = $2 AND reporter = $3 AND occurrence = $4 AND occurrence <> ''`,
			by.Org, fingerprint, by.Ref(), occurrence)
	}
	if err == nil && cur.Friction.ProposalID == "" && !cur.Known {
		cur.Evidence, err = evidence(ctx, t, by.Org, fingerprint, "seq")
	}
	return cur, err
}

// applyFriction queues the writes of a decision. A filed proposal is written like a
// submitted one.
func (t *tx) applyFriction(c *friction.Change) {
	f, e := &c.Friction, c.Evidence
	if e == nil {
		return
	}
	if f.Count == 1 {
		t.exec(`INSERT INTO friction (`+frictionColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
			f.Org, f.Fingerprint, f.Title, f.Category, f.Problem, f.SuggestedFix, f.Priority, f.Count, f.ProposalID,
			micros(f.FirstAt), micros(f.LastAt), f.LastBy)
	} else {
		t.exec(`UPDATE friction SET title = $3, category = $4, problem = $5, suggested_fix = $6, priority = $7, reports = $8,
				proposal_id = $9, last_at = $10, last_by = $11
			WHERE org_id = $1 AND fingerprint = $2`,
			f.Org, f.Fingerprint, f.Title, f.Category, f.Problem, f.SuggestedFix, f.Priority, f.Count, f.ProposalID,
			micros(f.LastAt), f.LastBy)
	}
	t.exec(`INSERT INTO friction_reports (org_id, fingerprint, seq, reporter, occurrence, evidence, at)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		f.Org, f.Fingerprint, e.Seq, e.Reporter, e.Occurrence, e.Text, micros(e.At))
	if n := e.Seq - friction.KeepEvidence; n > 0 {
		t.exec(`UPDATE friction_reports SET evidence = ''
				WHERE org_id = $1 AND fingerprint = $2 AND seq = $3`, f.Org, f.Fingerprint, n)
	}
	if n := e.Seq - friction.KeepOccurrences; n > 0 {
		t.exec(`DELETE FROM friction_reports
				WHERE org_id = $1 AND fingerprint = $2 AND seq = $3`, f.Org, f.Fingerprint, n)
	}
	t.emitFriction(event.FrictionReported, f)
	if d := c.File; d != nil {
		t.emitFriction(event.FrictionFiled, f)
		p := proposal.Proposal{
			Org: d.Org, ID: d.ID, Title: d.Title, Category: proposal.Category(d.Category), Problem: d.Problem,
			SuggestedFix: d.SuggestedFix, Priority: proposal.Priority(d.Priority), Status: proposal.Open,
			SubmittedBy: d.By, SubmittedAt: d.At, UpdatedAt: d.At, TextVersion: 1, Version: 1,
			Fingerprint: f.Fingerprint, Evidence: f.Count,
		}
		t.insertProposal(&p, t.hooks.submission(&p))
	} else if f.ProposalID != "" {
		// This is not an edit: the version stays, so a pending decision does not conflict.
		t.exec(`UPDATE proposals SET evidence = $3 WHERE org_id = $1 AND id = $2`, f.Org, f.ProposalID, f.Count)
		t.touch(f.Org)
	}
}

const frictionColumns = `org_id, fingerprint, title, category, problem, suggested_fix, priority, reports, proposal_id,
	first_at, last_at, last_by`

func scanFriction(r rows) (f friction.Friction, err error) {
	var first, last int64
	err = r.Scan(&f.Org, &f.Fingerprint, &f.Title, &f.Category, &f.Problem, &f.SuggestedFix, &f.Priority, &f.Count,
		&f.ProposalID, &first, &last, &f.LastBy)
	f.FirstAt, f.LastAt = fromMicros(first), fromMicros(last)
	return f, err
}

func oneFriction(ctx context.Context, r reader, org, fingerprint, lock string) (f friction.Friction, err error) {
	found := false
	err = each(ctx, r, func(rs rows) (err error) {
		found = true
		f, err = scanFriction(rs)
		return err
	}, `SELECT `+frictionColumns+` FROM friction WHERE org_id = $1 AND fingerprint = $2`+lock, org, fingerprint)
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	return f, err
}

// evidence returns the reports whose evidence is kept.
func evidence(ctx context.Context, r reader, org, fingerprint, order string) ([]friction.Evidence, error) {
	list := []friction.Evidence{}
	err := each(ctx, r, func(rs rows) error {
		var e friction.Evidence
		var at int64
		err := rs.Scan(&e.Seq, &e.Reporter, &e.Occurrence, &e.Text, &at)
		e.At = fromMicros(at)
		list = append(list, e)
		return err
	}, `SELECT seq, reporter, occurrence, evidence, at FROM friction_reports WHERE org_id = $1 AND fingerprint = $2
			AND seq > (SELECT reports FROM friction WHERE org_id = $1 AND fingerprint = $2) - $3
		ORDER BY `+order, org, fingerprint, int64(friction.KeepEvidence))
	return list, err
}

// Get implements friction.Store.
func (s Friction) Get(ctx context.Context, org, fingerprint string) (friction.Friction, []friction.Evidence, error) {
	f, err := oneFriction(ctx, s.eng, org, fingerprint, "")
	if err != nil {
		return f, nil, err
	}
	list, err := evidence(ctx, s.eng, org, fingerprint, "seq DESC")
	return f, list, err
}

// List implements friction.Store.
func (s Friction) List(ctx context.Context, f friction.Filter) ([]friction.Friction, error) {
	where, args := "", []any{f.Org, f.Limit + 1}
	if p := f.After; p != nil {
		where = ` AND (last_at, fingerprint) < ($3, $4)`
		args = append(args, micros(p.LastAt), p.Fingerprint)
	}
	page := `FROM friction WHERE org_id = $1` + where + ` ORDER BY last_at DESC, fingerprint DESC LIMIT $2`
	wide, err := s.wide(ctx, `SELECT octet_length(problem) + octet_length(suggested_fix) AS n `+page, args...)
	if err != nil {
		return nil, err
	}
	list := []friction.Friction{}
	err = s.slowIf(ctx, wide, f.Org, func(ctx context.Context, r reader) error {
		return each(ctx, r, func(r rows) error {
			item, err := scanFriction(r)
			list = append(list, item)
			return err
		}, `SELECT `+frictionColumns+` `+page, args...)
	})
	return list, err
}

const frictionThreshold = "friction.threshold"

// Threshold implements friction.Store.
func (s Friction) Threshold(ctx context.Context, org string) (int, error) {
	return threshold(ctx, s.eng, org)
}

func threshold(ctx context.Context, r reader, org string) (int, error) {
	var value string
	found, err := one(ctx, r, []any{&value}, `SELECT value FROM org_settings
		WHERE org_id = $1 AND name = $2`, org, frictionThreshold)
	if err != nil || !found {
		return friction.DefaultThreshold, err
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		return 0, fmt.Errorf("read the setting %s: %w", frictionThreshold, err)
	}
	return n, nil
}

// SetThreshold implements friction.Store.
func (s Friction) SetThreshold(ctx context.Context, org string, n int, e identity.AuditEntry) error {
	return s.eng.write(ctx, func(t *tx) error {
		t.exec(`INSERT INTO org_settings (org_id, name, value) VALUES ($1, $2, $3)
			ON CONFLICT (org_id, name) DO UPDATE SET value = excluded.value`, org, frictionThreshold, strconv.Itoa(n))
		t.audit(e)
		return nil
	})
}
