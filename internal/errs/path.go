package errs

import (
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Path leads to a part of a command: names of members and indexes of lists, such as
// {"skills", 0, "id"}. Names are the domain's own; transports have other spellings. An
// empty Path is the command as a whole.
type Path []any

// At makes a Path of names (string) and indexes (int).
func At(steps ...any) Path { return steps }

// PathOf makes a Path of steps that a decoder reports as text: digits are an index.
func PathOf(steps iter.Seq[string]) (p Path) {
	for step := range steps {
		if i, err := strconv.Atoi(step); err == nil && strconv.Itoa(i) == step {
			p = append(p, i)
		} else {
			p = append(p, step)
		}
	}
	return p
}

// Then is the path that leads on from p.
func (p Path) Then(steps ...any) Path { return slices.Concat(p, steps) }

// Equal reports whether both lead to the same part.
func (p Path) Equal(to Path) bool { return slices.Equal(p, to) }

// Head is the first name; empty: the Path is.
func (p Path) Head() string {
	if len(p) == 0 {
		return ""
	}
	name, _ := p[0].(string)
	return name
}

// String writes the path as Go would: skills[0].id.
func (p Path) String() string {
	var b strings.Builder
	for _, step := range p {
		switch step := step.(type) {
		case int:
			b.WriteString("[" + strconv.Itoa(step) + "]")
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		}
	}
	return b.String()
}

// Under puts fields of a part under the path of that part. It costs nothing if there are
// no fields.
func Under(fields []Field, path ...any) (out []Field) {
	for _, f := range fields {
		out = append(out, Field{Path: At(path...).Then(f.Path...), Message: f.Message})
	}
	return out
}
