package store

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// combine merges the one-row statements of independent writes: those with the same text become one
// statement with many rows, which costs PostgreSQL much less. The other statements keep their order
// and come first. The merged ones keep the order of their first.
func combine(ss []statement) []statement {
	var out, merged []statement
	var groups []rowsKey
	rows := map[rowsKey][]statement{}
	for _, s := range ss {
		kinds, ok := kindsOf(s.args)
		switch {
		case !s.insert && s.many == nil:
			out = append(out, s)
			continue
		case !ok:
			merged = append(merged, statement{sql: s.sql, args: s.args})
			continue
		}
		key := rowsKey{s.sql, kinds}
		if rows[key] == nil {
			groups = append(groups, key)
		}
		rows[key] = append(rows[key], s)
	}
	for _, key := range groups {
		group := rows[key]
		if len(group) == 1 {
			out = append(out, statement{sql: key.text, args: group[0].args})
			continue
		}
		out = append(out, statement{sql: group[0].ofRows(key.kinds), args: columnsOf(group, key.kinds)})
	}
	return append(out, merged...)
}

// rowsKey is what the statements that are merged have in common: their text, and the kinds of their
// arguments, one character for each.
type rowsKey struct{ text, kinds string }

// Kinds of arguments. Lists are sent as text, because PostgreSQL has no arrays of arrays.
const (
	kindText   = 't'
	kindNumber = 'n'
	kindList   = 'l'
)

// kindsOf returns the kinds of arguments. ok is false if there are others.
func kindsOf(args []any) (kinds string, ok bool) {
	out := make([]byte, len(args))
	for i, a := range args {
		switch a.(type) {
		case string:
			out[i] = kindText
		case int, int64:
			out[i] = kindNumber
		case []string:
			out[i] = kindList
		default:
			return "", false
		}
	}
	return string(out), true
}

// columnsOf returns the arguments of all statements as one array for each parameter.
func columnsOf(ss []statement, kinds string) []any {
	out := make([]any, len(kinds))
	for at, kind := range kinds {
		if kind == kindNumber {
			column := make([]int64, len(ss))
			for i, s := range ss {
				column[i] = number(s.args[at])
			}
			out[at] = column
			continue
		}
		column := make([]string, len(ss))
		for i, s := range ss {
			if list, ok := s.args[at].([]string); ok {
				column[i] = arrayText(list)
			} else {
				column[i] = s.args[at].(string)
			}
		}
		out[at] = column
	}
	return out
}

func number(arg any) int64 {
	if n, ok := arg.(int); ok {
		return int64(n)
	}
	return arg.(int64)
}

// arrayText returns the text that PostgreSQL casts to an array of texts.
func arrayText(list []string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, item := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('"')
		_, _ = arrayEscapes.WriteString(&b, item) // a Builder returns no error
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}

var arrayEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// ofRows returns the text of the statement for any number of rows.
func (s *statement) ofRows(kinds string) string {
	text, rest := s.sql, ""
	if s.many != nil {
		text, rest = s.many.upToValues, s.many.rest
	}
	key := rowsKey{s.sql, kinds}
	if known, ok := rowTexts.Load(key); ok {
		return known.(string)
	}
	made := ofRows(text, kinds) + rest
	rowTexts.Store(key, made)
	return made
}

// maxBundled limits the parts of one statement: each combination is another prepared statement.
const maxBundled = 4

// bundle appends the last statements of a write. It makes one statement of them and of the inserts,
// on which no other statement of the write depends: each statement has a cost of its own. Their
// order gets lost, so they must be of different kinds.
func bundle(ss, last []statement) []statement {
	var parts [maxBundled]string
	var args []any
	n, kept := 0, make([]statement, 0, len(ss)+1)
	for i, s := range slices.Concat(ss, last) {
		switch {
		case i < len(ss) && (!s.insert || s.unless != nil):
			kept = append(kept, s)
		case n == maxBundled || slices.Contains(parts[:n], s.sql):
			return append(ss, last...)
		default:
			parts[n] = s.sql
			args = append(args, s.args...)
			n++
		}
	}
	if n < 2 {
		return append(ss, last...)
	}
	return append(kept, statement{sql: bundled(parts, n), args: args})
}

var bundledTexts sync.Map // [maxBundled]string to string

// bundled returns the text of one statement with n parts.
func bundled(parts [maxBundled]string, n int) string {
	if known, ok := bundledTexts.Load(parts); ok {
		return known.(string)
	}
	var b strings.Builder
	used := 0
	for i, part := range parts[:n] {
		width := 0
		part = parameter.ReplaceAllStringFunc(part, func(mark string) string {
			width = max(width, numberOf(mark))
			return "$" + strconv.Itoa(used+numberOf(mark))
		})
		used += width
		switch i {
		case 0:
			b.WriteString("WITH part0 AS (" + part + ")")
		case n - 1:
			b.WriteString(" " + part)
		default:
			b.WriteString(", part" + strconv.Itoa(i) + " AS (" + part + ")")
		}
	}
	bundledTexts.Store(parts, b.String())
	return b.String()
}

var rowTexts sync.Map // rowsKey to string

var parameter = regexp.MustCompile(`\$\d+`)

// ofRows returns the text, which ends with one row of VALUES, with the rows that the parameters
// contain: the n-th one is a column of them.
func ofRows(text, kinds string) string {
	at := strings.Index(text, "VALUES (")
	row := text[at+len("VALUES (") : len(text)-1]
	var arrays, names []string
	for i, kind := range kinds {
		array := "::text[]"
		if kind == kindNumber {
			array = "::bigint[]"
		}
		n := strconv.Itoa(i + 1)
		arrays, names = append(arrays, "$"+n+array), append(names, "c"+n)
	}
	return text[:at] + "SELECT " + parameter.ReplaceAllStringFunc(row, func(mark string) string { return "r.c" + mark[1:] }) +
		" FROM unnest(" + strings.Join(arrays, ", ") + ") AS r (" + strings.Join(names, ", ") + ")"
}

// numberOf returns the number of a parameter.
func numberOf(mark string) int {
	n, _ := strconv.Atoi(mark[1:]) // the pattern allows only digits
	return n
}
