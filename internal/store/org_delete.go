package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// OrgDeletion says how an org is deleted.
type OrgDeletion struct {
	// Entry is added to the audit log of the store itself, which has the entries without an org.
	Entry identity.AuditEntry
	// Settle is how long a server may take to notice that rights have ended.
	Settle time.Duration
}

// DeleteOrg deletes an org and everything of it. It first ends all rights in the org. Then it deletes
// the rows in small steps, so that no other write waits long, and the org itself last. If it was
// interrupted, the next call continues. It also removes what an import left that was killed. If there
// is nothing of the org, the error is NotFound.
func DeleteOrg(
	ctx context.Context, o Options, org string, d OrgDeletion, progress func(table string, rows int64),
) (err error) {
	o.Shred = true
	s, err := Open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	exists, err := s.markDeleted(ctx, org)
	if err != nil {
		return err
	}
	since := time.Now()
	if !exists {
		n := 0
		broken, err := one(ctx, s.eng, []any{&n}, `SELECT 1 FROM org_settings WHERE org_id = $1 AND name = $2`, org,
			settingImporting)
		switch {
		case err != nil:
			return err
		case !broken:
			return errs.ErrNotFound
		}
		// The setting goes after all rows, so that CreateOrg refuses the id until then.
		return s.purge(ctx, org, progress, (&orgImport{org: org}).unborn)
	}
	for range 2 { // again, because requests that ran at the time of the mark may have written since
		if err := s.deleteRows(ctx, org, progress); err != nil {
			return err
		}
		busy, err := s.inUse(ctx, o)
		if err != nil {
			return err
		}
		if !busy {
			break
		}
		select {
		case <-time.After(d.Settle - time.Since(since)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := s.forgetWords(ctx); err != nil {
		return err
	}
	if err := s.eng.write(ctx, func(t *tx) error {
		t.exec(`DELETE FROM org_settings WHERE org_id = $1`, org)
		t.exec(`DELETE FROM orgs WHERE id = $1`, org)
		t.audit(d.Entry)
		t.newEpoch(org)
		return nil
	}); err != nil {
		return err
	}
	return s.emptyLog(o)
}

// deleteRows deletes everything of an org but the org itself, and its name where other orgs have it.
func (s *Store) deleteRows(ctx context.Context, org string, progress func(table string, rows int64)) error {
	allowed := func(ctx context.Context, t *tx) error {
		marked, err := t.setting(ctx, org, settingDeleting)
		if err == nil && marked == "" {
			err = errs.New(errs.Conflict, "org.delete_ended", "another command has deleted org %q meanwhile", org)
		}
		return err
	}
	if err := s.purge(ctx, org, progress, allowed); err != nil {
		return err
	}
	progress("sessions", 0)
	names := []byte(strconv.Quote(org))
	for _, table := range []string{"sessions", "oauth_requests"} {
		if err := s.endSessions(ctx, table, func(data []byte) bool {
			return bytes.Contains(data, names) || s.sessionOf != nil && s.sessionOf(data, org, "")
		}); err != nil {
			return err
		}
	}
	return s.forgetSenders(ctx, org, progress)
}

// setting returns a setting of an org, or "".
func (t *tx) setting(ctx context.Context, org, name string) (value string, err error) {
	_, err = one(ctx, t, []any{&value}, `SELECT value FROM org_settings WHERE org_id = $1 AND name = $2`, org, name)
	return value, err
}

// refuseWhile returns the refusal if the org has the setting.
func (t *tx) refuseWhile(ctx context.Context, org, name string, refusal error) error {
	value, err := t.setting(ctx, org, name)
	if err == nil && value != "" {
		err = refusal
	}
	return err
}

// newVersions makes nodes drop the lists that they keep of an earlier org with this id. On SQLite they
// notice the change of the identity epoch.
func (t *tx) newVersions(org string, at time.Time) {
	if t.d == &postgresDialect {
		t.exec(`INSERT INTO data_versions (org_id, slot, version) VALUES ($1, 0, $2)
			ON CONFLICT (org_id, slot) DO UPDATE SET version = data_versions.version + excluded.version`, org, micros(at))
	}
}

// markDeleted ends all rights in an org, and reports whether there is one.
func (s *Store) markDeleted(ctx context.Context, org string) (exists bool, err error) {
	err = s.eng.write(ctx, func(t *tx) (err error) {
		if exists, err = t.exists(ctx, `SELECT 1 FROM orgs WHERE id = $1`+t.d.forUpdate, org); err != nil || !exists {
			return err
		}
		now := micros(s.now())
		t.exec(`INSERT INTO org_settings (org_id, name, value) VALUES ($1, $2, $3) ON CONFLICT (org_id, name) DO NOTHING`,
			org, settingDeleting, newToken())
		t.exec(`UPDATE principals SET disabled = 1 WHERE org_id = $1 AND disabled = 0`, org)
		t.exec(`UPDATE agents SET disabled = 1, online = 0 WHERE org_id = $1`, org)
		t.exec(`UPDATE keys SET revoked_at = $2 WHERE org_id = $1 AND revoked_at = 0`, org, now)
		t.exec(`UPDATE oauth_grants SET revoked_at = $2 WHERE org_id = $1 AND revoked_at = 0`, org, now)
		t.exec(`UPDATE invitations SET revoked_at = $2 WHERE org_id = $1 AND accepted_at = 0 AND revoked_at = 0`, org, now)
		t.exec(`UPDATE passwords SET generation = generation + 1 WHERE org_id = $1`, org)
		t.exec(`DELETE FROM login_links WHERE org_id = $1`, org)
		t.exec(`DELETE FROM account_links WHERE org_id = $1`, org)
		// Deliveries stop.
		t.exec(`UPDATE webhooks SET state = 'paused', due_at = 0, claimed_until = 0 WHERE org_id = $1`, org)
		t.newEpoch(org)
		return nil
	})
	return exists, err
}

// inUse reports whether a server may use the store.
func (s *Store) inUse(ctx context.Context, o Options) (bool, error) {
	if s.d == &sqliteDialect {
		return InUse(o.Dir), nil
	}
	const everySchema = 1 << 30
	nodes, err := aliveNodes(ctx, s.eng, everySchema)
	return len(nodes) > 0, err
}

// first are the tables of which rows go first: servers work on them by themselves, or they belong to
// rows of other tables.
var first = []string{
	"push_configs", "webhook_deliveries", "webhooks", "task_events", "tasks", "votes", "history", "friction_reports",
	"oauth_tokens", "oauth_refresh",
}

const (
	purgeRows  = 250
	purgeLarge = 50 // of tables whose rows can have megabytes
)

// purge deletes the rows of an org in small steps, except those of orgs and org_settings. allowed
// runs in each of them, and returns an error if the rows must not be deleted.
func (s *Store) purge(
	ctx context.Context, org string, progress func(table string, rows int64), allowed func(context.Context, *tx) error,
) error {
	form := &sqliteForm
	if s.d == &postgresDialect {
		form = &postgresForm
	}
	all, err := form.list(ctx, s.eng)
	if err != nil {
		return err
	}
	names := slices.Clone(first)
	for _, t := range slices.Backward(all) { // rows that refer to others first
		if !slices.Contains(names, t.name) {
			names = append(names, t.name)
		}
	}
	if s.d == &postgresDialect {
		names = append(names, "proposal_search", "events_new", "data_versions")
	}
	for _, name := range names {
		of := orgTables[name].of
		if name == "proposal_search" {
			of = ofOrg
		}
		if of == "" || name == "orgs" || name == "org_settings" {
			continue
		}
		if err := s.purgeTable(ctx, name, of, org, progress, allowed); err != nil {
			return fmt.Errorf("delete rows of %s: %w", name, err)
		}
	}
	exists, n := false, 0
	if exists, err = one(ctx, s.eng, []any{&n}, `SELECT 1 FROM orgs WHERE id = $1`, org); err != nil || exists {
		return err
	}
	return s.eng.write(ctx, func(t *tx) error {
		if err := allowed(ctx, t); err != nil {
			return err
		}
		t.exec(`DELETE FROM org_settings WHERE org_id = $1`, org)
		return nil
	})
}

func (s *Store) purgeTable(
	ctx context.Context, table, of, org string, progress func(table string, rows int64),
	allowed func(context.Context, *tx) error,
) error {
	size := purgeRows
	if slices.Contains([]string{"task_events", "messages", "events", "idempotency"}, table) {
		size = purgeLarge
	}
	statements, err := s.deletes(ctx, table, of, size)
	if err != nil {
		return err
	}
	for n := int64(0); ; n += int64(size) {
		found := 0
		left, err := one(ctx, s.eng, []any{&found}, `SELECT 1 FROM `+table+` WHERE `+of+` LIMIT 1`, org)
		if err != nil || !left {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		began := time.Now()
		if err := s.eng.write(ctx, func(t *tx) error {
			if err := allowed(ctx, t); err != nil {
				return err
			}
			for _, sql := range statements {
				t.exec(sql, org)
			}
			return nil
		}); err != nil {
			return err
		}
		progress(table, n)
		if s.d == &sqliteDialect {
			time.Sleep(min(time.Since(began), 20*time.Millisecond)) // a server may wait for the lock, which is not fair
		}
	}
}

// deletes returns the statements that delete up to size rows of an org.
func (s *Store) deletes(ctx context.Context, table, of string, size int) ([]string, error) {
	if s.d == &postgresDialect {
		return []string{`DELETE FROM ` + table + ` WHERE ctid = ANY (ARRAY(SELECT ctid FROM ` + table + ` WHERE ` + of +
			limit(size) + `))`}, nil
	}
	if table == "proposals" { // with their entries in the text index
		some := ` IN (SELECT seq FROM proposals WHERE ` + of + ` ORDER BY seq` + limit(size) + `)`
		return []string{`DELETE FROM proposal_search WHERE rowid` + some, `DELETE FROM proposals WHERE seq` + some}, nil
	}
	key, err := strs(ctx, s.eng, `SELECT name FROM pragma_table_info($1) WHERE pk > 0 ORDER BY pk`, table)
	if err != nil {
		return nil, err
	}
	columns := strings.Join(key, ", ")
	return []string{`DELETE FROM ` + table + ` WHERE (` + columns + `) IN (SELECT ` + columns + ` FROM ` + table +
		` WHERE ` + of + limit(size) + `)`}, nil
}

// endSessions deletes the rows of sessions, or of sign-ins that are under way, for whose data match is
// true.
func (s *db) endSessions(ctx context.Context, table string, match func(data []byte) bool) error {
	const page = 500
	after := ""
	for {
		var hashes, found []string
		if err := each(ctx, s.eng, func(r rows) error {
			var hash, text string
			if err := r.Scan(&hash, &text); err != nil {
				return err
			}
			hashes = append(hashes, hash)
			if data, err := base64.StdEncoding.DecodeString(text); err != nil || match(data) {
				found = append(found, hash)
			}
			return nil
		}, `SELECT hash, data FROM `+table+` WHERE hash > $1 ORDER BY hash`+limit(page), after); err != nil {
			return err
		}
		if len(found) > 0 {
			if err := s.eng.write(ctx, func(t *tx) error {
				for _, hash := range found {
					t.exec(`DELETE FROM `+table+` WHERE hash = $1`, hash)
				}
				return nil
			}); err != nil {
				return err
			}
		}
		if len(hashes) < page {
			return nil
		}
		after = hashes[len(hashes)-1]
	}
}

// forgetSenders replaces the names of an org and of its principals where they sent tasks and messages
// to agents of other orgs, to whom the texts belong. Their pushes end.
func (s *Store) forgetSenders(ctx context.Context, org string, progress func(table string, rows int64)) error {
	salt := ""
	if _, err := one(ctx, s.eng, []any{&salt}, `SELECT value FROM org_settings WHERE org_id = $1 AND name = $2`, org,
		settingDeleting); err != nil {
		return err
	}
	gone := foreign + "deleted-" + pseudonym(salt, org)
	if err := s.purgeTable(ctx, "push_configs", "sender_org = $1", org, progress,
		func(context.Context, *tx) error { return nil }); err != nil {
		return err
	}
	for table, key := range map[string]string{"tasks": "uid", "messages": "id"} {
		for {
			n := 0
			if err := s.eng.write(ctx, func(t *tx) error {
				n = 0
				return each(ctx, t, func(r rows) error {
					var of, id, sender string
					if err := r.Scan(&of, &id, &sender); err != nil {
						return err
					}
					n++
					kind, _, _ := strings.Cut(sender, ":")
					t.exec(`UPDATE `+table+` SET sender_org = $3, sender = $4 WHERE org_id = $1 AND `+key+` = $2`, of, id, gone,
						kind+":former-"+pseudonym(salt, sender))
					return nil
				}, `SELECT org_id, `+key+`, sender FROM `+table+` WHERE sender_org = $1`+limit(purgeRows), org)
			}); err != nil {
				return err
			}
			if n == 0 {
				break
			}
		}
	}
	others, err := strs(ctx, s.eng, `SELECT id FROM orgs WHERE id <> $1 ORDER BY id`, org)
	if err != nil {
		return err
	}
	for _, other := range others {
		progress("events", 0)
		change := func(text string) string { return replaceSenders(text, org, gone, salt) }
		if _, _, err := s.rewriteEvents(ctx, other, 0, change); err != nil {
			return err
		}
	}
	return nil
}

// replaceSenders replaces senders of an org in packs of events: in the records of tasks, and as actors.
// Quotes and tabs in other values are escaped, so that no other text matches.
func replaceSenders(text, org, gone, salt string) string {
	for _, around := range [][2]string{{`"sender":"`, `"`}, {"\t", "\t"}} {
		from := around[0] + org + "/"
		var out strings.Builder
		for {
			before, rest, found := strings.Cut(text, from)
			out.WriteString(before)
			if !found {
				break
			}
			sender, after, _ := strings.Cut(rest, around[1])
			kind, _, _ := strings.Cut(sender, ":")
			out.WriteString(around[0] + gone + "/" + kind + ":former-" + pseudonym(salt, sender) + around[1])
			text = after
		}
		text = out.String()
	}
	return text
}

// pseudonym returns a name that is the same for each text, as long as the salt is.
func pseudonym(salt, text string) string {
	sum := sha256.Sum256([]byte(salt + "\n" + text))
	return hex.EncodeToString(sum[:4])
}

// rewriteEvents changes the stored events of an org after a number. It returns the number of the last
// one, and how many packs were changed.
func (s *db) rewriteEvents(
	ctx context.Context, org string, after int64, change func(text string) string,
) (last int64, rewritten int, err error) {
	if err := s.eng.number(ctx, org); err != nil {
		return after, 0, err
	}
	const page = 100
	for {
		type stored struct {
			last int64
			data string
		}
		var changed []stored
		n := 0
		if err := each(ctx, s.eng, func(r rows) error {
			var p stored
			if err := r.Scan(&p.last, &p.data); err != nil {
				return err
			}
			n, after = n+1, p.last
			if text := change(p.data); text != p.data {
				changed = append(changed, stored{p.last, text})
			}
			return nil
		}, `SELECT last_seq, `+s.d.packText+` FROM events WHERE org_id = $1 AND last_seq > $2 ORDER BY last_seq`+limit(page),
			org, after); err != nil {
			return after, rewritten, err
		}
		rewritten += len(changed)
		if len(changed) > 0 {
			if err := s.eng.write(ctx, func(t *tx) error {
				for _, p := range changed {
					t.setPack(org, p.last, p.data)
				}
				return nil
			}); err != nil {
				return after, rewritten, err
			}
		}
		if n < page {
			return after, rewritten, nil
		}
	}
}

// setPack replaces the text of a pack.
func (t *tx) setPack(org string, last int64, text string) {
	var data any = text
	if t.d == &sqliteDialect {
		data = new(packer).compress([]string{text})
	}
	t.exec(`UPDATE events SET data = $3 WHERE org_id = $1 AND last_seq = $2`, org, last, data)
}

// forgetWords removes the words of deleted proposals from SQLite's text index, which otherwise only
// marks them.
func (s *Store) forgetWords(ctx context.Context) error {
	if s.d != &sqliteDialect {
		return nil
	}
	const pages = 64 // of the index, in one write
	for before, step := int64(-1), -pages; ; step = pages {
		changes, done := int64(0), false
		if err := s.eng.write(ctx, func(t *tx) error {
			if _, err := one(ctx, t, []any{&changes}, `SELECT total_changes()`); err != nil {
				return err
			}
			if done = before >= 0 && changes-before < 2; !done {
				t.exec(`INSERT INTO proposal_search (proposal_search, rank) VALUES ('merge', $1)`, step)
			}
			return nil
		}); err != nil || done {
			return err
		}
		before = changes
		time.Sleep(5 * time.Millisecond) // see purgeTable
	}
}

// emptyLog empties SQLite's log of writes, which has earlier versions of pages.
func (s *Store) emptyLog(o Options) error {
	if s.d != &sqliteDialect {
		return nil
	}
	conn, err := openLite(filepath.Join(o.Dir, fileName))
	if err != nil {
		return err
	}
	// The first copies most pages without keeping servers from writing. If a reader needs the log, the
	// server empties it later.
	for _, mode := range []string{"PASSIVE", "TRUNCATE"} {
		_ = conn.exec("PRAGMA wal_checkpoint(" + mode + ")")
	}
	return conn.close()
}
