package store

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
)

// Exchange implements dispatch.Queue. Updates that are large, or that write more than a task and its
// log, have transactions of their own after the one that the others share with the claim.
func (ts Tasks) Exchange(
	ctx context.Context, org, agent string, updates []dispatch.Update, b dispatch.Batch, claim dispatch.Decision,
) ([]task.Change, error) {
	ups := make([]*update, len(updates))
	for i := range updates {
		ups[i] = &update{Update: &updates[i], decided: encoded(updates[i].Decide), apart: updates[i].Bytes >= wideRow}
	}
	var got claimed
	err := ts.eng.write(ctx, func(x *tx) (err error) {
		if err := ts.updateTogether(ctx, x, org, ups); err != nil {
			return err
		}
		got, err = ts.claimIn(ctx, x, org, agent, b, claim)
		return err
	})
	if err != nil && errs.KindOf(err) == errs.Unavailable && !isCode(err, "55P03") { // or one task is locked
		for _, u := range ups {
			u.Change, u.Err = task.Change{}, err
		}
		return nil, err
	}
	for _, u := range ups {
		if u.apart || err != nil {
			u.Change, u.Err = ts.Update(ctx, org, u.UID, u.Bytes, u.Decide)
		}
	}
	if err != nil { // one statement failed, which undid all of them
		return ts.Claim(ctx, org, agent, b, claim)
	}
	got.fold()
	return got.changes, nil
}

// update is an update of an exchange.
type update struct {
	*dispatch.Update
	decided decision
	apart   bool // it needs a transaction of its own
}

// updateTogether runs the updates that can share a transaction. The others are marked as apart.
func (ts Tasks) updateTogether(ctx context.Context, x *tx, org string, ups []*update) error {
	uids := make([]string, 0, len(ups))
	for _, u := range ups {
		if !u.apart {
			uids = append(uids, u.UID)
		}
	}
	rows, err := ts.currents(ctx, x, org, uids)
	if err != nil {
		return err
	}
	later := map[string]bool{} // tasks with an update that is not written yet
	for _, u := range ups {
		cur, found := rows[u.UID]
		switch {
		case u.apart, later[u.UID], cur.Task.Push, cur.Task.FollowupID != "":
			u.apart, later[u.UID] = true, true
		case !found:
			u.Change, u.Err = task.Change{}, errs.ErrNotFound
		default:
			u.Change, u.Err = x.applyTask(ctx, cur, u.decided)
			later[u.UID] = u.Err == nil
		}
	}
	return nil
}

// currents locks tasks and reads their rows.
func (ts Tasks) currents(ctx context.Context, x *tx, org string, uids []string) (map[string]task.Current, error) {
	if len(uids) == 0 {
		return nil, nil
	}
	slices.Sort(uids) // the same order everywhere, so that two transactions do not wait for each other
	out := make(map[string]task.Current, len(uids))
	list, args := marksFor(uids, org)
	err := each(ctx, x, func(r rows) error {
		cur, err := ts.scanTask(r)
		out[cur.Task.UID] = cur
		return err
	}, `SELECT `+taskColumns+`, `+x.d.clock+` FROM tasks
		WHERE org_id = $1 AND uid IN (`+list+`) ORDER BY uid`+x.d.forUpdate, args...)
	return out, err
}

// marksFor returns a list of parameters with the given values, and the arguments of a statement with
// first as $1. The number of parameters is a power of two, so that there are few statements to
// prepare; the last value is repeated.
func marksFor(values []string, first any) (list string, args []any) {
	n := 1 << bits.Len(uint(len(values)-1))
	var b strings.Builder
	args = append(make([]any, 0, n+1), first)
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d", i+2)
		args = append(args, values[min(i, len(values)-1)])
	}
	return b.String(), args
}

// claimed are the tasks of a claim, and the log of the first ones.
type claimed struct {
	changes []task.Change
	logs    map[string][]logRow // by uid
}

// claimedLogs limits how many bytes of tasks a claim reads in its transaction: SQLite has one
// writer.
const claimedLogs = 64 << 10

// claimIn claims tasks within a transaction, and reads their logs while they are small.
func (ts Tasks) claimIn(
	ctx context.Context, x *tx, org, agent string, b dispatch.Batch, decide dispatch.Decision,
) (claimed, error) {
	var out claimed
	if b.Most <= 0 {
		return out, nil
	}
	changes, err := ts.updateFound(ctx, x, b.Bytes, decide,
		x.d.queue+fmt.Sprintf(` WHERE org_id = $1 AND agent_id = $2 AND queued = 1 ORDER BY uid LIMIT %d`, b.Most),
		org, agent)
	if err != nil {
		return out, err
	}
	out.changes = changes
	var uids []string
	size := int64(0)
	for i := range changes {
		if size += changes[i].Task.Size; size > claimedLogs {
			break
		}
		uids = append(uids, changes[i].Task.UID)
	}
	if len(uids) == 0 {
		return out, nil
	}
	out.logs = make(map[string][]logRow, len(uids))
	list, args := marksFor(uids, org)
	err = each(ctx, x, func(r rows) error {
		var uid string
		var row logRow
		err := r.Scan(&uid, &row.seq, &row.at, &row.data)
		out.logs[uid] = append(out.logs[uid], row)
		return err
	}, `SELECT uid, seq, at, data FROM task_events
		WHERE org_id = $1 AND uid IN (`+list+`) ORDER BY uid, seq`, args...)
	return out, err
}

// fold adds the history to the tasks whose log was read.
func (c *claimed) fold() {
	for i := range c.changes {
		t := &c.changes[i].Task
		read := *t
		var err error
		for _, row := range c.logs[t.UID] {
			err = cmp.Or(err, fold(&read, &row, task.Content{History: true}))
		}
		if err == nil { // else the caller reads it again, and gets the error
			t.History, t.OutputModes, t.RequestMetadata = read.History, read.OutputModes, read.RequestMetadata
		}
	}
}
