package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/webhook"
)

// Progress implements webhook.Store.
func (s Webhooks) Progress(
	ctx context.Context, org, id string, decide func(delivery.Progress, time.Time) (delivery.Progress, error),
) (delivery.Progress, error) {
	var out delivery.Progress
	err := s.eng.write(ctx, func(t *tx) error {
		var r webhookRow
		var clock int64
		found, err := one(ctx, t, append(r.dest(), &clock), `SELECT `+webhookColumns+`, `+t.d.clock+
			` FROM webhooks w WHERE w.org_id = $1 AND w.id = $2`+t.d.forUpdate, org, id)
		if err == nil && !found {
			err = errs.ErrNotFound
		}
		if err != nil {
			return err
		}
		r.fill(s.now())
		if out, err = decide(r.progress(), s.clockOr(fromMicros(clock))); err != nil {
			return err
		}
		was := r.State
		r.set(&out)
		if a := out.Tried; a != nil {
			t.logDelivery(&r, &webhook.Delivery{
				EventID: a.EventID, Type: event.Type(a.Type), Seq: a.Seq, At: a.At, Attempt: a.Number, Latency: a.Latency,
				Status: a.Response.Status, Response: a.Response.Text, Error: a.Error, Outcome: a.Outcome,
			})
		}
		t.writeWebhookProgress(&r)
		if was == webhook.Active && r.State == webhook.Failed {
			t.emitWebhook(event.WebhookFailed, s.now(), event.System, &r.Webhook)
		}
		return nil
	})
	return out, err
}

// dueOrg is an org that has webhooks to deliver.
type dueOrg struct {
	org  string
	due  int64 // time of the first attempt; 0: none waits for its time
	news bool  // has webhooks that are behind the log
}

// Claim implements webhook.Store. Like Deliveries.Claim it chooses org by org on a read connection;
// the writer only looks up the chosen rows.
func (s Webhooks) Claim(
	ctx context.Context, room delivery.Room, news []string,
) (claimed []delivery.Subscription, left []string, err error) {
	orgs, err := s.dueOrgs(ctx, news)
	if err != nil || len(orgs) == 0 {
		return nil, nil, err
	}
	slices.SortFunc(orgs, func(a, b dueOrg) int {
		return cmp.Or(cmp.Compare(room.InUse(a.org), room.InUse(b.org)), cmp.Compare(a.due, b.due))
	})
	type key struct{ org, id string }
	var keys []key
	share := room.Share(len(orgs))
	for _, o := range orgs {
		ids, more, err := s.dueIn(ctx, o, &room, share)
		if err != nil {
			return nil, nil, err
		}
		for _, id := range ids {
			keys = append(keys, key{o.org, id})
		}
		if o.news && more {
			left = append(left, o.org)
		}
	}
	if len(keys) == 0 {
		return nil, left, nil
	}
	err = s.eng.write(ctx, func(t *tx) error {
		claimed = nil
		for _, k := range keys {
			if err := s.claim(ctx, t, k.org, k.id, room.Claim, &claimed); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return claimed, left, nil
}

// claim queues the claim of a webhook, if it is still due and no other node works on it.
func (s Webhooks) claim(
	ctx context.Context, t *tx, org, id string, length time.Duration, out *[]delivery.Subscription,
) error {
	now := t.d.clockNow(s.now)
	args := append(now.args, org, id) // now.args is not shared
	return each(ctx, t, func(rs rows) error {
		var r webhookRow
		var clock int64
		if err := rs.Scan(append(r.dest(), &clock)...); err != nil {
			return err
		}
		r.fill(s.now())
		r.due = micros(s.clockOr(fromMicros(clock)).Add(length))
		r.claimed = r.due
		t.exec(`UPDATE webhooks SET due_at = $3, claimed_until = $3, claimed_by = $4 WHERE org_id = $1 AND id = $2`,
			org, id, r.due, s.claimer)
		*out = append(*out, delivery.Subscription{
			Key: delivery.Key{Kind: webhook.Kind, Org: org, ID: id}, Owner: org, Receiver: r.Receiver(), URL: r.URL,
			Progress: r.progress(),
		})
		return nil
	}, fmt.Sprintf(`SELECT %s, %s FROM webhooks w WHERE w.org_id = $%d AND w.id = $%d AND w.state = 'active'
			AND (w.due_at > 0 AND w.due_at <= %s OR w.due_at = 0 AND w.cursor < %s)%s`,
		webhookColumns, t.d.clock, len(args)-1, len(args), now.sql, headOf, t.d.skipLocked), args...)
}

// dueOrgs returns the orgs with webhooks whose time has come, and those in news with webhooks that
// are behind the log. For the first it reads the index once for each org that has claims or failed
// attempts; idle webhooks are not read.
func (s Webhooks) dueOrgs(ctx context.Context, news []string) ([]dueOrg, error) {
	now := s.d.clockNow(s.now)
	found := map[string]*dueOrg{}
	err := each(ctx, s.eng, func(r rows) error {
		var o dueOrg
		err := r.Scan(&o.org, &o.due)
		found[o.org] = &o
		return err
	}, fmt.Sprintf(dueWebhookOrgs, now.sql), now.args...)
	for len(news) > 0 && err == nil {
		some := news[:min(len(news), maxNewsOrgs)]
		news = news[len(some):]
		marks, args := make([]string, len(some)), make([]any, len(some))
		for i, org := range some {
			marks[i], args[i] = fmt.Sprintf("$%d", i+1), org
		}
		err = each(ctx, s.eng, func(r rows) error {
			var org string
			err := r.Scan(&org)
			if found[org] == nil {
				found[org] = &dueOrg{org: org}
			}
			found[org].news = true
			return err
		}, `SELECT DISTINCT w.org_id FROM webhooks w
			WHERE w.org_id IN (`+strings.Join(marks, ", ")+`) AND `+isBehind, args...)
	}
	out := make([]dueOrg, 0, len(found))
	for _, o := range found {
		out = append(out, *o)
	}
	return out, err
}

// maxNewsOrgs limits the parameters of a query.
const maxNewsOrgs = 500

// isBehind is the condition that a webhook w is idle although there are events after its cursor. It
// matches the index webhooks_idle.
const isBehind = `w.state = 'active' AND w.due_at = 0 AND w.cursor < ` + headOf

// dueWebhookOrgs is dueOrgs for webhooks.
const dueWebhookOrgs = `WITH RECURSIVE orgs (org) AS (
		SELECT org FROM (SELECT min(org_id) AS org FROM webhooks WHERE due_at > 0) f
		UNION ALL
			SELECT (SELECT min(w.org_id) FROM webhooks w WHERE w.due_at > 0 AND w.org_id > orgs.org)
			FROM orgs WHERE orgs.org IS NOT NULL
	)
	SELECT org, due FROM (
		SELECT org, (SELECT min(w.due_at) FROM webhooks w WHERE w.org_id = orgs.org AND w.due_at > 0) AS due
		FROM orgs WHERE org IS NOT NULL
	) first WHERE due <= %s`

// dueIn chooses due webhooks of an org, in each lane at most its share, and reserves room for them.
// more reports whether there are others.
func (s Webhooks) dueIn(
	ctx context.Context, o dueOrg, room *delivery.Room, share [2]int,
) (ids []string, more bool, err error) {
	if room.Left(delivery.Fast, o.org) <= 0 && room.Left(delivery.Slow, o.org) <= 0 {
		return nil, true, nil
	}
	var found, suspects []dueWebhook
	read := func(r rows) error {
		w := dueWebhook{target: delivery.Target{Owner: o.org}}
		err := r.Scan(&w.id, &w.target.Receiver, &w.attempts)
		if room.Suspect(w.target) {
			suspects = append(suspects, w)
		} else {
			found = append(found, w)
		}
		return err
	}
	if o.news {
		err = each(ctx, s.eng, read, `SELECT w.id, w.receiver, w.attempts FROM webhooks w
			WHERE w.org_id = $1 AND `+isBehind+` ORDER BY w.cursor`+limit(pushWindow), o.org)
	}
	if o.due > 0 && err == nil {
		now := s.d.clockNow(s.now)
		args := append(now.args, o.org) // now.args is not shared
		err = each(ctx, s.eng, read, fmt.Sprintf(`SELECT id, receiver, attempts FROM webhooks
			WHERE org_id = $%d AND due_at > 0 AND due_at <= %s ORDER BY due_at`+limit(pushWindow),
			len(args), now.sql), args...)
	}
	for _, w := range append(found, suspects...) {
		pace := room.Pace(delivery.Key{Kind: webhook.Kind, Org: o.org, ID: w.id}, w.attempts)
		fits := share[pace] > 0
		if fits {
			_, fits = room.Take(pace, w.target, 0)
		}
		if fits {
			share[pace]--
			ids = append(ids, w.id)
		}
		more = more || !fits
	}
	return ids, more, err
}

// dueWebhook is a webhook that can be claimed.
type dueWebhook struct {
	id       string
	target   delivery.Target
	attempts int
}

// Behind implements webhook.Store. It reads the index of all idle webhooks.
func (s Webhooks) Behind(ctx context.Context) (out webhook.Behind, err error) {
	now := s.d.clockNow(s.now)
	if _, err = one(ctx, s.eng, []any{&out.Due}, `SELECT count(*) FROM webhooks
		WHERE due_at > 0 AND due_at <= `+now.sql, now.args...); err != nil {
		return out, err
	}
	if _, err = one(ctx, s.eng, []any{&out.Failed}, `SELECT count(*) FROM webhooks WHERE state = 'failed'`); err != nil {
		return out, err
	}
	err = each(ctx, s.eng, func(r rows) error {
		var org string
		var n int64
		err := r.Scan(&org, &n)
		out.Orgs, out.Due = append(out.Orgs, org), out.Due+n
		return err
	}, `SELECT w.org_id, count(*) FROM webhooks w WHERE `+isBehind+` GROUP BY w.org_id`)
	return out, err
}
