package store

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"path/filepath"
	"strconv"
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
// interrupted, the next call continues. It also removes rows without an org: what an import left that was
// killed, and what a server wrote after an earlier deletion. If there is nothing of the org, the error
// is NotFound.
func DeleteOrg(
	ctx context.Context, o Options, org string, d OrgDeletion, progress func(table string, rows int64),
) (err error) {
	o.Shred = true
	s, err := Open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	token, err := s.markDeleted(ctx, org)
	if err != nil {
		return err
	}
	if token == "" {
		found, err := s.purgeLeft(ctx, org, progress, (&orgImport{org: org}).unborn)
		if err == nil && !found {
			err = errs.ErrNotFound
		}
		return err
	}
	run := &orgRun{db: s.db, org: org, salt: token, progress: progress, searched: map[string]int64{}}
	run.allowed = func(ctx context.Context, t *tx) error { return t.refuseUnmarked(ctx, org, token) }
	since := time.Now()
	for range 2 { // again, because requests that ran at the time of the mark may have written since
		if err := run.deleteRows(ctx); err != nil {
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
	if err := run.deleteOrg(ctx, d.Entry); err != nil {
		return err
	}
	return s.emptyLog(o)
}

// orgRun is a run of a command that removes what there is of an org.
type orgRun struct {
	*db
	org      string
	salt     string // of the pseudonyms of senders
	progress func(table string, rows int64)
	// allowed runs in each transaction, and returns an error if rows must not be deleted.
	allowed  func(context.Context, *tx) error
	searched map[string]int64 // number of the last event that was searched for senders, by org
}

// refuseUnmarked returns an error unless the org is being deleted by the run with this token. On
// PostgreSQL the mark stays until the end of the write.
func (t *tx) refuseUnmarked(ctx context.Context, org, token string) error {
	marked, err := t.exists(ctx, `SELECT 1 FROM org_settings
		WHERE org_id = $1 AND name = $2 AND value = $3`+t.d.forUpdate, org, settingDeleting, token)
	if err == nil && !marked {
		err = errs.New(errs.Conflict, "org.delete_ended", "another command has deleted org %q meanwhile", org)
	}
	return err
}

// deleteRows deletes everything of an org but the org itself, and its name where other orgs have it.
func (r *orgRun) deleteRows(ctx context.Context) error {
	if err := r.purge(ctx, r.org, r.progress, r.allowed); err != nil {
		return err
	}
	r.progress("sessions", 0)
	names := []byte(strconv.Quote(r.org))
	for _, table := range []string{"sessions", "oauth_requests"} {
		if err := r.endSessions(ctx, table, func(data []byte) bool {
			return bytes.Contains(data, names) || r.sessionOf != nil && r.sessionOf(data, r.org, "")
		}); err != nil {
			return err
		}
	}
	return r.forgetSenders(ctx)
}

// deleteOrg deletes the org, of which all other rows are gone, and the mark.
func (r *orgRun) deleteOrg(ctx context.Context, entry identity.AuditEntry) error {
	const tries = 5
	for range tries {
		err := r.eng.write(ctx, func(t *tx) error {
			if err := r.allowed(ctx, t); err != nil {
				return err
			}
			t.exec(`DELETE FROM org_settings WHERE org_id = $1`, r.org)
			t.exec(`DELETE FROM orgs WHERE id = $1`, r.org)
			t.audit(entry)
			t.newEpoch(r.org)
			return nil
		})
		if err == nil || errs.KindOf(err) != errs.NotFound {
			return err
		}
		// A row that was written late refers to the org.
		if err := r.purge(ctx, r.org, r.progress, r.allowed); err != nil {
			return err
		}
	}
	return errs.New(errs.Conflict, "org.delete_busy", "a server still writes to org %q; run the command again", r.org)
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

// newVersions makes nodes drop the lists that they keep of an earlier org with this id, because its
// versions were all lower. On SQLite they notice the change of the identity epoch.
func (t *tx) newVersions(org string, at time.Time) {
	if t.d == &postgresDialect {
		t.exec(`INSERT INTO data_versions (org_id, slot, version) VALUES ($1, 0, $2)
			ON CONFLICT (org_id, slot) DO UPDATE SET version = data_versions.version + excluded.version`, org, micros(at))
	}
}

// markDeleted ends all rights in an org. It returns the token of the deletion, which is that of an
// earlier run if it has not ended, or "" if there is no such org.
func (s *Store) markDeleted(ctx context.Context, org string) (token string, err error) {
	err = s.eng.write(ctx, func(t *tx) error {
		token = ""
		exists, err := t.exists(ctx, `SELECT 1 FROM orgs WHERE id = $1`+t.d.forUpdate, org)
		if err != nil || !exists {
			return err
		}
		if token, err = t.setting(ctx, org, settingDeleting); err != nil {
			return err
		}
		if token == "" {
			token = newToken()
			t.exec(`INSERT INTO org_settings (org_id, name, value) VALUES ($1, $2, $3)`, org, settingDeleting, token)
		}
		now := micros(s.now())
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
	return token, err
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
