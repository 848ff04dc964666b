package web

import (
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/proposal"
)

//go:embed templates
var templateFiles embed.FS

// templates are the parsed templates. Each is parsed at its first use: a server that only programs
// call needs none. Tests parse all.
type templates struct {
	pages map[string]parsed
	sign  parsed // the pages without an org
}

// parsed returns a template. All calls return the same.
type parsed func() (*template.Template, error)

// newTemplates finds the templates. Each file in templates/pages is a page of an org: it defines
// "main", which layout.html includes. sign.html has the pages without an org.
func newTemplates(files assets, now func() time.Time) (*templates, error) {
	base := sync.OnceValues(func() (*template.Template, error) {
		return template.New("layout.html").Funcs(funcs(files, now)).
			ParseFS(templateFiles, "templates/layout.html", "templates/partials*.html")
	})
	within := func(file string) parsed {
		return sync.OnceValues(func() (*template.Template, error) {
			t, err := base()
			if err == nil {
				t, err = t.Clone()
			}
			if err != nil {
				return nil, err
			}
			return t.ParseFS(templateFiles, file)
		})
	}
	names, err := fs.Glob(templateFiles, "templates/pages/*.html")
	if err != nil {
		return nil, err
	}
	out := &templates{pages: map[string]parsed{}, sign: within("templates/sign.html")}
	for _, name := range names {
		out.pages[strings.TrimSuffix(path.Base(name), ".html")] = within(name)
	}
	return out, nil
}

// page returns the template of a page of an org.
func (t *templates) page(name string) (*template.Template, error) {
	p := t.pages[name]
	if p == nil {
		return nil, errs.New(errs.Internal, "page.unknown", "unknown page %q", name)
	}
	return p()
}

// funcs returns the functions of templates. They only format.
func funcs(files assets, now func() time.Time) template.FuncMap {
	return template.FuncMap{
		"icon":     icon,
		"static":   files.url,
		"when":     func(t time.Time) moment { return newMoment(t, now()) },
		"who":      newWho,
		"meter":    newMeter,
		"count":    count,
		"dict":     dict,
		"plural":   plural,
		"words":    func(s any) string { return strings.ReplaceAll(fmt.Sprint(s), "_", " ") },
		"add":      func(a, b int) int { return a + b },
		"short":    shortID,
		"token":    rand.Text,
		"smooth":   func() template.HTMLAttr { return smooth },
		"markdown": markdown,
		"tone":     func(s proposal.Status) string { return statusClass[s] },
		"initial": func(name string) string {
			for _, r := range name {
				return strings.ToUpper(string(r))
			}
			return ""
		},
	}
}

// smooth has the attributes, beside hx-post, of a form that updates the page in place when scripts
// run: the form is sent in the background, and the main part of the response is morphed into the
// page. A second submission is dropped while one is in flight.
const smooth = `hx-target="#main" hx-select="#main" hx-swap="outerMorph" hx-sync="this:drop"`

// dict builds a map of names and values, for partials with several parameters.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, errors.New("dict: odd number of arguments")
	}
	out := make(map[string]any, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: %v is not a string", pairs[i])
		}
		out[name] = pairs[i+1]
	}
	return out, nil
}

// moment is a time as pages show it: relative, with the exact time as a tooltip.
type moment struct {
	ISO  string // for the datetime attribute
	Ago  string // "4 min ago", "in 3 days"
	Full string // "15 Nov 2026, 02:33 UTC"
	Zero bool
}

func newMoment(t, now time.Time) moment {
	if t.IsZero() {
		return moment{Zero: true, Ago: "never"}
	}
	t = t.UTC()
	return moment{ISO: t.Format(time.RFC3339), Ago: ago(t, now), Full: t.Format("2 Jan 2006, 15:04") + " UTC"}
}

// ago formats the distance of t from now, in the largest unit that fits.
func ago(t, now time.Time) string {
	d := now.Sub(t)
	past := d >= 0
	if !past {
		d = -d
	}
	say := func(n int64, one, many string) string {
		if past {
			return plural(n, one, many) + " ago"
		}
		return "in " + plural(n, one, many)
	}
	switch {
	case d < 10*time.Second && past:
		return "just now"
	case d < time.Minute:
		return say(int64(d/time.Second), "s", "s")
	case d < time.Hour:
		return say(int64(d/time.Minute), "min", "min")
	case d < 24*time.Hour:
		return say(int64(d/time.Hour), "h", "h")
	case d < 30*24*time.Hour:
		return say(int64(d/(24*time.Hour)), "day", "days")
	default:
		return t.UTC().Format("2 Jan 2006")
	}
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

// count formats a number with thin spaces between thousands.
func count(n any) string {
	s := fmt.Sprint(n)
	if v, err := strconv.ParseInt(s, 10, 64); err != nil || v < 10_000 && v > -10_000 {
		return s
	}
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// who is a principal as pages show it.
type who struct {
	Ref  string
	Name string // id without the kind
	Icon string
	Kind string // kind in words
}

func newWho(ref string) who {
	kind, id, ok := strings.Cut(ref, ":")
	if !ok {
		return who{Ref: ref, Name: ref, Icon: "settings", Kind: "the operator"}
	}
	switch kind {
	case "agent":
		return who{ref, id, "agent", "agent"}
	case "service":
		return who{ref, id, "service", "service"}
	default:
		return who{ref, id, "user", "person"}
	}
}

// meter is a bar of votes for and against, 100 units wide.
type meter struct{ For, AgainstX, Against int }

func newMeter(votesFor, votesAgainst int) meter {
	all := votesFor + votesAgainst
	if all == 0 {
		return meter{}
	}
	const gap = 2
	f := votesFor * (100 - gap) / all
	if votesAgainst == 0 {
		return meter{For: 100}
	}
	if votesFor == 0 {
		return meter{Against: 100}
	}
	return meter{For: f, AgainstX: f + gap, Against: 100 - gap - f}
}

// shortID returns the beginning of an id, enough to tell two apart.
func shortID(id string) string {
	if len(id) <= 17 {
		return id
	}
	return id[:17] + "…"
}
