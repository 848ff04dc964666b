package store

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-dev/parley/internal/identity"
)

// wipe replaces a user in texts that Parley wrote. Texts that people wrote are theirs, and stay.
type wipe struct {
	org         string
	id, newID   string
	ref, newRef string
	words       []string // to replace by the new name
	last        int64    // number of the last event in which the user was replaced

	newName string
	full    *strings.Replacer // whole JSON strings that name the user in other orgs
	values  *strings.Replacer // and those in the own org
	record  *strings.Replacer // and those in the record of the user
}

func newWipe(org string, gone erasing, as *identity.Member) *wipe {
	w := &wipe{
		org: org, id: gone.ID, newID: as.ID, newName: as.Name, newRef: as.Ref(),
		ref: identity.Principal{Org: org, Kind: identity.User, ID: gone.ID}.Ref(),
	}
	for _, word := range append([]string{gone.Name}, gone.Words...) {
		if word != "" && word != gone.ID {
			w.words = append(w.words, word)
		}
	}
	full := []string{quoted(org + "/" + w.ref), quoted(org + "/" + w.newRef)}
	values := append([]string{quoted(w.ref), quoted(w.newRef)}, full...)
	record := slices.Clone(values)
	for _, member := range []string{`"id":`, `"user":`} {
		record = append(record, member+quoted(w.id), member+quoted(w.newID))
	}
	w.full, w.values = strings.NewReplacer(full...), strings.NewReplacer(values...)
	w.record = strings.NewReplacer(record...)
	return w
}

// The name in the record of a member, and in an audit entry about a change of it.
var (
	recordName = regexp.MustCompile(`"name":"(?:[^"\\]|\\.)*"`)
	saidName   = regexp.MustCompile(`name "(?:[^"\\]|\\.)*"`)
)

// quoted returns a JSON string.
func quoted(s string) string {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil { // it is not UTF-8, so no JSON has it
		return `"\u0000"`
	}
	return string(b)
}

// foreign replaces the user in a pack of events of another org, which may have a user with the same id.
func (w *wipe) foreign(text string) string {
	before, after := "\t"+w.org+"/"+w.ref+"\t", "\t"+w.org+"/"+w.newRef+"\t"
	return strings.ReplaceAll(w.full.Replace(text), before, after)
}

// pack replaces the user in a pack of events of the org.
func (w *wipe) pack(text string) string {
	if !strings.Contains(text, w.ref) && !strings.Contains(text, `"user":`+quoted(w.id)) {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(w.event(line))
	}
	return out.String()
}

// event replaces the user in one line of a pack; see packEvent.
func (w *wipe) event(line string) string {
	fields := strings.SplitN(line, "\t", 8)
	if len(fields) != 8 {
		return line
	}
	own := `"user":` + quoted(w.id)
	if fields[4] == "member:"+w.ref || strings.HasPrefix(fields[4], "invitation:") && strings.Contains(fields[7], own) {
		// The record may have an earlier name.
		fields[7] = recordName.ReplaceAllLiteralString(w.record.Replace(fields[7]), `"name":`+quoted(w.newName))
	} else {
		fields[7] = w.values.Replace(fields[7])
	}
	for i := 4; i <= 6; i++ { // subject, actor and scope
		fields[i] = w.refs(fields[i])
	}
	if strings.HasPrefix(fields[4], "key:") && strings.Contains(fields[7], quoted(w.newRef)) {
		for _, word := range w.words { // the user may have named a key
			fields[7] = replaceWord(fields[7], word, w.newName)
		}
	}
	return strings.Join(fields, "\t")
}

// text replaces the user in a sentence.
func (w *wipe) text(s string) string {
	s = w.refs(s)
	for _, word := range w.words {
		s = replaceWord(s, word, w.newName)
	}
	return s
}

// refs replaces references to the user.
func (w *wipe) refs(s string) string {
	return replaceWord(replaceWord(s, w.org+"/"+w.ref, w.org+"/"+w.newRef), w.ref, w.newRef)
}

// replaceWord replaces a text where no letter, digit or further part of an id is next to it.
func replaceWord(s, old, replacement string) string {
	if old == "" || !strings.Contains(s, old) {
		return s
	}
	var out strings.Builder
	before := ' '
	for s != "" {
		at := strings.Index(s, old)
		if at < 0 {
			break
		}
		if at > 0 {
			before, _ = utf8.DecodeLastRuneInString(s[:at])
		}
		rest := s[at+len(old):]
		out.WriteString(s[:at])
		if inWord(before) || continues(rest) {
			out.WriteString(old)
		} else {
			out.WriteString(replacement)
		}
		before, _ = utf8.DecodeLastRuneInString(old)
		s = rest
	}
	out.WriteString(s)
	return out.String()
}

func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-/", r)
}

// continues reports whether a word goes on. A dot ends a sentence, unless an id goes on behind it.
func continues(rest string) bool {
	r, n := utf8.DecodeRuneInString(rest)
	if r == '.' {
		r, _ = utf8.DecodeRuneInString(rest[n:])
		return n < len(rest) && inWord(r)
	}
	return n > 0 && inWord(r)
}

// wipedColumns are the columns with texts that Parley wrote, with the key of their tables besides the
// org.
var wipedColumns = []struct {
	table, column string
	key           [2]copyColumn
}{
	{"audit", "detail", [2]copyColumn{{"at", true}, {"id", false}}},
	{"audit", "target", [2]copyColumn{{"at", true}, {"id", false}}},
	{"history", "data", [2]copyColumn{{"proposal_id", false}, {"seq", true}}},
}

// wipeTexts replaces the user in stored texts. The columns of refColumns have the new name already.
func (s Identity) wipeTexts(ctx context.Context, w *wipe) error {
	needles := append([]string{w.ref}, w.words...)
	for _, c := range wipedColumns {
		change := w.text
		if c.table == "history" {
			change = w.values.Replace
		}
		where, args := "1 = 0", []any{w.org}
		for _, needle := range needles {
			args = append(args, like(needle))
			where += fmt.Sprintf(" OR %s LIKE $%d ESCAPE '!'", c.column, len(args))
		}
		if err := s.wipeColumn(ctx, c.table, c.column, c.key[:], change, where, args...); err != nil {
			return fmt.Errorf("erase from %s: %w", c.table, err)
		}
	}
	// Entries about the user can have earlier names.
	earlier := func(text string) string {
		return saidName.ReplaceAllLiteralString(text, "name "+strconv.Quote(w.newName))
	}
	about := wipedColumns[0]
	if err := s.wipeColumn(ctx, about.table, about.column, about.key[:], earlier, `target = $2`, w.org,
		w.newRef); err != nil {
		return fmt.Errorf("erase from audit: %w", err)
	}
	// What a receiver responded, and outcomes of commands that can be repeated, are not worth a change.
	for _, needle := range append(needles, `"ID":`+quoted(w.id)) {
		for _, sql := range []string{
			`UPDATE webhook_deliveries SET response = '', error = '' WHERE org_id = $1
				AND (response LIKE $2 ESCAPE '!' OR error LIKE $2 ESCAPE '!')`,
			`DELETE FROM idempotency WHERE org_id = $1
				AND (outcome LIKE $2 ESCAPE '!' OR operation LIKE $2 ESCAPE '!' OR principal LIKE $2 ESCAPE '!')`,
		} {
			if err := s.step(ctx, w.org, sql, w.org, like(needle)); err != nil {
				return err
			}
		}
	}
	var err error
	if w.last, _, err = s.rewriteEvents(ctx, w.org, 0, w.pack); err != nil {
		return fmt.Errorf("erase from the events: %w", err)
	}
	// The index of subjects follows the log.
	for {
		n, err := Events(s).IndexSubjects(ctx, w.org)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
	}
	return s.step(ctx, w.org, `UPDATE event_subjects SET subject = $3 WHERE org_id = $1 AND subject = $2`, w.org,
		"member:"+w.ref, "member:"+w.newRef)
}

// like returns the pattern for texts that contain s, with ! as the escape character.
func like(s string) string {
	return "%" + strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(s) + "%"
}

// wipeColumn changes the texts of a column in the rows for which a condition holds. The org is the first
// of args.
func (s Identity) wipeColumn(
	ctx context.Context, table, column string, key []copyColumn, change func(string) string, where string, args ...any,
) error {
	t := copyTable{name: table, columns: append(slices.Clone(key), copyColumn{name: column})}
	scan := t.scanner()
	var found [][]any
	if err := each(ctx, s.eng, func(r rows) error {
		values, err := scan(r)
		if err != nil {
			return err
		}
		last := len(values) - 1
		if was := values[last].(string); change(was) != was {
			values = slices.Clone(values)
			values[last] = change(was)
			found = append(found, values)
		}
		return nil
	}, `SELECT `+strings.Join(t.names(), ", ")+` FROM `+table+` WHERE org_id = $1 AND (`+where+`)`, args...); err != nil {
		return err
	}
	update := `UPDATE ` + table + ` SET ` + column + ` = $4 WHERE org_id = $1 AND ` + key[0].name + ` = $2 AND ` +
		key[1].name + ` = $3`
	for part := range slices.Chunk(found, purgeRows) {
		if err := s.eng.write(ctx, func(x *tx) error {
			for _, values := range part {
				x.exec(update, append([]any{args[0]}, values...)...)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}
