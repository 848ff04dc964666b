package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// ManPages returns a manual page for every command, by file name, such as parley-serve.1. They
// have the same text as --help. The server does not use them; see scripts/manpages.
func ManPages(version string, date time.Time) (map[string][]byte, error) {
	k, err := newParser(io.Discard, io.Discard)
	if err != nil {
		return nil, err
	}
	pages := map[string][]byte{}
	var add func(n *kong.Node)
	add = func(n *kong.Node) {
		if n.Hidden {
			return
		}
		pages[pageName(n)+".1"] = manPage(n, version, date)
		for _, c := range n.Children {
			add(c)
		}
	}
	add(k.Model.Node)
	return pages, nil
}

func pageName(n *kong.Node) string { return strings.ReplaceAll(n.FullPath(), " ", "-") }

// page is a manual page in the making, in the macros of man(7).
type page struct{ strings.Builder }

func manPage(n *kong.Node, version string, date time.Time) []byte {
	p := &page{}
	p.line(".TH %s 1 %s %s %s", quoted(strings.ToUpper(pageName(n))), quoted(date.UTC().Format(time.DateOnly)),
		quoted("parley "+version), quoted("Parley"))
	p.line(".nh\n.ad l") // neither hyphens in names nor wide spaces
	p.section("Name")
	p.line(`%s \- %s`, roff(pageName(n)), roff(strings.TrimSuffix(n.Help, ".")))
	p.section("Synopsis")
	p.line(`\fB%s\fR %s`, roff(n.FullPath()), roff(strings.TrimSpace(strings.TrimPrefix(n.Summary(), n.Path()))))
	p.section("Description")
	p.text(n.Help)
	detail, samples, _ := strings.Cut(n.Detail, "Examples:\n\n")
	p.text(detail)
	p.commands(n)
	p.arguments(n)
	p.options(n)
	if samples != "" {
		p.section("Examples")
		p.text(samples)
	}
	p.exitStatus(n)
	p.seeAlso(n)
	return []byte(p.String())
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *page) section(title string) { p.line(".SH %s", quoted(strings.ToUpper(title))) }

// text prints paragraphs. Indented lines stay as they are.
func (p *page) text(s string) {
	first := true
	for block := range strings.SplitSeq(strings.TrimRight(s, "\n"), "\n\n") {
		if strings.TrimSpace(block) == "" {
			continue
		}
		if !first {
			p.line(".PP")
		}
		first = false
		if !strings.HasPrefix(block, "    ") {
			p.line("%s", roff(strings.Join(strings.Fields(block), " ")))
			continue
		}
		p.line(".RS 4\n.nf")
		for l := range strings.SplitSeq(block, "\n") {
			p.line("%s", roff(strings.TrimPrefix(l, "    ")))
		}
		p.line(".fi\n.RE")
	}
}

func (p *page) commands(n *kong.Node) {
	if n.Leaf() {
		return
	}
	p.section("Commands")
	for _, c := range n.Children {
		if !c.Hidden {
			p.line(".TP\n\\fB%s\\fR(1)\n%s", roff(pageName(c)), roff(c.Help))
		}
	}
}

func (p *page) arguments(n *kong.Node) {
	if len(n.Positional) == 0 {
		return
	}
	p.section("Arguments")
	for _, a := range n.Positional {
		p.line(".TP\n%s\n%s", roff(a.Summary()), roff(a.Help))
	}
}

// options lists the flags in their groups, those without a group first.
func (p *page) options(n *kong.Node) {
	var titles []string
	groups := map[string][]*kong.Flag{}
	for _, flags := range n.AllFlags(true) {
		for _, f := range flags {
			title := ""
			if f.Group != nil {
				title = strings.TrimSuffix(f.Group.Title, ":")
			}
			if !slices.Contains(titles, title) {
				titles = append(titles, title)
			}
			groups[title] = append(groups[title], f)
		}
	}
	if len(titles) == 0 {
		return
	}
	p.section("Options")
	slices.SortStableFunc(titles, func(a, b string) int { return min(len(a), 1) - min(len(b), 1) })
	for _, title := range titles {
		if title != "" {
			p.line(".SS %s", quoted(title))
		}
		for _, f := range groups[title] {
			p.option(f)
		}
	}
}

func (p *page) option(f *kong.Flag) {
	name := "--" + f.Name
	if f.Tag.Negatable != "" {
		name = "--[no-]" + f.Name
	}
	if f.Short != 0 {
		name = "-" + string(f.Short) + ", " + name
	}
	value := ""
	if !f.IsBool() && !f.IsCounter() {
		value = ` \fI` + roff(f.FormatPlaceHolder()) + `\fR`
	}
	p.line(".TP\n\\fB%s\\fR%s\n%s", roff(name), value, roff(f.Help))
	if len(f.Envs) > 0 {
		p.line("Environment variable: \\fB%s\\fR.", roff(strings.Join(f.Envs, ", ")))
	}
}

func (p *page) exitStatus(n *kong.Node) {
	if !n.Leaf() {
		return
	}
	p.section("Exit status")
	for _, c := range []struct {
		code int
		what string
	}{
		{exitOK, "Success."},
		{exitFailed, "Failure; stderr says why."},
		{exitUsage, "Wrong arguments."},
		{exitTaskFailed, "The task that the command waited for failed, or was rejected or canceled."},
		{exitTaskWaiting, "The task that the command waited for needs input, or is not over."},
		{exitInterrupted, "Interrupted."},
	} {
		if (c.code == exitTaskFailed || c.code == exitTaskWaiting) && !strings.HasPrefix(n.Path(), "task") {
			continue
		}
		p.line(".TP\n\\fB%d\\fR\n%s", c.code, c.what)
	}
}

func (p *page) seeAlso(n *kong.Node) {
	if n.Parent == nil {
		return
	}
	p.section("See also")
	p.line(`\fB%s\fR(1)`, roff(pageName(n.Parent)))
}

// special are characters that mean something to roff, or that it prints as typographic ones.
var special = strings.NewReplacer(`\`, `\(rs`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`)

// roff returns text so that it is printed as it is, also at the start of a line.
func roff(s string) string {
	var b strings.Builder
	for _, r := range special.Replace(s) {
		if r < 0x80 {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		}
	}
	if out := b.String(); !strings.HasPrefix(out, ".") {
		return out
	}
	return `\&` + b.String()
}

// quoted returns text as one argument of a macro.
func quoted(s string) string { return `"` + roff(s) + `"` }
