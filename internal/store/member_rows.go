package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/proposal"
)

// wipedTable is a table whose rows can name a user in columns that Parley writes.
type wipedTable struct {
	name    string
	of      string       // condition for the rows to read; $1 is the org
	key     []copyColumn // orders the rows for which the condition holds
	columns []string
	// change replaces the user in the values of the columns, and reports whether the row is not worth a
	// change and goes.
	change func(w *wipe, values []string) (gone bool)
	// apply queues the change of a row, if it is not an UPDATE of the columns.
	apply func(ctx context.Context, t *tx, w *wipe, r *wipedRow) error
}

// wipedRow is a row that names the user.
type wipedRow struct {
	key     []any
	was, is []string // values of the columns
	gone    bool
}

// texts returns columns with texts.
func texts(names ...string) []copyColumn {
	out := make([]copyColumn, len(names))
	for i, name := range names {
		out[i].name = name
	}
	return out
}

// wipedTables are in the order in which they are changed.
var wipedTables = []wipedTable{
	{name: "proposals", of: ofOrg, key: texts("id"), columns: []string{"submitted_by"}, change: (*wipe).whole},
	{
		name: "votes", of: ofOrg, key: texts("proposal_id", "voter"), columns: []string{"voter"}, change: (*wipe).whole,
		apply: moveVote,
	},
	{
		name: "history", of: ofOrg, key: []copyColumn{{"proposal_id", false}, {"seq", true}},
		columns: []string{"actor", "data"}, change: (*wipe).history,
	},
	{name: "followups", of: ofOrg, key: texts("id"), columns: []string{"assignee", "created_by"}, change: (*wipe).whole},
	{name: "friction", of: ofOrg, key: texts("fingerprint"), columns: []string{"last_by"}, change: (*wipe).whole},
	{
		name: "friction_reports", of: ofOrg, key: []copyColumn{{"fingerprint", false}, {"seq", true}},
		columns: []string{"reporter"}, change: (*wipe).whole, apply: moveReport,
	},
	{name: "saved_notes", of: ofOrg, key: texts("id"), columns: []string{"created_by"}, change: (*wipe).whole},
	{name: "keys", of: ofOrg, key: texts("id"), columns: []string{"created_by"}, change: (*wipe).whole},
	{name: "invitations", of: ofOrg, key: texts("id"), columns: []string{"created_by"}, change: (*wipe).whole},
	{name: "login_links", of: ofOrg, key: texts("hash"), columns: []string{"created_by"}, change: (*wipe).whole},
	{name: "oauth_clients", of: ofOrg, key: texts("id"), columns: []string{"created_by"}, change: (*wipe).whole},
	{name: "webhooks", of: ofOrg, key: texts("id"), columns: []string{"created_by"}, change: (*wipe).whole},
	{
		name: "webhook_deliveries", of: ofOrg, key: []copyColumn{{"webhook_id", false}, {"n", true}},
		columns: []string{"response", "error"}, change: (*wipe).response,
	},
	{
		name: "audit", of: ofOrg, key: []copyColumn{{"at", true}, {"id", false}},
		columns: []string{"actor", "target", "detail", "address"}, change: (*wipe).entry,
	},
	{
		name: "idempotency", of: ofOrg, key: texts("principal", "operation", "key"),
		columns: []string{"principal", "operation", "outcome"}, change: (*wipe).outcome,
	},
	// Other orgs have tasks and messages of the user.
	{
		name: "tasks", of: "$1 <> ''", key: texts("org_id", "uid"), columns: []string{"sender_org", "sender"},
		change: (*wipe).sender,
	},
	{
		name: "messages", of: "$1 <> ''", key: texts("org_id", "agent_id", "id"), columns: []string{"sender_org", "sender"},
		change: (*wipe).sender,
	},
}

// whole replaces values that are a reference to the user.
func (w *wipe) whole(values []string) bool {
	for i, v := range values {
		if v == w.ref {
			values[i] = w.newRef
		}
	}
	return false
}

func (w *wipe) sender(values []string) bool {
	return values[0] == w.org && w.whole(values[1:])
}

func (w *wipe) history(values []string) bool {
	values[1] = w.values.Replace(values[1])
	return w.whole(values[:1])
}

// response removes what a receiver responded, which is not worth a change.
func (w *wipe) response(values []string) bool {
	for _, v := range values {
		if w.text(v) != v || strings.Contains(v, `"ID":`+quoted(w.id)) {
			clear(values)
			break
		}
	}
	return false
}

// entry replaces the user in an audit entry. Entries by and about the user, and those about a sign-in of
// an unknown person, can have names. Those about the user can have earlier names.
func (w *wipe) entry(values []string) bool {
	for i := range 3 {
		values[i] = w.refs(values[i])
	}
	actor, target, detail, address := values[0], values[1], &values[2], &values[3]
	if actor == "" || actor == w.newRef || target == w.newRef || strings.Contains(*detail, w.newRef) {
		*detail = w.names(*detail)
	}
	if target == w.newRef {
		*detail = saidName.ReplaceAllLiteralString(*detail, "name "+strconv.Quote(w.newName))
	}
	if actor == w.newRef || actor == "" && target == w.newRef { // without an actor: a sign-in failed
		*address = ""
	}
	return false
}

// outcome reports whether the kept outcome of a command is one of the user, or names the user. Others
// must stay: without its outcome a command that is repeated runs twice.
func (w *wipe) outcome(values []string) bool {
	principal, operation, outcome := values[0], values[1], values[2]
	if principal == w.ref || w.refs(operation) != operation || w.values.Replace(outcome) != outcome ||
		strings.Contains(outcome, `"ID":`+quoted(w.id)) || strings.Contains(outcome, `"User":`+quoted(w.id)) {
		return true
	}
	return slices.ContainsFunc(w.words, func(word string) bool {
		return strings.Contains(outcome, `"Name":`+quoted(word)) || strings.Contains(outcome, `"Label":`+quoted(word))
	})
}

// moveVote moves a vote. If the user has voted again after an earlier one was moved, the earlier counts.
func moveVote(ctx context.Context, t *tx, w *wipe, r *wipedRow) error {
	id := r.key[0]
	t.lock(`SELECT 1 FROM proposals WHERE org_id = $1 AND id = $2`, w.org, id)
	choices := map[string]string{}
	if err := each(ctx, t, func(r rows) error {
		var voter, choice string
		err := r.Scan(&voter, &choice)
		choices[voter] = choice
		return err
	}, `SELECT voter, choice FROM votes WHERE org_id = $1 AND proposal_id = $2 AND voter IN ($3, $4)`, w.org, id,
		w.ref, w.newRef); err != nil {
		return err
	}
	if choices[w.newRef] == "" {
		t.exec(`UPDATE votes SET voter = $4 WHERE org_id = $1 AND proposal_id = $2 AND voter = $3`, w.org, id, w.ref,
			w.newRef)
		return nil
	}
	t.exec(`DELETE FROM votes WHERE org_id = $1 AND proposal_id = $2 AND voter = $3`, w.org, id, w.ref)
	switch choices[w.ref] {
	case string(proposal.For):
		t.exec(`UPDATE proposals SET votes_for = votes_for - 1, score = score - 1 WHERE org_id = $1 AND id = $2`, w.org,
			id)
	case string(proposal.Against):
		t.exec(`UPDATE proposals SET votes_against = votes_against - 1, score = score + 1 WHERE org_id = $1 AND id = $2`,
			w.org, id)
	}
	return nil
}

// moveReport moves a friction report. If the user has reported the occurrence again after an earlier
// report was moved, this one stays without it.
func moveReport(ctx context.Context, t *tx, w *wipe, r *wipedRow) error {
	const same = `org_id = $1 AND fingerprint = $2 AND seq = $3 AND reporter = $4`
	taken, err := t.exists(ctx, `SELECT 1 FROM friction_reports f JOIN friction_reports o
			ON o.org_id = f.org_id AND o.fingerprint = f.fingerprint AND o.occurrence = f.occurrence AND o.occurrence <> ''
		WHERE f.org_id = $1 AND f.fingerprint = $2 AND f.seq = $3 AND o.reporter = $4`, w.org, r.key[0], r.key[1], w.newRef)
	if err != nil {
		return err
	}
	if taken {
		t.exec(`UPDATE friction_reports SET occurrence = '' WHERE `+same, w.org, r.key[0], r.key[1], w.ref)
	}
	t.exec(`UPDATE friction_reports SET reporter = $5 WHERE `+same, w.org, r.key[0], r.key[1], w.ref, w.newRef)
	return nil
}

// wipePage is how many rows are read, and at most changed, at once.
const wipePage = 500

// wipeTable replaces the user in the rows of a table.
func (s Identity) wipeTable(ctx context.Context, w *wipe, t *wipedTable) error {
	var after []any
	for {
		found, next, err := s.namingRows(ctx, w, t, after)
		if err != nil {
			return fmt.Errorf("erase from %s: %w", t.name, err)
		}
		began := time.Now()
		if len(found) > 0 {
			if err := s.eng.write(ctx, func(x *tx) error {
				x.touch(w.org)
				return x.wipeRows(ctx, w, t, found)
			}); err != nil {
				return fmt.Errorf("erase from %s: %w", t.name, err)
			}
			if s.d == &sqliteDialect {
				time.Sleep(min(time.Since(began), 20*time.Millisecond)) // see purgeTable
			}
		}
		if next == nil {
			return nil
		}
		after = next
	}
}

// namingRows reads a page of a table, and returns those rows that name the user. next is the key of the
// last row, and nil if no rows follow.
func (s Identity) namingRows(
	ctx context.Context, w *wipe, t *wipedTable, after []any,
) (found []wipedRow, next []any, err error) {
	table := copyTable{name: t.name, columns: slices.Concat(t.key, texts(t.columns...))}
	names, scan, n := table.names(), table.scanner(), 0
	keys := strings.Join(names[:len(t.key)], ", ")
	sql, args := `SELECT `+strings.Join(names, ", ")+` FROM `+t.name+` WHERE `+t.of, append([]any{w.org}, after...)
	if after != nil {
		sql += ` AND (` + keys + `) > (` + places(2, len(t.key)) + `)`
	}
	err = each(ctx, s.eng, func(r rows) error {
		values, err := scan(r)
		if err != nil {
			return err
		}
		n++
		next = slices.Clone(values[:len(t.key)])
		row := wipedRow{key: next}
		for _, v := range values[len(t.key):] {
			row.was = append(row.was, v.(string))
		}
		row.is = slices.Clone(row.was)
		if row.gone = t.change(w, row.is); row.gone || !slices.Equal(row.was, row.is) {
			found = append(found, row)
		}
		return nil
	}, sql+` ORDER BY `+keys+limit(wipePage), args...)
	if n < wipePage {
		next = nil
	}
	return found, next, err
}

// places returns n placeholders, the first of which has a number.
func places(first, n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = "$" + strconv.Itoa(first+i)
	}
	return strings.Join(out, ", ")
}

// wipeRows queues the changes of rows. A row that has changed meanwhile is left to the next pass.
func (t *tx) wipeRows(ctx context.Context, w *wipe, of *wipedTable, found []wipedRow) error {
	for i := range found {
		r := &found[i]
		if of.apply != nil {
			if err := of.apply(ctx, t, w, r); err != nil {
				return err
			}
			continue
		}
		args := []any{w.org}
		arg := func(column, value any) string {
			args = append(args, value)
			return fmt.Sprintf("%s = $%d", column, len(args))
		}
		var set []string
		where := []string{of.of}
		for j, c := range of.key {
			where = append(where, arg(c.name, r.key[j]))
		}
		for j, c := range of.columns {
			if r.was[j] != r.is[j] {
				where = append(where, arg(c, r.was[j]))
				set = append(set, arg(c, r.is[j]))
			}
		}
		if of.name == "proposals" {
			t.await(w.org, r.key[0].(string), true)
		}
		sql := `UPDATE ` + of.name + ` SET ` + strings.Join(set, ", ")
		if r.gone {
			sql = `DELETE FROM ` + of.name
		}
		t.exec(sql+` WHERE `+strings.Join(where, " AND "), args...)
	}
	return nil
}

// moveCounters adds the counters of the user to those of the pseudonym.
func (s Identity) moveCounters(ctx context.Context, w *wipe) error {
	return s.eng.write(ctx, func(t *tx) error {
		t.touch(w.org)
		return each(ctx, t, func(r rows) error {
			var kind, status, category string
			var priority, slot, n int64
			if err := r.Scan(&kind, &status, &category, &priority, &slot, &n); err != nil {
				return err
			}
			t.exec(`INSERT INTO counters (org_id, kind, who, status, category, priority, slot, n)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
				ON CONFLICT (org_id, kind, who, status, category, priority, slot) DO UPDATE SET n = counters.n + excluded.n`,
				w.org, kind, w.newRef, status, category, priority, slot, n)
			t.exec(`DELETE FROM counters WHERE org_id = $1 AND kind = $2 AND who = $3 AND status = $4 AND category = $5
				AND priority = $6 AND slot = $7`, w.org, kind, w.ref, status, category, priority, slot)
			return nil
		}, `SELECT kind, status, category, priority, slot, n FROM counters WHERE org_id = $1 AND who = $2
			ORDER BY kind, status, category, priority, slot`+t.d.forUpdate, w.org, w.ref)
	})
}
