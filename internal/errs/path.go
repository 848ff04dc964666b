package errs

import (
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Path locates a part of a command: names of members and indexes of lists, such as {"skills", 0,
// "id"}. Names are the domain's own; transports spell them differently. An empty Path is the
// command as a whole.
type Path []any

// At makes a Path from names (string) and indexes (int).
func At(steps ...any) Path { return steps }

// PathOf makes a Path from the steps that a decoder reports as text. Decimal digits are an index.
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

// Then appends steps to a copy of p.
func (p Path) Then(steps ...any) Path { return slices.Concat(p, steps) }

// Equal reports whether both paths are the same.
func (p Path) Equal(to Path) bool { return slices.Equal(p, to) }

// Head returns the first name, or "" for an empty path.
func (p Path) Head() string {
	if len(p) == 0 {
		return ""
	}
	name, _ := p[0].(string)
	return name
}

// String writes the path in Go syntax: skills[0].id.
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

// Under prefixes the paths of fields with path. It allocates nothing if there are no fields.
func Under(fields []Field, path ...any) (out []Field) {
	for _, f := range fields {
		f.Path = At(path...).Then(f.Path...)
		out = append(out, f)
	}
	return out
}
