package store

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// combine merges the one-row statements of independent writes: those with the same text become few
// statements with many rows, which cost PostgreSQL much less. The other statements keep their order
// and come first. The merged ones keep the order of their first.
func combine(ss []statement) []statement {
	var out []statement
	var texts []string
	rows := map[string][]statement{}
	for _, s := range ss {
		if !s.insert && s.many == nil {
			out = append(out, s)
			continue
		}
		if rows[s.sql] == nil {
			texts = append(texts, s.sql)
		}
		rows[s.sql] = append(rows[s.sql], s)
	}
	for _, text := range texts {
		for left := rows[text]; len(left) > 0; {
			// Powers of two: each number of rows is another prepared statement.
			n := 1
			for 2*n <= min(len(left), maxRows) {
				n *= 2
			}
			args := make([]any, 0, n*len(left[0].args))
			for _, s := range left[:n] {
				args = append(args, s.args...)
			}
			out = append(out, statement{sql: left[0].ofRows(n), args: args})
			left = left[n:]
		}
	}
	return out
}

// ofRows returns the text of the statement for so many rows.
func (s *statement) ofRows(n int) string {
	switch {
	case n == 1:
		return s.sql
	case s.many != nil:
		return ofRows(s.many.upToValues, n) + s.many.rest
	}
	return ofRows(s.sql, n)
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

// maxRows limits the rows of one statement. PostgreSQL allows 65,535 parameters.
const maxRows = 64

var rowTexts sync.Map // rowsKey to string

type rowsKey struct {
	text string
	rows int
}

var parameter = regexp.MustCompile(`\$\d+`)

// ofRows returns the text, which ends with one row of VALUES, with so many rows.
func ofRows(text string, rows int) string {
	if known, ok := rowTexts.Load(rowsKey{text, rows}); ok {
		return known.(string)
	}
	const values = "VALUES ("
	row := text[strings.Index(text, values)+len(values)-1:]
	width := 0
	for _, mark := range parameter.FindAllString(row, -1) {
		width = max(width, numberOf(mark))
	}
	var b strings.Builder
	b.WriteString(text)
	for i := 1; i < rows; i++ {
		b.WriteString(", ")
		b.WriteString(parameter.ReplaceAllStringFunc(row, func(mark string) string {
			return "$" + strconv.Itoa(i*width+numberOf(mark))
		}))
	}
	rowTexts.Store(rowsKey{text, rows}, b.String())
	return b.String()
}

// numberOf returns the number of a parameter.
func numberOf(mark string) int {
	n, _ := strconv.Atoi(mark[1:]) // the pattern allows only digits
	return n
}
