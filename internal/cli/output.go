package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// clean makes text safe to print on a terminal. It removes control characters, which a
// terminal obeys, and marks that reorder text, which deceive a reader. Line breaks and tabs
// stay.
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

// printRaw prints JSON that was encoded elsewhere. Outside of strings JSON has only ASCII,
// so a hostile character can be escaped wherever it occurs without changing the meaning.
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

// palette colours text for people, if stdout is a terminal.
type palette bool

func (e *env) palette() palette {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	return palette(e.width() > 0)
}

// width returns the number of columns of the terminal; 0 if stdout is not a terminal.
func (e *env) width() int {
	if e.columns > 0 {
		return e.columns
	}
	f, ok := e.stdout.(*os.File)
	if !ok {
		return 0
	}
	width, terminal := terminalWidth(f)
	if !terminal {
		return 0
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if width <= 0 {
		return 80
	}
	return width
}

func (p palette) paint(code, s string) string {
	if !p || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p palette) bold(s string) string { return p.paint("1", s) }
func (p palette) dim(s string) string  { return p.paint("2", s) }

// status colours the status of things: what waits, what succeeded, what failed.
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

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// joined lists names of any type.
func joined[T ~string](names []T) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return strings.Join(out, ", ")
}

// created prints the outcome of a command on the store: the value as JSON, or its success line.
func (e *env) created(asJSON bool, v any, format string, args ...any) error {
	if asJSON {
		return e.printJSON(v)
	}
	return e.say(format, args...)
}

// say prints the success line of a command.
func (e *env) say(format string, args ...any) error {
	_, err := fmt.Fprintln(e.stdout, cleanLine(fmt.Sprintf(format, args...)))
	return err
}
