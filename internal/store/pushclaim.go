package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/task"
)

// pushKey names a push configuration that may be due.
type pushKey struct {
	org, uid, id string
	size         int64 // of its task
}

// ClaimPushes implements task.Store. What is due is looked for by the sender's org, on a
// read connection: neither the due rows of a busy org nor its number of them stand in
// the way of another org's. The writer only looks up the rows that were chosen.
func (s *Store) ClaimPushes(ctx context.Context, c task.PushClaim) ([]task.Push, error) {
	orgs, err := s.dueOrgs(ctx, &c)
	if err != nil || len(orgs) == 0 {
		return nil, err
	}
	var keys []pushKey
	share := max(1, c.Most/len(orgs))
	for _, org := range orgs[:min(len(orgs), c.Most)] {
		found, err := s.duePushes(ctx, org, &c, min(share, c.Room(org)))
		if err != nil {
			return nil, err
		}
		keys = append(keys, found...)
	}
	if len(keys) == 0 {
		return nil, nil
	}
	var out []task.Push
	err = s.eng.write(ctx, func(x *tx) error {
		out = nil
		for _, k := range keys {
			if err := s.claimPush(ctx, x, k, c.Length, &out); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// claimPush queues the claim of a configuration, if it still is due and no other node
// is at it.
func (s *Store) claimPush(ctx context.Context, x *tx, k pushKey, length time.Duration, out *[]task.Push) error {
	now := x.d.clockNow(s.now)
	args := append(now.args, k.org, k.uid, k.id) // args are ours
	n := len(now.args)
	return each(ctx, x, func(r rows) error {
		p, clock, err := scanPush(r)
		if err != nil {
			return err
		}
		p.Size = k.size
		p.DueAt = s.clockOr(clock).Add(length).Truncate(time.Microsecond)
		p.ClaimedUntil = p.DueAt
		x.writePush(&p)
		*out = append(*out, p)
		return nil
	}, fmt.Sprintf(`SELECT %s, %s FROM push_configs WHERE org_id = $%d AND uid = $%d AND id = $%d AND due_at > 0 AND due_at <= %s%s`,
		pushColumns, x.d.clock, n+1, n+2, n+3, now.sql, x.d.skipLocked), args...)
}

// dueOrgs lists the orgs that have something due and have room for it: those that this
// node is at least first, then the one that has waited longest. It looks into the index
// once for each org that has anything to do, now or later.
func (s *Store) dueOrgs(ctx context.Context, c *task.PushClaim) ([]string, error) {
	now := s.d.clockNow(s.now)
	type candidate struct {
		org string
		due int64
	}
	var found []candidate
	err := each(ctx, s.eng, func(r rows) error {
		var o candidate
		err := r.Scan(&o.org, &o.due)
		if c.Room(o.org) > 0 {
			found = append(found, o)
		}
		return err
	}, fmt.Sprintf(dueOrgs, now.sql), now.args...)
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(c.Orgs[a.org].Slots, c.Orgs[b.org].Slots), cmp.Compare(a.due, b.due))
	})
	out := make([]string, len(found))
	for i := range found {
		out[i] = found[i].org
	}
	return out, err
}

// withOrgs is a loose index scan over the orgs that have anything to push, now or later:
// from one org straight to the next.
const withOrgs = `WITH RECURSIVE orgs (org) AS (
		SELECT org FROM (SELECT min(sender_org) AS org FROM push_configs WHERE due_at > 0) f
		UNION ALL
		SELECT (SELECT min(p.sender_org) FROM push_configs p WHERE p.due_at > 0 AND p.sender_org > orgs.org) FROM orgs WHERE orgs.org IS NOT NULL
	)`

const dueOrgs = withOrgs + `
	SELECT org, due FROM (
		SELECT org, (SELECT min(p.due_at) FROM push_configs p WHERE p.sender_org = orgs.org AND p.due_at > 0) AS due
		FROM orgs WHERE org IS NOT NULL
	) first WHERE due <= %s`

// pushWindow bounds how many due rows of an org are looked at to find some whose
// receivers do not stall.
const pushWindow = 4096

// duePushes chooses up to most due configurations of an org and takes room for them.
func (s *Store) duePushes(ctx context.Context, org string, c *task.PushClaim, most int) ([]pushKey, error) {
	now := s.d.clockNow(s.now)
	most = max(most, 0)
	args := append(now.args, org) // args are ours
	stalling, sep := "", " WHERE d.receiver NOT IN ("
	mine := len(args)
	for receiver := range c.Receivers {
		if c.Stalls(receiver) {
			args = append(args, receiver)
			stalling += fmt.Sprintf("%s$%d", sep, len(args))
			sep = ", "
		}
	}
	if stalling != "" {
		stalling += ")"
	}
	var out []pushKey
	err := each(ctx, s.eng, func(r rows) error {
		var k pushKey
		p := task.Push{SenderOrg: org}
		if err := r.Scan(&k.org, &k.uid, &k.id, &p.URL, &k.size); err != nil {
			return err
		}
		if p.Size = k.size; len(out) < most && c.Take(&p) {
			out = append(out, k)
		}
		return nil
	}, fmt.Sprintf(duePushes, mine, now.sql, pushWindow, stalling, 8*most), args...)
	return out, err
}

// duePushes reads the index alone for the rows of the window.
const duePushes = `SELECT d.org_id, d.uid, d.id, d.receiver,
		coalesce((SELECT t.size FROM tasks t WHERE t.org_id = d.org_id AND t.uid = d.uid), 0)
	FROM (
		SELECT org_id, uid, id, receiver, due_at FROM push_configs
		WHERE sender_org = $%d AND due_at > 0 AND due_at <= %s ORDER BY due_at LIMIT %d
	) d%s ORDER BY d.due_at LIMIT %d`
