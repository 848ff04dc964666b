package store

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/secret"
)

// Deliveries stores the progress of push configurations. Each one is a subscription to a
// task; the task's uid is the topic.
type Deliveries struct{ *db }

// Deliveries returns the implementation of delivery.Store.
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

// fill sets the fields of p that are stored in another form.
func (r *progressRow) fill() {
	r.p.State, r.p.DueAt = delivery.State(r.state), fromMicros(r.due)
	r.p.ClaimedUntil, r.p.LastAttemptAt = fromMicros(r.claimed), fromMicros(r.last)
}

func (x *tx) writeProgress(k delivery.Key, p *delivery.Progress) {
	x.exec(`UPDATE push_configs SET cursor = $4, state = $5, due_at = $6, claimed_until = $7, attempts = $8,
			last_error = $9, last_attempt_at = $10, claimed_by = `+keepClaimer("$7")+`
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
	// Progress also changes without commands, so a replayed command returns the current one.
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

// clockOr returns clock, the database's time, or this process's time if clock is zero. The
// result has the store's precision, because a claim is identified by its end.
func (s *db) clockOr(clock time.Time) time.Time {
	if clock.IsZero() {
		clock = s.now()
	}
	return clock.Truncate(time.Microsecond)
}

// dueKey is the key of a subscription that may be due.
type dueKey struct {
	delivery.Key
	size int64 // size of its task
}

// Claim implements delivery.Store. It looks for due rows by the sender's org on a read
// connection, so that many due rows of one org do not delay another org. The writer only
// looks up the chosen rows.
func (ds Deliveries) Claim(ctx context.Context, room delivery.Room) ([]delivery.Subscription, error) {
	orgs, err := ds.dueOrgs(ctx, &room)
	if err != nil || len(orgs) == 0 {
		return nil, err
	}
	var keys []dueKey
	share := room.Share(len(orgs))
	for _, org := range orgs[:min(len(orgs), room.Free())] {
		found, err := ds.duePushes(ctx, org, &room, share)
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

// claim queues the claim of a subscription, if it is still due and no other node works on it.
func (ds Deliveries) claim(
	ctx context.Context, x *tx, k dueKey, length time.Duration, out *[]delivery.Subscription,
) error {
	now := x.d.clockNow(ds.now)
	args := append(now.args, k.Org, k.Topic, k.ID) // now.args is not shared
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
		purpose := secret.Purpose("push_configs", k.Org, k.Topic, k.ID)
		if err := x.hooks.unsealAll(purpose, &sub.Token, &sub.Credentials); err != nil {
			// Others must not wait for it. It is tried again when a claim would end.
			x.exec(`UPDATE push_configs SET due_at = $4, last_error = $5 WHERE org_id = $1 AND uid = $2 AND id = $3`,
				k.Org, k.Topic, k.ID, micros(sub.DueAt), delivery.ErrorText(err))
			return nil
		}
		x.exec(`UPDATE push_configs SET due_at = $4, claimed_until = $4, claimed_by = $5
			WHERE org_id = $1 AND uid = $2 AND id = $3`, k.Org, k.Topic, k.ID, micros(sub.DueAt), ds.claimer)
		*out = append(*out, sub)
		return nil
	}, fmt.Sprintf(`SELECT sender_org, receiver, url, token, scheme, credentials, form, %s, %s FROM push_configs
		WHERE org_id = $%d AND uid = $%d AND id = $%d AND due_at > 0 AND due_at <= %s%s`,
		progressColumns, x.d.clock, n+1, n+2, n+3, now.sql, x.d.skipLocked), args...)
}

// dueOrgs returns the orgs that have due subscriptions and room for them. Orgs with the
// fewest slots in use on this node come first, then those that have waited longest. It reads
// the index once for each org that has pending subscriptions, due or not.
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
		if room.Left(delivery.Fast, o.org) > 0 || room.Left(delivery.Slow, o.org) > 0 {
			found = append(found, o)
		}
		return err
	}, fmt.Sprintf(dueOrgs, now.sql), now.args...)
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(room.InUse(a.org), room.InUse(b.org)), cmp.Compare(a.due, b.due))
	})
	out := make([]string, len(found))
	for i := range found {
		out[i] = found[i].org
	}
	return out, err
}

// withOrgs is a loose index scan over the orgs that have pending subscriptions, due or not:
// it jumps from one org to the next.
const withOrgs = `WITH RECURSIVE orgs (org) AS (
		SELECT org FROM (SELECT min(sender_org) AS org FROM push_configs WHERE due_at > 0) f
		UNION ALL
			SELECT (SELECT min(p.sender_org) FROM push_configs p WHERE p.due_at > 0 AND p.sender_org > orgs.org)
			FROM orgs WHERE orgs.org IS NOT NULL
	)`

const dueOrgs = withOrgs + `
	SELECT org, due FROM (
		SELECT org, (SELECT min(p.due_at) FROM push_configs p WHERE p.sender_org = orgs.org AND p.due_at > 0) AS due
		FROM orgs WHERE org IS NOT NULL
	) first WHERE due <= %s`

// pushWindow limits how many due rows of an org are read to find some whose receivers do
// not stall.
const pushWindow = 4096

// duePushes chooses due subscriptions of an org, in each lane at most its share, and reserves room
// for them. The query tells the lanes apart by failed attempts only. Subscriptions that were slow
// before are read with those of the fast lane, in addition to the others, so that they do not hide
// them. While the fast lane has no room for the org they wait, though the slow one may have some: an
// attempt leaves the fast lane after a second.
func (ds Deliveries) duePushes(
	ctx context.Context, org string, room *delivery.Room, share [2]int,
) ([]dueKey, error) {
	now := ds.d.clockNow(ds.now)
	args := append(now.args, org) // now.args is not shared
	mine := len(args)
	// In powers of two, because every number of receivers is a statement of its own in the caches of
	// the engines. No receiver is empty.
	among := func(receivers []string) string {
		marks := make([]string, 1<<bits.Len(uint(len(receivers))))
		for i := range marks {
			receiver := ""
			if i < len(receivers) {
				receiver = receivers[i]
			}
			args = append(args, receiver)
			marks[i] = fmt.Sprintf("$%d", len(args))
		}
		return "d.receiver IN (" + strings.Join(marks, ", ") + ")"
	}
	most := 0
	var lanes []string // conditions for the lanes that have room
	for pace, lane := range [...]string{delivery.Fast: "d.attempts = 0", delivery.Slow: "d.attempts > 0"} {
		n := min(share[pace], room.Left(delivery.Pace(pace), org))
		if n <= 0 {
			continue
		}
		most += n
		lanes = append(lanes, lane+" AND NOT "+among(room.Full(delivery.Pace(pace), org)))
	}
	if len(lanes) == 0 {
		return nil, nil
	}
	order := "d.due_at"
	if suspects := room.Suspects(org); len(suspects) > 0 {
		order = "CASE WHEN " + among(suspects) + " THEN 1 ELSE 0 END, " + order
	}
	limit := 8*most + 1<<bits.Len(uint(len(room.SlowBefore)))
	var out []dueKey
	err := each(ctx, ds.eng, func(r rows) error {
		k := dueKey{Key: delivery.Key{Kind: dispatch.PushKind}}
		var receiver string
		var attempts int
		if err := r.Scan(&k.Org, &k.Topic, &k.ID, &receiver, &attempts, &k.size); err != nil {
			return err
		}
		pace := room.Pace(k.Key, attempts)
		if share[pace] <= 0 {
			return nil
		}
		if _, fits := room.Take(pace, delivery.Target{Owner: org, Receiver: receiver}, k.size); fits {
			share[pace]--
			out = append(out, k)
		}
		return nil
	}, fmt.Sprintf(duePushes, mine, now.sql, pushWindow, strings.Join(lanes, " OR "), order, limit), args...)
	return out, err
}

// duePushes reads the rows of the window from the index alone.
const duePushes = `SELECT d.org_id, d.uid, d.id, d.receiver, d.attempts,
		coalesce((SELECT t.size FROM tasks t WHERE t.org_id = d.org_id AND t.uid = d.uid), 0)
	FROM (
		SELECT org_id, uid, id, receiver, attempts, due_at FROM push_configs
		WHERE sender_org = $%d AND due_at > 0 AND due_at <= %s ORDER BY due_at LIMIT %d
	) d WHERE %s ORDER BY %s LIMIT %d`

// countDue adds up the due subscriptions org by org. The index begins with the org, so
// subscriptions that are due later, possibly many more, are not read.
const countDue = withOrgs + `
	SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM (
			SELECT (
				SELECT count(*) FROM push_configs p WHERE p.sender_org = orgs.org AND p.due_at > 0 AND p.due_at <= %s
			) AS n
		FROM orgs WHERE org IS NOT NULL
	) counted`

// Count returns the number of due and of dead subscriptions. There may be many, so this is a
// slow read.
func (ds Deliveries) Count(ctx context.Context) (due, dead int64, err error) {
	now := ds.d.clockNow(ds.now)
	err = ds.stale(ctx, "", func(ctx context.Context, r reader) error {
		if _, err := one(ctx, r, []any{&due}, fmt.Sprintf(countDue, now.sql), now.args...); err != nil {
			return err
		}
		_, err := one(ctx, r, []any{&dead}, `SELECT count(*) FROM push_configs WHERE state = 'dead'`)
		return err
	})
	return due, dead, err
}
