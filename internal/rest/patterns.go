package rest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
)

// The patterns describe what the domain accepts, so that clients can validate a request before
// they send it. patterns_test.go compares them with the domain. They use only syntax that all
// common regular expression dialects share: no \p, no \s, no flags.
const (
	memberIDPattern = `[a-z0-9][a-z0-9._-]{0,63}`
	agentIDPattern  = "^" + memberIDPattern + "$"

	proposalIDPattern = "^prop-[0-9a-z]{26}$"

	principalPattern = "^(user|agent|service):" + memberIDPattern + "$"

	// assigneePattern allows the empty string, which unassigns.
	assigneePattern = "^((user|agent):" + memberIDPattern + ")?$"

	// redirectPattern has three forms: https, http to the user's own machine, and a custom
	// scheme of an app, which has a dot in its name or is followed by a host.
	redirectPattern = `^(https://` + hostPattern + `|http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?|` +
		`[a-z][a-z0-9]*(\.[a-z0-9]+)+:|` + notHTTP + `(-[a-z0-9]+)*://` + hostPattern + `)(/` + uriChars + `)*(\?` + uriChars + `)?$`
	notHTTP     = `(h([a-su-z0-9]|t([a-su-z0-9]|t([a-oq-z0-9]|p[a-z0-9])))[a-z0-9]*|[a-gi-z][a-z0-9]*|h|ht|htt)`
	hostPattern = `[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?`
	uriChars    = `[A-Za-z0-9._~!$&'()*+,;=:@-]*`

	idempotencyPattern = "^[!-~]([ -~]*[!-~])?$"
	base64Pattern      = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}(==)?|[A-Za-z0-9+/]{3}=?|[A-Za-z0-9+/]{4})$"
)

// scopePattern matches the given scopes and agent restrictions.
func scopePattern(scopes ...identity.Scope) string {
	return "^(" + strings.Join(names(scopes), "|") + `|agent:(\*|` + memberIDPattern + "))$"
}

const (
	// storable matches text that every database engine can store.
	storable = `^[^\x00]*$`
	// idText matches ids of A2A.
	idText = `^[^\x00-\x1f]*$`
)

// refused returns the characters that the form does not allow, as the inside of a bracket
// expression. It asks the form itself, so that the document matches what is checked.
func refused(f text.Form) string { return classOf(func(r rune) bool { return !f.Allows(r) }) }

// formPattern matches text of the form. Required text must not be blank, and a line or a name
// must have a visible character, as far as a pattern can express that.
func formPattern(f text.Form, required bool) string {
	bad := refused(f)
	if !required {
		return "^[^" + bad + "]*$"
	}
	unseen := white()
	if f == text.Line {
		unseen = refused(text.Name) + unseen
	}
	return "^[^" + bad + "]*[^" + bad + unseen + "][^" + bad + "]*$"
}

var (
	prosePattern    = sync.OnceValue(func() string { return formPattern(text.Prose, false) })
	requiredPattern = sync.OnceValue(func() string { return formPattern(text.Prose, true) })
	plainPattern    = sync.OnceValue(func() string { return formPattern(text.Plain, false) })
	titlePattern    = sync.OnceValue(func() string { return formPattern(text.Line, true) })
	namePattern     = sync.OnceValue(func() string { return formPattern(text.Name, true) })
)

// white lists the white space characters.
var white = sync.OnceValue(func() string {
	return classOf(func(r rune) bool { return unicode.Is(unicode.White_Space, r) })
})

// maxClass is the last character that a pattern can name. JavaScript without the u flag sees
// later characters as two.
const maxClass = 0xffff

// classOf returns the inside of a bracket expression with the characters for which in is true.
func classOf(in func(rune) bool) string {
	var b strings.Builder
	for r := rune(0); r <= maxClass; r++ {
		if !in(r) || unicode.Is(unicode.Cs, r) {
			continue
		}
		first := r
		for r < maxClass && in(r+1) && !unicode.Is(unicode.Cs, r+1) {
			r++
		}
		b.WriteString(classChar(first))
		if r > first {
			b.WriteString("-" + classChar(r))
		}
	}
	return b.String()
}

// classChar writes a character for use inside of brackets. Characters above ASCII are escaped
// when the document is rendered.
func classChar(r rune) string {
	switch {
	case r < ' ' || r >= 0x7f && r <= 0xff:
		return fmt.Sprintf(`\x%02x`, r)
	case strings.ContainsRune(`\]^-`, r):
		return `\` + string(r)
	}
	return string(r)
}

// matching sets the pattern of a schema, as an extension. huma would compile its Pattern field at every
// start, for a validation that all operations skip; these took longer than the rest of the API.
func matching(pattern string) func(*huma.Schema) {
	return func(s *huma.Schema) { extend(s, "pattern", pattern) }
}

// eachItem edits the schema of an array's items.
func eachItem(edit ...func(*huma.Schema)) func(*huma.Schema) {
	return func(s *huma.Schema) {
		for _, e := range edit {
			e(s.Items)
		}
	}
}

// Rules between the fields of a body. huma's Schema has no fields for if and then, so they go
// into its extensions.

// ifThen applies then to objects that have the fields, and otherwise, unless nil, to the rest.
func ifThen(s *huma.Schema, fields []string, then, otherwise *huma.Schema) {
	extend(s, "if", withFields(fields...))
	extend(s, "then", then)
	if otherwise != nil {
		extend(s, "else", otherwise)
	}
}

func extend(s *huma.Schema, word string, value any) {
	if s.Extensions == nil {
		s.Extensions = map[string]any{}
	}
	s.Extensions[word] = value
}

// withFields returns the schema of an object that has all the fields.
func withFields(fields ...string) *huma.Schema {
	s := &huma.Schema{Required: fields, Properties: map[string]*huma.Schema{}}
	for _, f := range fields {
		s.Properties[f] = &huma.Schema{}
	}
	return s
}

// noneOf returns the schema of an object that has none of the fields.
func noneOf(fields ...string) *huma.Schema { return &huma.Schema{Not: anyField(fields...)} }

// anyField returns the schema of an object that has at least one of the fields.
func anyField(fields ...string) *huma.Schema {
	if len(fields) == 1 {
		return withFields(fields[0])
	}
	var out huma.Schema
	for _, f := range slices.Sorted(slices.Values(fields)) {
		out.AnyOf = append(out.AnyOf, withFields(f))
	}
	return &out
}
