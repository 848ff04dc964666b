package friction

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Current is the input of a decision. It is locked until the change is written.
type Current struct {
	Friction  Friction   // zero Count if the fingerprint is new
	Known     bool       // the reporter has reported this occurrence before
	Evidence  []Evidence // kept evidence, oldest first; not read if a proposal was filed
	Threshold int
}

// Change is the result of a decision, which the store writes atomically.
type Change struct {
	Friction Friction
	Evidence *Evidence // nil if the report was a repetition and changes nothing
	File     *Draft    // nil if no proposal is filed
}

// maxText limits the problem of a proposal, in characters.
const maxText = 20_000

// noFix is the suggested fix of a proposal if no report had one.
const noFix = "Nobody who met this has suggested a fix yet."

func orNoFix(s string) string {
	if s == "" {
		return noFix
	}
	return s
}

// decideReport counts a report and files a proposal when the threshold is reached. A proposal is
// filed once; later reports only add evidence, even if the proposal was rejected.
func decideReport(cur Current, r Report, org, by, newID string, at time.Time) Change {
	f := cur.Friction
	if cur.Known {
		return Change{Friction: f}
	}
	if f.Count == 0 {
		f = Friction{Org: org, Fingerprint: r.Fingerprint, FirstAt: at}
	}
	f.Title, f.Category, f.Problem, f.Priority = r.Title, r.Category, r.Problem, r.Priority
	if r.SuggestedFix != "" {
		f.SuggestedFix = r.SuggestedFix
	}
	f.Count++
	f.LastAt, f.LastBy = at, by
	c := Change{Evidence: &Evidence{Seq: f.Count, Reporter: by, Occurrence: r.Occurrence, Text: r.Evidence, At: at}}
	if f.ProposalID == "" && cur.Threshold != Off && f.Count >= int64(cur.Threshold) {
		f.ProposalID = newID
		c.File = &Draft{
			Org: org, ID: newID, Title: f.Title, Category: f.Category, SuggestedFix: orNoFix(f.SuggestedFix),
			Problem: problem(&f, append(slices.Clone(cur.Evidence), *c.Evidence)), Priority: f.Priority, By: by, At: at,
		}
	}
	c.Friction = f
	return c
}

// problem returns the problem of the proposal: the text of the last report, and as much evidence
// as fits, newest first.
func problem(f *Friction, evidence []Evidence) string {
	var b strings.Builder
	b.WriteString(f.Problem)
	fmt.Fprintf(&b, "\n\nReported %d times as %s, first on %s.", f.Count, f.Fingerprint, day(f.FirstAt))
	room := maxText - utf8.RuneCountInString(b.String())
	const left = "\n\n(and earlier reports)" // room is reserved for it
	room -= len(left)
	for _, e := range slices.Backward(evidence) {
		s := fmt.Sprintf("\n\n%s on %s", e.Reporter, day(e.At))
		if e.Occurrence != "" {
			s += " (" + e.Occurrence + ")"
		}
		if e.Text != "" {
			s += ":\n" + e.Text
		}
		n := utf8.RuneCountInString(s)
		if n > room {
			b.WriteString(left)
			break
		}
		room -= n
		b.WriteString(s)
	}
	return b.String()
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
