package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

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
	At    time.Time
}

// EraseMember implements identity.MemberStore. The first transaction ends all rights and replaces the
// user by the pseudonym. Then the rows of each table are changed in small steps, so that other writes
// do not wait long. If that was interrupted, the next call with either id continues.
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
		as, begun, err := t.begunErasure(ctx, p)
		if err != nil {
			return err
		}
		if as != nil && (cur == nil || cur.ID == as.ID) {
			out, gone = *as, begun
			return nil
		}
		if cur == nil {
			return errs.ErrNotFound
		}
		e, err := decide(identity.MemberScene{Member: *cur, OtherAdmins: others})
		if err != nil {
			return err
		}
		out, gone = e.Member, erasing{ID: cur.ID, Name: cur.Name, At: e.Entry.At}
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

// erasures returns the erasures of an org that are under way, by the ids of the pseudonyms.
func (t *tx) erasures(ctx context.Context, org string) (map[string]erasing, error) {
	out := map[string]erasing{}
	err := each(ctx, t, func(r rows) error {
		var name, value string
		if err := r.Scan(&name, &value); err != nil {
			return err
		}
		var gone erasing
		err := json.Unmarshal([]byte(value), &gone)
		out[strings.TrimPrefix(name, settingErasing)] = gone
		return err
	}, `SELECT name, value FROM org_settings WHERE org_id = $1 AND name LIKE '`+settingErasing+`%'`, org)
	return out, err
}

// refuseErasing returns an error if the user is being erased: what the erasure still finds under the id
// would be a new user's.
func (t *tx) refuseErasing(ctx context.Context, p identity.Principal) error {
	if p.Kind != identity.User {
		return nil
	}
	begun, err := t.erasures(ctx, p.Org)
	for _, gone := range begun {
		if gone.ID == p.ID {
			return errs.New(errs.Conflict, "identity.member_erasing",
				"%s is being erased; wait until that is done, or erase it again if it was interrupted", p.Ref())
		}
	}
	return err
}

// begunErasure returns the pseudonym of a user who is being erased, found by either id. It is nil if
// there is none.
func (t *tx) begunErasure(
	ctx context.Context, p identity.Principal,
) (as *identity.Member, gone erasing, err error) {
	begun, err := t.erasures(ctx, p.Org)
	if err != nil {
		return nil, gone, err
	}
	for id, g := range begun {
		if id != p.ID && g.ID != p.ID {
			continue
		}
		found, err := membersWhere(ctx, t, thatMember, p.Org, string(p.Kind), id)
		if err != nil || len(found) == 0 {
			return nil, gone, err
		}
		return &found[0], g, nil
	}
	return nil, gone, nil
}

// step runs statements in a transaction. Lists of the org may change with it.
func (s Identity) step(ctx context.Context, org string, fn func(*tx)) error {
	return s.eng.write(ctx, func(t *tx) error {
		fn(t)
		t.touch(org)
		return nil
	})
}

// finishErasing replaces a user everywhere. It may run again. Requests of the user that ran when the
// rights ended may write meanwhile, so it looks again after they have ended.
func (s Identity) finishErasing(ctx context.Context, org string, gone erasing, as *identity.Member) error {
	w := newWipe(org, gone, as)
	if err := s.wipeAll(ctx, w); err != nil {
		return err
	}
	again, err := s.settled(ctx, gone.At)
	for tries := 0; err == nil; tries++ {
		late := 0
		if _, late, err = s.rewriteEvents(ctx, org, w.last[org], w.pack); err != nil {
			break
		}
		if late == 0 && !again {
			return s.endErasing(ctx, w)
		}
		if tries == maxWipes {
			return errs.New(errs.Conflict, "identity.member_erasing",
				"requests of the user are still running; erase %s again", w.newRef)
		}
		again, err = false, s.wipeAll(ctx, w)
	}
	return err
}

const maxWipes = 3

// settled waits until servers have noticed that the rights of a user ended. It reports whether a server
// uses the store.
func (s Identity) settled(ctx context.Context, ended time.Time) (bool, error) {
	if s.settle == 0 {
		return false, nil
	}
	used, err := s.used(ctx)
	if err != nil || !used {
		return false, err
	}
	select {
	case <-time.After(min(s.settle, s.settle-s.now().Sub(ended))):
	case <-ctx.Done():
	}
	return true, ctx.Err()
}

// endErasing forgets the names of the user. Servers drop lists that they keep.
func (s Identity) endErasing(ctx context.Context, w *wipe) error {
	return s.step(ctx, w.org, func(t *tx) {
		t.exec(`DELETE FROM org_settings WHERE org_id = $1 AND name = $2`, w.org, settingErasing+w.newID)
		t.newEpoch(w.org)
		for other := range w.changed {
			t.touch(other)
		}
	})
}

// wipeAll replaces a user in all tables.
func (s Identity) wipeAll(ctx context.Context, w *wipe) error {
	for i := range wipedTables {
		if err := s.wipeTable(ctx, w, &wipedTables[i]); err != nil {
			return err
		}
	}
	if err := s.moveCounters(ctx, w); err != nil {
		return fmt.Errorf("erase from counters: %w", err)
	}
	if s.sessionOf != nil {
		match := func(data []byte) bool { return s.sessionOf(data, w.org, w.id) }
		if err := s.endSessions(ctx, "sessions", match); err != nil {
			return err
		}
	}
	if err := s.wipeEvents(ctx, w); err != nil {
		return err
	}
	// Events are kept longer than tasks, so no table says which orgs the user sent tasks to.
	others, err := strs(ctx, s.eng, `SELECT id FROM orgs WHERE id <> $1 ORDER BY id`, w.org)
	if err != nil {
		return err
	}
	for _, other := range others {
		n := 0
		if w.last[other], n, err = s.rewriteEvents(ctx, other, w.last[other], w.foreign); err != nil {
			return fmt.Errorf("erase from the events of another org: %w", err)
		}
		if n > 0 {
			w.changed[other] = true
		}
	}
	return nil
}

// wipeEvents replaces a user in the events of the org, and in the index of their subjects.
func (s Identity) wipeEvents(ctx context.Context, w *wipe) (err error) {
	if w.last[w.org], _, err = s.rewriteEvents(ctx, w.org, w.last[w.org], w.pack); err != nil {
		return fmt.Errorf("erase from the events: %w", err)
	}
	for { // the index follows the log
		n, err := Events(s).IndexSubjects(ctx, w.org)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
	}
	return s.step(ctx, w.org, func(t *tx) {
		t.exec(`INSERT INTO event_subjects (org_id, subject, last_seq)
			SELECT org_id, $3, last_seq FROM event_subjects WHERE org_id = $1 AND subject = $2
			ON CONFLICT (org_id, subject, last_seq) DO NOTHING`, w.org, "member:"+w.ref, "member:"+w.newRef)
		t.exec(`DELETE FROM event_subjects WHERE org_id = $1 AND subject = $2`, w.org, "member:"+w.ref)
	})
}
