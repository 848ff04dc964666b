package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
)

// settingErasing begins the name of the setting that an org has while a user is being erased; the id
// of the pseudonym follows. Its value is an erasing.
const settingErasing = "member.erasing."

// erasing is what must be known of a user until nothing of the user is left.
type erasing struct {
	ID    string
	Name  string
	Words []string // e-mail addresses and names at providers
}

// EraseMember implements identity.MemberStore. The first transaction ends all rights and replaces the
// user by the pseudonym. Then each table is changed in a transaction of its own, so that other writes
// do not wait long.
func (s Identity) EraseMember(
	ctx context.Context, p identity.Principal, decide func(identity.MemberScene) (identity.Erasure, error),
) (identity.Member, error) {
	var out identity.Member
	var gone erasing
	err := s.eng.write(ctx, func(t *tx) error {
		cur, others, err := t.memberAmongAdmins(ctx, p)
		if err != nil {
			return err
		}
		if cur == nil {
			return errs.ErrNotFound
		}
		begun, err := t.setting(ctx, p.Org, settingErasing+p.ID)
		if err != nil {
			return err
		}
		if begun != "" {
			out = *cur
			return json.Unmarshal([]byte(begun), &gone)
		}
		e, err := decide(identity.MemberScene{Member: *cur, OtherAdmins: others})
		if err != nil {
			return err
		}
		out, gone = e.Member, erasing{ID: cur.ID, Name: cur.Name}
		if gone.Words, err = t.wordsOf(ctx, p); err != nil {
			return err
		}
		return t.replaceMember(ctx, p, gone, &e)
	})
	if err != nil {
		return out, err
	}
	// The caller may have gone, but the user must not stay half erased.
	return out, s.finishErasing(context.WithoutCancel(ctx), p.Org, gone, &out)
}

// wordsOf returns by which names a user is known elsewhere.
func (t *tx) wordsOf(ctx context.Context, p identity.Principal) (words []string, err error) {
	err = each(ctx, t, func(r rows) error {
		var label, subject string
		err := r.Scan(&label, &subject)
		words = append(words, label, subject)
		return err
	}, `SELECT label, subject FROM identities WHERE org_id = $1 AND user_id = $2`, p.Org, p.ID)
	return words, err
}

// replaceMember replaces a user, and ends all rights of the user.
func (t *tx) replaceMember(ctx context.Context, p identity.Principal, gone erasing, e *identity.Erasure) error {
	if err := t.freeMember(ctx, e.Member.Principal); err != nil {
		return err
	}
	value, err := json.Marshal(gone)
	if err != nil {
		return err
	}
	t.insertMember(e.Member)
	const grants = `(SELECT id FROM oauth_grants WHERE org_id = $1 AND kind = 'user' AND principal_id = $2)`
	for _, sql := range []string{
		`DELETE FROM keys WHERE org_id = $1 AND kind = 'user' AND principal_id = $2`,
		`DELETE FROM oauth_tokens WHERE grant_id IN ` + grants,
		`DELETE FROM oauth_refresh WHERE grant_id IN ` + grants,
		`DELETE FROM oauth_grants WHERE org_id = $1 AND kind = 'user' AND principal_id = $2`,
		`DELETE FROM passwords WHERE org_id = $1 AND user_id = $2`,
		`DELETE FROM identities WHERE org_id = $1 AND user_id = $2`,
		`DELETE FROM login_links WHERE org_id = $1 AND user_id = $2`,
		`DELETE FROM account_links WHERE org_id = $1 AND user_id = $2`,
		`DELETE FROM principals WHERE org_id = $1 AND kind = 'user' AND id = $2`,
	} {
		t.exec(sql, p.Org, p.ID)
	}
	t.exec(`DELETE FROM push_configs WHERE sender_org = $1 AND sender = $2`, p.Org, p.Ref())
	t.exec(`UPDATE invitations SET user_id = $3, name = $4 WHERE org_id = $1 AND user_id = $2`, p.Org, p.ID, e.Member.ID,
		e.Member.Name)
	t.exec(`UPDATE invitations SET revoked_at = $3
		WHERE org_id = $1 AND user_id = $2 AND accepted_at = 0 AND revoked_at = 0`, p.Org, e.Member.ID, micros(e.Entry.At))
	t.exec(`INSERT INTO org_settings (org_id, name, value) VALUES ($1, $2, $3)`, p.Org, settingErasing+e.Member.ID,
		string(value))
	t.newEpoch(p.Org)
	t.audit(e.Entry)
	t.emitMember(&e.Entry, event.MemberErased, &e.Member)
	return nil
}

// refColumns are the columns of an org that name a principal.
var refColumns = [][2]string{
	{"proposals", "submitted_by"},
	{"votes", "voter"},
	{"history", "actor"},
	{"followups", "assignee"},
	{"followups", "created_by"},
	{"friction", "last_by"},
	{"friction_reports", "reporter"},
	{"saved_notes", "created_by"},
	{"keys", "created_by"},
	{"invitations", "created_by"},
	{"login_links", "created_by"},
	{"oauth_clients", "created_by"},
	{"webhooks", "created_by"},
	{"audit", "actor"},
	{"audit", "target"},
}

// moveCounters adds the counters of one principal to those of another.
const moveCounters = `INSERT INTO counters (org_id, kind, who, status, category, priority, slot, n)
	SELECT org_id, kind, $3, status, category, priority, slot, n FROM counters WHERE org_id = $1 AND who = $2
	ON CONFLICT (org_id, kind, who, status, category, priority, slot) DO UPDATE SET n = counters.n + excluded.n`

// step runs one statement in a transaction of its own. Lists of the org may change with it.
func (s Identity) step(ctx context.Context, org, sql string, args ...any) error {
	return s.eng.write(ctx, func(t *tx) error {
		t.exec(sql, args...)
		t.touch(org)
		return nil
	})
}

// finishErasing replaces a user everywhere. It may run again.
func (s Identity) finishErasing(ctx context.Context, org string, gone erasing, as *identity.Member) error {
	if gone.ID == "" {
		return nil
	}
	w := newWipe(org, gone, as)
	// Requests of the user that ran when the rights ended may have written since. Then there are new
	// events of the user.
	for late, tries := 1, 0; late > 0 && tries < maxWipes; tries++ {
		err := s.wipeAll(ctx, w)
		if err == nil {
			_, late, err = s.rewriteEvents(ctx, org, w.last, w.pack)
		}
		if err != nil {
			return err
		}
	}
	return s.step(ctx, org, `DELETE FROM org_settings WHERE org_id = $1 AND name = $2`, org, settingErasing+as.ID)
}

const maxWipes = 3

// wipeAll replaces a user in all tables.
func (s Identity) wipeAll(ctx context.Context, w *wipe) error {
	others, err := strs(ctx, s.eng, `SELECT DISTINCT org_id FROM tasks WHERE sender_org = $1 AND sender = $2`, w.org, w.ref)
	if err != nil {
		return err
	}
	for _, c := range refColumns {
		if err := s.step(ctx, w.org, `UPDATE `+c[0]+` SET `+c[1]+` = $3 WHERE org_id = $1 AND `+c[1]+` = $2`, w.org, w.ref,
			w.newRef); err != nil {
			return fmt.Errorf("erase from %s: %w", c[0], err)
		}
	}
	if err := s.eng.write(ctx, func(t *tx) error {
		t.exec(moveCounters, w.org, w.ref, w.newRef)
		t.exec(`DELETE FROM counters WHERE org_id = $1 AND who = $2`, w.org, w.ref)
		t.touch(w.org)
		return nil
	}); err != nil {
		return fmt.Errorf("erase from counters: %w", err)
	}
	if err := s.wipeTexts(ctx, w); err != nil {
		return err
	}
	if s.sessionOf != nil {
		match := func(data []byte) bool { return s.sessionOf(data, w.org, w.id) }
		if err := s.endSessions(ctx, "sessions", match); err != nil {
			return err
		}
	}
	for _, other := range others {
		if other == w.org {
			continue
		}
		if _, _, err := s.rewriteEvents(ctx, other, 0, w.foreign); err != nil {
			return fmt.Errorf("erase from the events of another org: %w", err)
		}
	}
	for _, table := range []string{"tasks", "messages"} { // last: they say in which orgs events are
		if err := s.step(ctx, w.org, `UPDATE `+table+` SET sender = $3 WHERE sender_org = $1 AND sender = $2`, w.org, w.ref,
			w.newRef); err != nil {
			return fmt.Errorf("erase from %s: %w", table, err)
		}
	}
	return nil
}
