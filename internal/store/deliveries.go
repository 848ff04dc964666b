package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
)

// Deliveries keeps how far push configurations are delivered: each is a subscription to its
// task, whose uid is the topic.
type Deliveries struct{ *db }

// Deliveries returns the deliveries of the store.
func (s *Store) Deliveries() Deliveries { return Deliveries{s.db} }

const progressColumns = `cursor, head, state, due_at, claimed_until, attempts, last_error, last_attempt_at`

// progressRow reads progressColumns.
type progressRow struct {
	p                  *delivery.Progress
	state              string
	due, claimed, last int64
}

func (r *progressRow) dest() []any {
	return []any{&r.p.Cursor, &r.p.Head, &r.state, &r.due, &r.claimed, &r.p.Attempts, &r.p.LastError, &r.last}
}

// fill completes what was read.
func (r *progressRow) fill() {
	r.p.State, r.p.DueAt = delivery.State(r.state), fromMicros(r.due)
	r.p.ClaimedUntil, r.p.LastAttemptAt = fromMicros(r.claimed), fromMicros(r.last)
}

func (x *tx) writeProgress(k delivery.Key, p *delivery.Progress) {
	x.exec(`UPDATE push_configs SET cursor = $4, state = $5, due_at = $6, claimed_until = $7, attempts = $8,
			last_error = $9, last_attempt_at = $10
		WHERE org_id = $1 AND uid = $2 AND id = $3`,
		k.Org, k.Topic, k.ID, p.Cursor, string(p.State), micros(p.DueAt), micros(p.ClaimedUntil), p.Attempts,
		p.LastError, micros(p.LastAttemptAt))
}

// Update implements delivery.Store.
func (ds Deliveries) Update(
	ctx context.Context, k delivery.Key, decide func(delivery.Progress, time.Time) (delivery.Progress, error),
) (delivery.Progress, error) {
	var out delivery.Progress
	read := func(r reader, lock string) (time.Time, error) {
		var clock int64
		row := progressRow{p: &out}
		found, err := one(ctx, r, append(row.dest(), &clock), `SELECT `+progressColumns+`, `+ds.d.clock+
			` FROM push_configs WHERE org_id = $1 AND uid = $2 AND id = $3`+lock, k.Org, k.Topic, k.ID)
		row.fill()
		if err == nil && !found {
			err = errs.ErrNotFound
		}
		return fromMicros(clock), err
	}
	// The progress changes by itself, so a repeated command finds it as it is now.
	err := ds.writeOnce(ctx, new(struct{}), func(x *tx) error {
		clock, err := read(x, x.d.forUpdate)
		if err != nil {
			return err
		}
		if out, err = decide(out, ds.clockOr(clock)); err != nil {
			return err
		}
		x.writeProgress(k, &out)
		return nil
	})
	if err == nil && idempotency.From(ctx).Replayed() {
		_, err = read(ds.eng, "")
	}
	return out, err
}

// clockOr is the database's clock, or this process's if that is the one that counts,
// as exact as the store keeps times: a claim is known by its end.
func (s *db) clockOr(clock time.Time) time.Time {
	if clock.IsZero() {
		clock = s.now()
	}
	return clock.Truncate(time.Microsecond)
}

// dueKey names a subscription that may be due.
type dueKey struct {
	delivery.Key
	size int64 // of its task
}

// Claim implements delivery.Store. What is due is looked for by the sender's org, on a
// read connection: neither the due rows of a busy org nor its number of them stand in
// the way of another org's. The writer only looks up the rows that were chosen.
func (ds Deliveries) Claim(ctx context.Context, room delivery.Room) ([]delivery.Subscription, error) {
	orgs, err := ds.dueOrgs(ctx, &room)
	if err != nil || len(orgs) == 0 {
		return nil, err
	}
	var keys []dueKey
	share := max(1, room.Most/len(orgs))
	for _, org := range orgs[:min(len(orgs), room.Most)] {
		found, err := ds.duePushes(ctx, org, &room, min(share, room.Left(org)))
		if err != nil {
			return nil, err
		}
		keys = append(keys, found...)
	}
	if len(keys) == 0 {
		return nil, nil
	}
	var out []delivery.Subscription
	err = ds.eng.write(ctx, func(x *tx) error {
		out = nil
		for _, k := range keys {
			if err := ds.claim(ctx, x, k, room.Claim, &out); err != nil {
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

// claim queues the claim of a subscription, if it still is due and no other node
// is at it.
func (ds Deliveries) claim(
	ctx context.Context, x *tx, k dueKey, length time.Duration, out *[]delivery.Subscription,
) error {
	now := x.d.clockNow(ds.now)
	args := append(now.args, k.Org, k.Topic, k.ID) // args are ours
	n := len(now.args)
	return each(ctx, x, func(r rows) error {
		sub := delivery.Subscription{Key: k.Key, Size: k.size}
		var clock int64
		row := progressRow{p: &sub.Progress}
		dest := []any{&sub.Owner, &sub.Receiver, &sub.URL, &sub.Token, &sub.Scheme, &sub.Credentials, &sub.Form}
		dest = append(append(dest, row.dest()...), &clock)
		if err := r.Scan(dest...); err != nil {
			return err
		}
		row.fill()
		sub.DueAt = ds.clockOr(fromMicros(clock)).Add(length).Truncate(time.Microsecond)
		sub.ClaimedUntil = sub.DueAt
		x.writeProgress(k.Key, &sub.Progress)
		*out = append(*out, sub)
		return nil
	}, fmt.Sprintf(`SELECT sender_org, receiver, url, token, scheme, credentials, form, %s, %s FROM push_configs
		WHERE org_id = $%d AND uid = $%d AND id = $%d AND due_at > 0 AND due_at <= %s%s`,
		progressColumns, x.d.clock, n+1, n+2, n+3, now.sql, x.d.skipLocked), args...)
}

// dueOrgs lists the orgs that have something due and have room for it: those that this
// node is at least first, then the one that has waited longest. It looks into the index
// once for each org that has anything to do, now or later.
func (ds Deliveries) dueOrgs(ctx context.Context, room *delivery.Room) ([]string, error) {
	now := ds.d.clockNow(ds.now)
	type candidate struct {
		org string
		due int64
	}
	var found []candidate
	err := each(ctx, ds.eng, func(r rows) error {
		var o candidate
		err := r.Scan(&o.org, &o.due)
		if room.Left(o.org) > 0 {
			found = append(found, o)
		}
		return err
	}, fmt.Sprintf(dueOrgs, now.sql), now.args...)
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(room.Orgs[a.org].Slots, room.Orgs[b.org].Slots), cmp.Compare(a.due, b.due))
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

// duePushes chooses up to most due subscriptions of an org and takes room for them.
func (ds Deliveries) duePushes(ctx context.Context, org string, room *delivery.Room, most int) ([]dueKey, error) {
	now := ds.d.clockNow(ds.now)
	most = max(most, 0)
	args := append(now.args, org) // args are ours
	stalling, sep := "", " WHERE d.receiver NOT IN ("
	mine := len(args)
	for receiver := range room.Receivers {
		if room.Stalls(receiver) {
			args = append(args, receiver)
			stalling += fmt.Sprintf("%s$%d", sep, len(args))
			sep = ", "
		}
	}
	if stalling != "" {
		stalling += ")"
	}
	var out []dueKey
	err := each(ctx, ds.eng, func(r rows) error {
		var k dueKey
		var receiver string
		if err := r.Scan(&k.Org, &k.Topic, &k.ID, &receiver, &k.size); err != nil {
			return err
		}
		if len(out) < most && room.Take(org, receiver, k.size) {
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

// countDue sums what is due of each org, because the index begins with the org: those
// that are due later, which may be many more, are not read.
const countDue = withOrgs + `
	SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM (
		SELECT (SELECT count(*) FROM push_configs p WHERE p.sender_org = orgs.org AND p.due_at > 0 AND p.due_at <= %s) AS n
		FROM orgs WHERE org IS NOT NULL
	) counted`

// Count counts the subscriptions that are due and those that are dead. They may be many, so
// this is a slow read.
func (ds Deliveries) Count(ctx context.Context) (due, dead int64, err error) {
	now := ds.d.clockNow(ds.now)
	err = ds.slow(ctx, "", func(ctx context.Context, r reader) error {
		if _, err := one(ctx, r, []any{&due}, fmt.Sprintf(countDue, now.sql), now.args...); err != nil {
			return err
		}
		_, err := one(ctx, r, []any{&dead}, `SELECT count(*) FROM push_configs WHERE state = 'dead'`)
		return err
	})
	return due, dead, err
}
