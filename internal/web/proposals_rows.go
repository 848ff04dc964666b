package web

import (
	"crypto/rand"
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// rowWriter writes the rows of the list by hand, because a template takes five times as long, and
// this page is reloaded most. User text goes through text, which escapes it for element content and
// for attributes in double quotes; there is no other context. The store has checked the ids, and
// the path is escaped once.
type rowWriter struct {
	b      strings.Builder
	now    time.Time
	base   string // escaped
	path   string // path of this page, escaped
	token  string // shared by the forms, because each is for another proposal
	vote   bool   // the member may vote
	pick   bool   // rows can be selected
	picked bool   // rows are selected
	status bool   // show the status, because it differs between rows
}

func (v *visit) rowWriter(view *proposalsView, items []proposal.Item) *rowWriter {
	w := &rowWriter{
		now: v.Now(), base: template.HTMLEscapeString(v.base()), path: template.HTMLEscapeString(v.r.URL.RequestURI()),
		token: rand.Text(), vote: v.may(identity.VoteOnProposal), status: view.Query.Status == proposal.All, picked: view.All,
	}
	if view.Bulk = bulkVerbs(view.Query.Status); !v.may(identity.ResolveProposal) {
		view.Bulk = nil
	}
	w.pick = len(view.Bulk) > 0
	w.b.Grow(1 << 11 * len(items))
	return w
}

func (w *rowWriter) html() template.HTML { return template.HTML(w.b.String()) } // see rowWriter

// put writes markup and safe text.
func (w *rowWriter) put(parts ...string) {
	for _, s := range parts {
		w.b.WriteString(s)
	}
}

// text writes escaped user text.
func (w *rowWriter) text(s string) {
	if strings.ContainsAny(s, "<>&\"'\x00") {
		s = template.HTMLEscapeString(s)
	}
	w.b.WriteString(s)
}

// row writes a proposal.
func (w *rowWriter) row(it *proposal.Item, current bool) {
	w.put(`<li id="`, it.ID, `" data-key="`, it.ID, `"`)
	if current {
		w.put(` aria-current="true"`)
	}
	w.put(`>`)
	if w.pick {
		w.put(`<label class="pick"><input type="checkbox" name="pick" form="bulk" id="s-`, it.ID, `" value="`, it.ID, `.`,
			strconv.FormatInt(it.TextVersion, 10), `"`)
		if w.picked {
			w.put(` checked`)
		}
		w.put(` aria-labelledby="s-l t-`, it.ID, `"></label>`)
	}
	w.tally(it)
	w.put(`<div class="what"><a class="title" id="t-`, it.ID, `" href="`, w.base, `/proposals/`, it.ID, `"><bdi>`)
	w.text(it.Title)
	w.put(`</bdi></a><div class="meta">`)
	w.meta(it)
	w.put(`</div></div>`)
	switch {
	case w.vote && it.Status == proposal.Open:
		w.votes(it)
	case it.MyVote != "":
		w.put(`<div class="acts"><span class="chip">you: `, string(it.MyVote), `</span></div>`)
	}
	w.put("</li>\n")
}

func (w *rowWriter) tally(it *proposal.Item) {
	yes, no := strconv.Itoa(it.VotesFor), strconv.Itoa(it.VotesAgainst)
	w.put(`<div class="tally num"><div><span class="f">+`, yes, `</span><span class="a">−`, no, `</span></div>`,
		`<svg class="meter" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">`,
		`<rect class="none" width="100" height="4"/>`)
	m := newMeter(it.VotesFor, it.VotesAgainst)
	if m.For > 0 {
		w.put(`<rect class="for" width="`, strconv.Itoa(m.For), `" height="4"/>`)
	}
	if m.Against > 0 {
		w.put(`<rect class="against" x="`, strconv.Itoa(m.AgainstX), `" width="`, strconv.Itoa(m.Against), `" height="4"/>`)
	}
	w.put(`</svg><span class="sr">`, yes, ` for, `, no, ` against</span></div>`)
}

func (w *rowWriter) meta(it *proposal.Item) {
	if it.Priority == proposal.High {
		w.put(`<span class="chip high">`, iconHigh, `high</span>`)
	} else if it.Priority == proposal.Low {
		w.put(`<span class="chip">low</span>`)
	}
	if w.status {
		w.put(`<span class="chip`, statusClass[it.Status], `">`, string(it.Status), `</span>`)
	}
	w.put(`<span>`, string(it.Category), `</span>`)
	by := newWho(it.SubmittedBy)
	w.put(`<span class="who">`, whoIcons[by.Icon], `<span class="sr">`, by.Kind, `</span> <bdi>`)
	w.text(by.Name)
	at := newMoment(it.SubmittedAt, w.now)
	w.put(`</bdi></span><time datetime="`, at.ISO, `" title="`, at.Full, `">`, at.Ago, `</time>`)
	if it.Evidence > 0 {
		w.put(`<span class="chip">seen `, count(it.Evidence), `×</span>`)
	}
}

// votes writes the two buttons. The button of the member's own vote withdraws it.
func (w *rowWriter) votes(it *proposal.Item) {
	url := w.base + "/proposals/" + it.ID + "/vote"
	w.put(`<div class="acts"><form class="vote" id="v-`, it.ID, `" method="post" action="`, url, `" hx-post="`, url, `" `,
		smooth, `>`,
		`<input type="hidden" name="once" value="`, w.token, `"><input type="hidden" name="back" value="`, w.path, `">`)
	w.button(it, proposal.For, "yes", "For")
	w.button(it, proposal.Against, "no", "Against")
	w.put(`</form></div>`)
}

func (w *rowWriter) button(it *proposal.Item, c proposal.Choice, class, word string) {
	id, value, pressed := string(c[0])+"-"+it.ID, string(c), "false"
	if it.MyVote == c {
		value, pressed = noVote, "true"
	}
	w.put(`<button class="btn small `, class, `" id="`, id, `" name="choice" value="`, value, `" aria-pressed="`, pressed,
		`" aria-labelledby="`, id, ` t-`, it.ID, `">`, word, `</button>`)
}

// statusClass is the style of each status.
var statusClass = map[proposal.Status]string{
	proposal.Approved: " busy", proposal.Resolved: " ok", proposal.Rejected: " warn",
}

// whoIcons are the icons of submitters.
var whoIcons = func() map[string]string {
	out := map[string]string{}
	for _, name := range []string{"user", "agent", "service", "settings"} {
		out[name] = mustIcon(name)
	}
	return out
}()

var iconHigh = mustIcon("high")

// mustIcon is icon for constant names.
func mustIcon(name string) string {
	svg, err := icon(name)
	if err != nil {
		panic(err) // at start
	}
	return string(svg)
}
