package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// clean makes text safe to print on a terminal: control characters (a terminal
// obeys them) and marks that reorder text (a reader is deceived by them) are left
// out; line breaks and tabs stay.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case hostile(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// cleanLine is clean for a cell of a table: it also joins lines.
func cleanLine(s string) string {
	return strings.Join(strings.FieldsFunc(clean(s), func(r rune) bool { return r == '\n' || r == '\t' }), " ")
}

func hostile(r rune) bool {
	return unicode.IsControl(r) ||
		r == 0x061c || r == 0x200e || r == 0x200f || r == 0x2028 || r == 0x2029 ||
		r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// printJSON prints a value as one indented object.
func (e *env) printJSON(v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return e.printRaw(data)
}

// printRaw prints JSON that somebody else encoded. Outside of strings JSON has
// only ASCII, so a hostile character can be written as an escape wherever it
// stands, and the meaning stays the same.
func (e *env) printRaw(data []byte) error {
	var b bytes.Buffer
	for _, r := range string(bytes.TrimSpace(data)) {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || !hostile(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('\n')
	_, err := e.stdout.Write(b.Bytes())
	return err
}

// palette colours what people read, if they read it on a terminal.
type palette bool

func (e *env) palette() palette {
	f, ok := e.stdout.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	st, err := f.Stat()
	return palette(err == nil && st.Mode()&os.ModeCharDevice != 0)
}

func (p palette) paint(code, s string) string {
	if !p || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p palette) bold(s string) string { return p.paint("1", s) }
func (p palette) dim(s string) string  { return p.paint("2", s) }

// status colours what somebody scans a list for: what waits, what went well, what did not.
func (p palette) status(s string) string {
	switch strings.TrimSpace(s) {
	case "open", "in_progress", "working", "input-required", "auth-required", "busy":
		return p.paint("36", s)
	case "approved", "resolved", "done", "completed", "available":
		return p.paint("32", s)
	case "rejected", "canceled", "failed", "dead":
		return p.paint("31", s)
	}
	return p.dim(s)
}

// table prints aligned columns. The last column is not padded, so long titles
// wrap as the terminal likes.
type table struct {
	head   []string
	rows   [][]string
	colour map[int]func(string) string // by column
}

func (t *table) add(cells ...string) {
	for i, c := range cells {
		cells[i] = cleanLine(c)
	}
	t.rows = append(t.rows, cells)
}

func (t *table) write(w io.Writer, p palette) error {
	width := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, c := range row {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	line := func(row []string, paint func(i int, s string) string) {
		for i, c := range row {
			if i < len(row)-1 {
				c += strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			}
			b.WriteString(paint(i, c))
			if i < len(row)-1 {
				b.WriteString("  ")
			}
		}
		b.WriteByte('\n')
	}
	line(t.head, func(_ int, s string) string { return p.dim(s) })
	for _, row := range t.rows {
		line(row, func(i int, s string) string {
			if f := t.colour[i]; f != nil {
				return f(s)
			}
			return s
		})
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// record prints one thing: a list of named values, then its longer texts.
type record struct {
	b strings.Builder
	p palette
}

func (r *record) heading(s string) { r.b.WriteString(r.p.bold(cleanLine(s)) + "\n") }

func (r *record) field(name, value string) {
	if value != "" {
		fmt.Fprintf(&r.b, "%s  %s\n", r.p.dim(fmt.Sprintf("%-14s", name)), value)
	}
}

func (r *record) text(name, value string) {
	if strings.TrimSpace(value) == "" {
		return
	}
	r.b.WriteString("\n" + r.p.dim(name) + "\n")
	for line := range strings.Lines(strings.TrimRight(clean(value), "\n")) {
		r.b.WriteString("  " + line)
	}
	r.b.WriteString("\n")
}

func when(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04")
}

func timestamp(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.UTC().Format(time.RFC3339Nano)
	return &s
}
