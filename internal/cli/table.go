package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"github.com/parley-dev/parley/sdk/client"
)

// table prints aligned columns. On a terminal it is made to fit: ids are shortened to
// unique prefixes, columns are left out, and the last column is cut.
type table struct {
	head   []string
	rows   [][]string
	ids    string                      // key in idKinds of the column ID; "": those ids are not shortened
	colour map[int]func(string) string // by column
	drop   []string                    // columns to leave out on a narrow terminal, the first one first
	whole  bool                        // the last column is not cut
	wide   bool                        // --wide
}

// wideFlag is part of every command that prints a table.
type wideFlag struct {
	Wide bool `help:"Print all columns and whole ids, however narrow the terminal is."`
}

const (
	gap      = 2  // between columns
	enough   = 24 // for the last column; if it has less, another column is left out
	leastCut = 8  // of the last column
)

func (t *table) add(cells ...string) {
	for i, c := range cells {
		cells[i] = cleanLine(c)
	}
	t.rows = append(t.rows, cells)
}

// widths returns how wide each column is.
func (t *table) widths() []int {
	out := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, c := range row {
			out[i] = max(out[i], displayWidth(c))
		}
	}
	return out
}

// fit makes the table fit into width columns as far as possible. It reports whether it
// left anything out.
func (t *table) fit(width int) bool {
	if width == 0 || t.wide || t.room(width, 0) >= 0 {
		return false
	}
	t.shortenIDs()
	for _, name := range t.drop {
		if t.room(width, enough) >= 0 {
			break
		}
		t.remove(slices.Index(t.head, name))
	}
	if !t.whole {
		t.cut(max(t.room(width, leastCut), leastCut))
	}
	return true
}

// room returns how many columns the terminal has left: those beside the whole table, or,
// if least is not 0, those for the last column. It is negative if there is too little.
func (t *table) room(width, least int) int {
	widths := t.widths()
	last := len(widths) - 1
	for _, w := range widths[:last] {
		width -= w + gap
	}
	switch {
	case least == 0 || t.whole:
		return width - widths[last]
	case width < min(least, widths[last]):
		return -1
	}
	return width
}

// shortenIDs shortens ids if commands accept their prefixes.
func (t *table) shortenIDs() {
	kind, known := idKinds[t.ids]
	i := slices.Index(t.head, "ID")
	if !known || i < 0 {
		return
	}
	column := make([]string, len(t.rows))
	for j, row := range t.rows {
		column[j] = row[i]
	}
	for j, id := range shortIDs(kind.prefix, column) {
		t.rows[j][i] = id
	}
}

func (t *table) remove(column int) {
	t.head = slices.Delete(slices.Clone(t.head), column, column+1)
	for i, row := range t.rows {
		t.rows[i] = slices.Delete(slices.Clone(row), column, column+1)
	}
	moved := map[int]func(string) string{}
	for i, f := range t.colour {
		switch {
		case i < column:
			moved[i] = f
		case i > column:
			moved[i-1] = f
		}
	}
	t.colour = moved
}

// cut shortens the last column to so many columns of the terminal.
func (t *table) cut(room int) {
	for _, row := range t.rows {
		last := &row[len(row)-1]
		if displayWidth(*last) <= room {
			continue
		}
		used := 1 // of the ellipsis
		for i, r := range *last {
			if used += runeWidth(r); used > room {
				*last = strings.TrimRight((*last)[:i], " ") + "…"
				break
			}
		}
	}
}

// displayWidth returns how many columns of a terminal a text takes.
func displayWidth(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

func (t *table) write(w io.Writer, p palette) error {
	widths := t.widths()
	var b strings.Builder
	line := func(row []string, paint func(i int, s string) string) {
		for i, c := range row {
			if i < len(row)-1 {
				c += strings.Repeat(" ", widths[i]-displayWidth(c))
			}
			b.WriteString(paint(i, c))
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", gap))
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

const wideHint = "--wide shows all of it"

// list prints a table and which part of the whole it is.
func (e *env) list(t *table, one, many string, total, page int, more bool) error {
	noun := many
	if total == 1 {
		noun = one
	}
	if len(t.rows) == 0 {
		if total == 0 {
			_, err := fmt.Fprintf(e.stdout, "no %s\n", noun)
			return err
		}
		_, err := fmt.Fprintf(e.stdout, "page %d is past the end; there are %d %s\n", page, total, noun)
		return err
	}
	foot := fmt.Sprintf("%d of %d %s", len(t.rows), total, noun)
	if page > 1 || more {
		foot += fmt.Sprintf(", page %d", page)
	}
	if more {
		foot += fmt.Sprintf("; more with --page %d", page+1)
	}
	return e.table(t, foot)
}

// pages prints one page of a list that has cursors, and how to get the next.
func (e *env) pages(t *table, none, next string) error {
	if len(t.rows) == 0 {
		_, err := fmt.Fprintln(e.stdout, none)
		return err
	}
	foot := ""
	if next != "" {
		foot = "more with --cursor " + cleanLine(next)
	}
	return e.table(t, foot)
}

// all prints a list that has no pages.
func (e *env) all(asJSON bool, v any, t *table) error {
	if asJSON {
		return e.printJSON(v)
	}
	return e.table(t, "")
}

// table prints a table and a line below it.
func (e *env) table(t *table, foot string) error {
	p := e.palette()
	if t.fit(e.width()) {
		foot = strings.TrimPrefix(foot+"; "+wideHint, "; ")
	}
	if err := t.write(e.stdout, p); err != nil || foot == "" {
		return err
	}
	_, err := fmt.Fprintln(e.stdout, p.dim(foot))
	return err
}

// everything reads every page of a list, whose records are the member name: as they came,
// and each decoded for row.
func everything[T any](
	name string, list func(...client.Option) (*client.Page[T], error), row func(*T),
) ([]json.RawMessage, error) {
	query := url.Values{"limit": {"200"}}
	out := []json.RawMessage{}
	for {
		var res client.Response
		page, err := list(client.WithQuery(query), client.WithResponse(&res))
		if err != nil {
			return nil, err
		}
		var raw map[string]json.RawMessage
		var records []json.RawMessage
		if err := json.Unmarshal(res.Body, &raw); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw[name], &records); err != nil {
			return nil, fmt.Errorf("unexpected response of the server: it has no list %q", name)
		}
		out = append(out, records...)
		for i := range page.Items {
			row(&page.Items[i])
		}
		if page.Next == "" {
			return out, nil
		}
		query.Set("cursor", page.Next)
	}
}

// cursorFlags page through a list that has cursors.
type cursorFlags struct {
	wideFlag `embed:""`
	Limit    *int    `help:"Results on a page." placeholder:"N"`
	Cursor   *string `help:"Continue where the previous page ended." placeholder:"CURSOR"`
}

func (f *cursorFlags) query() url.Values {
	q := url.Values{}
	set(q, "limit", f.Limit)
	set(q, "cursor", f.Cursor)
	return q
}

// pageFlags page through a list that has page numbers.
type pageFlags struct {
	wideFlag `embed:""`
	Page     *int `help:"Page number, from 1." placeholder:"N"`
	Limit    *int `help:"Results on a page, at most 100." placeholder:"N"`
}

func (f *pageFlags) query() url.Values {
	q := url.Values{}
	set(q, "page", f.Page)
	set(q, "limit", f.Limit)
	return q
}

// more reports whether pages follow, where the server does not say it.
func (f *pageFlags) more(page, total int) bool {
	limit := 20
	if f.Limit != nil {
		limit = *f.Limit
	}
	return page*limit < total
}

// set passes a value on as it was given, also an empty or invalid one: the server judges
// it, and it must not turn into a default here.
func set[T string | int](q url.Values, name string, value *T) {
	if value == nil {
		return
	}
	switch v := any(*value).(type) {
	case string:
		q.Set(name, v)
	case int:
		q.Set(name, strconv.Itoa(v))
	}
}
