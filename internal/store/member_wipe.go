package store

import (
	"regexp"
	"slices"
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
	words       []string         // to replace by the new name
	last        map[string]int64 // by org, the number of the last event in which the user was replaced
	changed     map[string]bool  // other orgs whose events have changed

	newName string
	full    *strings.Replacer // whole JSON strings that name the user in other orgs
	values  *strings.Replacer // and those in the own org
	record  *strings.Replacer // and those in the record of the user
}

func newWipe(org string, gone erasing, as *identity.Member) *wipe {
	w := &wipe{
		org: org, id: gone.ID, newID: as.ID, newName: as.Name, newRef: as.Ref(),
		ref: identity.Principal{Org: org, Kind: identity.User, ID: gone.ID}.Ref(), last: map[string]int64{},
		changed: map[string]bool{},
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
		fields[7] = recordName.ReplaceAllStringFunc(fields[7], func(member string) string { // the user may have named a key
			return `"name":` + w.names(strings.TrimPrefix(member, `"name":`))
		})
	}
	return strings.Join(fields, "\t")
}

// text replaces the user in a sentence.
func (w *wipe) text(s string) string { return w.names(w.refs(s)) }

// names replaces the names of the user. A name can be any word, such as "agent": use it only for texts
// about the user.
func (w *wipe) names(s string) string {
	for _, word := range w.words {
		s = replaceBetween(s, word, w.newName, nameParts)
	}
	return s
}

// refs replaces references to the user.
func (w *wipe) refs(s string) string {
	s = replaceWord(s, w.org+"/"+w.ref, w.org+"/"+w.newRef)
	return replaceWord(s, w.ref, w.newRef)
}

// Characters that can be inside of a reference and of a word. Scopes and references have colons, and no
// part of them is a name.
const (
	refParts  = "_-/"
	nameParts = refParts + ":"
)

// replaceWord replaces a text where no letter, digit or further part of an id is next to it.
func replaceWord(s, old, replacement string) string {
	return replaceBetween(s, old, replacement, refParts)
}

// replaceBetween replaces a text where no letter, digit or one of parts is next to it.
func replaceBetween(s, old, replacement, parts string) string {
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
		if inWord(before, parts) || continues(rest, parts) {
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

func inWord(r rune, parts string) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(parts, r)
}

// continues reports whether a word goes on. A dot or a colon ends it, unless a letter follows.
func continues(rest, parts string) bool {
	r, n := utf8.DecodeRuneInString(rest)
	if r == '.' || r == ':' && strings.ContainsRune(parts, r) {
		r, _ = utf8.DecodeRuneInString(rest[n:])
		return n < len(rest) && inWord(r, parts)
	}
	return n > 0 && inWord(r, parts)
}
