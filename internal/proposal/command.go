package proposal

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/text"
)

// Limits on what callers send, in characters.
const (
	MaxTitle   = 200
	MaxText    = 20_000 // problem, suggested_fix
	MaxNote    = 20_000 // resolution_note
	MaxComment = 4_000
)

var (
	titleRule = text.Rule{Form: text.Line, Max: MaxTitle}
	textRule  = text.Rule{Max: MaxText, Required: true}
)

// Submission creates a proposal. An empty Priority means Normal, an empty Status means Open.
type Submission struct {
	Title        string
	Category     Category
	Problem      string
	SuggestedFix string
	Priority     Priority
	Status       Status
	Once         *idempotency.Key
}

// Edit changes the fields that are not nil.
type Edit struct {
	Title        *string
	Category     *Category
	Problem      *string
	SuggestedFix *string
	Priority     *Priority
	IfVersion    *int64 // refuse if the record has another version
	Once         *idempotency.Key

	IfTextVersion *int64 // refuse if the text has another version; votes do not change it
}

// Resolution changes the status of a proposal.
type Resolution struct {
	Status        Status
	Note          string
	DuplicateOf   string // with Rejected: the id of the original
	IfVersion     *int64
	IfTextVersion *int64 // refuse if the text has another version; votes do not change it
	Once          *idempotency.Key
}

// Ballot is a vote to cast.
type Ballot struct {
	Choice  Choice
	Comment string
	Once    *idempotency.Key
}

// Validate sets defaults and reports every field that breaks a rule. Submit calls it too. A
// transport calls it to report these fields together with those that it could not decode.
func (s *Submission) Validate() error {
	if s.Priority == "" {
		s.Priority = Normal
	}
	if s.Status == "" {
		s.Status = Open
	}
	var c check
	c.title(s.Title)
	enum(&c, "category", s.Category, Categories)
	c.text("problem", s.Problem, textRule)
	c.text("suggested_fix", s.SuggestedFix, textRule)
	enum(&c, "priority", s.Priority, Priorities)
	enum(&c, "status", s.Status, []Status{Open, Draft})
	return c.err()
}

// Check validates the fields of a proposal that another package files.
func Check(title, category, problem, suggestedFix, priority string) error {
	s := Submission{
		Title: title, Category: Category(category), Problem: problem, SuggestedFix: suggestedFix,
		Priority: Priority(priority),
	}
	return s.Validate()
}

// Validate reports every field that breaks a rule; see Submission.Validate.
func (e *Edit) Validate() error {
	var c check
	if e.Title != nil {
		c.title(*e.Title)
	}
	if e.Category != nil {
		enum(&c, "category", *e.Category, Categories)
	}
	if e.Problem != nil {
		c.text("problem", *e.Problem, textRule)
	}
	if e.SuggestedFix != nil {
		c.text("suggested_fix", *e.SuggestedFix, textRule)
	}
	if e.Priority != nil {
		enum(&c, "priority", *e.Priority, Priorities)
	}
	if v := e.IfTextVersion; v != nil && !validTextVersion(*v) {
		c.add("text_version", "%s", badTextVersion)
	}
	return c.err()
}

// Validate reports every field that breaks a rule; see Submission.Validate.
func (r *Resolution) Validate() error {
	var c check
	enum(&c, "status", r.Status, Statuses)
	c.text("resolution_note", r.Note, text.Rule{Max: MaxNote})
	switch {
	case r.DuplicateOf == "":
	case r.Status != Rejected:
		c.add("duplicate_of", "is allowed only with the status rejected")
	case !ValidID(r.DuplicateOf):
		c.add("duplicate_of", "must be the id of a proposal")
	}
	if v := r.IfTextVersion; v != nil && !validTextVersion(*v) {
		c.add("text_version", "%s", badTextVersion)
	}
	return c.err()
}

const badTextVersion = "must be from 1 to 2147483647; use the text_version of the proposal that you read"

func validTextVersion(v int64) bool { return v >= 1 && v <= math.MaxInt32 }

// Validate reports every field that breaks a rule; see Submission.Validate.
func (b *Ballot) Validate() error {
	var c check
	enum(&c, "vote", b.Choice, Choices)
	c.text("comment", b.Comment, text.Rule{Max: MaxComment})
	return c.err()
}

// check collects all invalid fields, to report them at once.
type check struct{ fields []errs.Field }

func (c *check) add(name, format string, args ...any) { c.addAt(errs.At(name), format, args...) }

func (c *check) addAt(at errs.Path, format string, args ...any) {
	c.fields = append(c.fields, errs.Field{Path: at, Message: fmt.Sprintf(format, args...)})
}

func (c *check) err() error {
	if len(c.fields) == 0 {
		return nil
	}
	return errs.InvalidFields(c.fields...)
}

func (c *check) title(s string) { c.text("title", s, titleRule) }

func (c *check) text(name, s string, rule text.Rule) {
	if problem := rule.Check(s); problem != "" {
		c.add(name, "%s", problem)
	}
}

func enum[S ~string](c *check, name string, v S, known []S) {
	if slices.Contains(known, v) {
		return
	}
	if v == "" {
		c.add(name, "is required; use one of %s", join(known))
		return
	}
	c.add(name, "must be one of %s; it is %q", join(known), clip(string(v)))
}

func join[S ~string](known []S) string {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

// clip shortens a value for an error message.
func clip(s string) string {
	if utf8.RuneCountInString(s) > 40 {
		return string([]rune(s)[:40]) + "…"
	}
	return s
}
