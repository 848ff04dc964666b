package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// Bulk decisions take three steps: select rows of the list, confirm them on a page that asks for
// the note, and read what failed. Each proposal carries the version of its text through all steps,
// so that no decision applies to another text.

// pick is a selected proposal with the version of the text that was shown.
type pick struct {
	ID          string
	TextVersion int64
}

func (p pick) String() string { return p.ID + "." + strconv.FormatInt(p.TextVersion, 10) }

// bulkView is the page that confirms a bulk decision.
type bulkView struct {
	Verb  verb
	Items []bulkItem
	Ready int64 // number of items that can be decided
	Some  bool  // some items cannot be decided
	Note  string
	Notes []proposal.SavedNote
	Saved string // id of the chosen saved note
	As    string // title to save the note under
	Back  string
}

// bulkItem is one of the proposals.
type bulkItem struct {
	Pick  string
	ID    string
	Title string
	By    string
	Why   string // why it cannot be decided; empty if it can
}

// bulkVerbs returns the bulk actions of a list.
func bulkVerbs(status proposal.Status) []verb {
	if status == "" {
		status = proposal.Open
	}
	return verbsOf(status)
}

// bulkPage asks to confirm a bulk decision.
func (v *visit) bulkPage() error {
	form := v.r.URL.Query()
	return v.askBulk(form, "", nil)
}

func (v *visit) askBulk(form url.Values, note string, problem error) error {
	if _, err := v.access(identity.ResolveProposal); err != nil {
		return err
	}
	a, err := v.access(identity.ReadProposal)
	if err != nil {
		return err
	}
	view := bulkView{
		Note: note, Saved: form.Get("saved_note"), As: form.Get("save_as"), Back: v.listAgain(form.Get("back")),
	}
	if view.Verb, err = verbTo(form.Get("status")); err != nil {
		return err
	}
	picks, err := parsePicks(form["pick"])
	if err != nil {
		return err
	}
	for _, p := range picks {
		cur, err := v.Proposals.Get(v.r.Context(), a, p.ID)
		item := bulkItem{Pick: p.String(), ID: p.ID, Title: cur.Proposal.Title, By: cur.Proposal.SubmittedBy}
		switch {
		case errs.KindOf(err) == errs.NotFound && err != nil:
			item.Title, item.Why = p.ID, reasonWords["gone"]
		case err != nil:
			return err
		default:
			item.Why = reasonWords[hindrance(&cur.Proposal, p, view.Verb.Status)]
			if item.Why == "" {
				view.Verb = verbOf(cur.Proposal.Status, view.Verb.Status)
			}
		}
		if item.Why == "" {
			view.Ready++
		} else {
			view.Some = true
		}
		view.Items = append(view.Items, item)
	}
	if view.Notes, err = v.savedNotes(); err != nil {
		return err
	}
	title := view.Verb.Word + " " + plural(int64(len(picks)), "proposal", "proposals")
	return renderForm(v, http.StatusOK, "bulk", title, view, problem)
}

// listAgain returns the list that a bulk decision started from.
func (v *visit) listAgain(back string) string {
	list := v.base() + "/proposals"
	path, query, _ := strings.Cut(back, "?")
	q, err := url.ParseQuery(query)
	if q.Del("select"); err != nil || path != list || len(q) == 0 {
		return list
	}
	return list + "?" + q.Encode()
}

func verbTo(status string) (verb, error) {
	found, ok := verbs[proposal.Status(status)]
	if !ok {
		return verb{}, errs.New(errs.Invalid, "request.invalid",
			"choose what to do: approve, reject, resolve, publish or reopen")
	}
	return found, nil
}

// parsePicks parses the selected rows: "prop-….3" is version 3 of a text.
func parsePicks(values []string) ([]pick, error) {
	if len(values) > proposal.MaxBulk {
		return nil, errs.New(errs.Invalid, "request.invalid", "select at most %d proposals", proposal.MaxBulk)
	}
	seen := map[string]bool{}
	var out []pick
	for _, s := range values {
		id, version, _ := strings.Cut(s, ".")
		n, err := strconv.ParseInt(version, 10, 64)
		if err != nil || n < 1 || !proposal.ValidID(id) {
			return nil, errs.New(errs.Invalid, "request.invalid", "a selected row could not be read; select the rows again")
		}
		if !seen[id] {
			out = append(out, pick{id, n})
		}
		seen[id] = true
	}
	return out, nil
}

// hindrance returns why a proposal cannot be decided now, or "".
func hindrance(p *proposal.Proposal, chosen pick, to proposal.Status) string {
	switch {
	case p.TextVersion != chosen.TextVersion:
		return "changed"
	case !mayFollow(p.Status, to):
		return "status"
	default:
		return ""
	}
}

func mayFollow(from, to proposal.Status) bool {
	for _, s := range from.Next() {
		if s == to {
			return true
		}
	}
	return false
}

// reasonWords explain why a decision failed.
var reasonWords = map[string]string{
	"changed": "The text changed since you selected it: read it again.",
	"status":  "It was decided meanwhile.",
	"gone":    "It no longer exists.",
	"other":   "It failed: try again.",
}

// reasonOf returns the reason for an error.
func reasonOf(err error) string {
	switch errs.KindOf(err) {
	case errs.Stale:
		return "changed"
	case errs.Conflict:
		return "status"
	case errs.NotFound:
		return "gone"
	default:
		return "other"
	}
}

// bulkDecide decides the confirmed proposals.
func (v *visit) bulkDecide() error {
	a, err := v.access(identity.ResolveProposal)
	if err != nil {
		return err
	}
	form := v.r.PostForm
	to, err := verbTo(form.Get("status"))
	if err != nil {
		return err
	}
	picks, err := parsePicks(form["pick"])
	if err != nil {
		return err
	}
	if len(picks) == 0 {
		none := errs.New(errs.Invalid, "request.invalid", "select at least one proposal")
		return v.askBulk(form, v.text("resolution_note"), none)
	}
	var failed []notDone
	note, err := v.noteOf("resolution_note")
	if err == nil {
		failed, err = v.decideAll(a, picks, to.Status, note)
	}
	if err != nil {
		return v.askBulk(form, v.text("resolution_note"), err)
	}
	back := v.listAgain(form.Get("back"))
	said := plural(int64(len(picks)-len(failed)), "proposal was ", "proposals were ") + to.Done + "."
	if len(failed) == 0 {
		return v.done(back, said)
	}
	if len(failed) == len(picks) {
		said = ""
	}
	report := url.Values{"status": {string(to.Status)}, "back": {back}}
	for _, f := range failed {
		report.Add("not", f.ID+"."+f.Reason)
	}
	return v.done(v.base()+"/proposals/decided?"+report.Encode(), said)
}

// reportView is the result of a bulk decision.
type reportView struct {
	Verb  verb
	Left  int64
	Items []bulkItem
	Back  string
}

// bulkReport lists the decisions that failed, with reasons. The URL contains them, so that the page
// can be reloaded and kept open. A notice shows how many were decided.
func (v *visit) bulkReport() error {
	a, err := v.access(identity.ReadProposal)
	if err != nil {
		return err
	}
	form := v.r.URL.Query()
	view := reportView{Back: v.listAgain(form.Get("back"))}
	if view.Verb, err = verbTo(form.Get("status")); err != nil {
		return err
	}
	if len(form["not"]) == 0 || len(form["not"]) > proposal.MaxBulk {
		return errs.New(errs.Invalid, "request.invalid", "this report could not be read; open the list of proposals")
	}
	for _, s := range form["not"] {
		id, reason, _ := strings.Cut(s, ".")
		cur, err := v.Proposals.Get(v.r.Context(), a, id)
		item := bulkItem{ID: id, Title: cur.Proposal.Title, By: cur.Proposal.SubmittedBy, Why: reasonWords[reason]}
		switch {
		case err != nil && errs.KindOf(err) == errs.NotFound:
			item.Title, item.Why = "A proposal", reasonWords["gone"]
		case err != nil:
			return err
		case reason == "status":
			item.Why = "It was decided meanwhile: it is " + string(cur.Proposal.Status) + "."
		}
		if item.Why == "" {
			item.Why = reasonWords["other"]
		}
		view.Items = append(view.Items, item)
	}
	view.Left = int64(len(view.Items))
	return render(v, http.StatusOK, "bulkreport", "What was decided", view)
}
