package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// forgetSenders replaces the names of an org and of its principals where they sent tasks and messages
// to agents of other orgs, to whom the texts belong. Their pushes end.
func (r *orgRun) forgetSenders(ctx context.Context) error {
	if r.salt == "" {
		return errors.New("the pseudonyms of senders need a salt: without one they can be guessed")
	}
	gone := foreign + "deleted-" + pseudonym(r.salt, r.org)
	if err := r.purgeTable(ctx, "push_configs", "sender_org = $1", r.org, r.progress, r.allowed); err != nil {
		return err
	}
	for table, key := range map[string]string{"tasks": "uid", "messages": "id"} {
		if err := r.renameSenders(ctx, table, key, gone); err != nil {
			return err
		}
	}
	others, err := strs(ctx, r.eng, `SELECT id FROM orgs WHERE id <> $1 ORDER BY id`, r.org)
	if err != nil {
		return err
	}
	change := func(text string) string { return replaceSenders(text, r.org, gone, r.salt) }
	for _, other := range others {
		r.progress("events", 0)
		if r.searched[other], _, err = r.rewriteWhile(ctx, other, r.searched[other], change, r.allowed); err != nil {
			return err
		}
	}
	return nil
}

// renameSenders replaces the senders of the org in a table.
func (r *orgRun) renameSenders(ctx context.Context, table, key, gone string) error {
	for {
		n := 0
		if err := r.eng.write(ctx, func(t *tx) error {
			n = 0
			if err := r.allowed(ctx, t); err != nil {
				return err
			}
			return each(ctx, t, func(row rows) error {
				var of, id, sender string
				if err := row.Scan(&of, &id, &sender); err != nil {
					return err
				}
				n++
				kind, _, _ := strings.Cut(sender, ":")
				t.exec(`UPDATE `+table+` SET sender_org = $3, sender = $4 WHERE org_id = $1 AND `+key+` = $2`, of, id, gone,
					kind+":former-"+pseudonym(r.salt, sender))
				return nil
			}, `SELECT org_id, `+key+`, sender FROM `+table+` WHERE sender_org = $1`+limit(purgeRows), r.org)
		}); err != nil || n == 0 {
			return err
		}
	}
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
	return s.rewriteWhile(ctx, org, after, change, func(context.Context, *tx) error { return nil })
}

// rewriteWhile is rewriteEvents. allowed runs in each write, and returns an error if it must not happen.
func (s *db) rewriteWhile(
	ctx context.Context, org string, after int64, change func(text string) string,
	allowed func(context.Context, *tx) error,
) (last int64, rewritten int, err error) {
	if err := s.eng.number(ctx, org); err != nil {
		return after, 0, err
	}
	const page = 100
	for {
		var found []any // numbers of packs to change
		n := 0
		if err := each(ctx, s.eng, func(r rows) error {
			text := ""
			if err := r.Scan(&after, &text); err != nil {
				return err
			}
			if n++; change(text) != text {
				found = append(found, after)
			}
			return nil
		}, `SELECT last_seq, `+s.d.packText+` FROM events WHERE org_id = $1 AND last_seq > $2 ORDER BY last_seq`+limit(page),
			org, after); err != nil {
			return after, rewritten, err
		}
		rewritten += len(found)
		if len(found) > 0 {
			if err := s.eng.write(ctx, func(t *tx) error {
				if err := allowed(ctx, t); err != nil {
					return err
				}
				return t.rewritePacks(ctx, org, found, change)
			}); err != nil {
				return after, rewritten, err
			}
		}
		if n < page {
			return after, rewritten, nil
		}
	}
}

// rewritePacks changes packs of events. It reads them again, because another command may have changed
// them meanwhile, and its change must stay.
func (t *tx) rewritePacks(ctx context.Context, org string, numbers []any, change func(text string) string) error {
	return each(ctx, t, func(r rows) error {
		var last int64
		text := ""
		if err := r.Scan(&last, &text); err != nil {
			return err
		}
		if changed := change(text); changed != text {
			t.setPack(org, last, changed)
		}
		return nil
	}, `SELECT last_seq, `+t.d.packText+` FROM events WHERE last_seq IN (`+marks(len(numbers))+`)
		AND org_id = $`+strconv.Itoa(len(numbers)+1)+` ORDER BY last_seq`+t.d.forUpdate,
		append(slices.Clone(numbers), org)...)
}

// setPack replaces the text of a pack.
func (t *tx) setPack(org string, last int64, text string) {
	var data any = text
	if t.d == &sqliteDialect {
		data = new(packer).compress([]string{text})
	}
	t.exec(`UPDATE events SET data = $3 WHERE org_id = $1 AND last_seq = $2`, org, last, data)
}
