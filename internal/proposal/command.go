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

// Submission asks for a new proposal. An empty Priority means normal, an empty
// Status open.
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
	IfVersion    *int64 // refuse if the record is another version
	Once         *idempotency.Key

	IfTextVersion *int64 // refuse if the text is another version; votes do not change it
}

// Resolution asks for a status change.
type Resolution struct {
	Status        Status
	Note          string
	DuplicateOf   string // with Rejected: the id of the proposal that is about the same
	IfVersion     *int64
	IfTextVersion *int64 // refuse if the text is another version; votes do not change it
	Once          *idempotency.Key
}

// Ballot asks for a vote.
type Ballot struct {
	Choice  Choice
	Comment string
	Once    *idempotency.Key
}

// Validate fills in defaults and reports every field that breaks a rule. Submit does it
// too; a transport calls it to report fields that it could not read beside these.
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

// Check refuses what could not be submitted, for those who have one filed.
func Check(title, category, problem, suggestedFix, priority string) error {
	s := Submission{
		Title: title, Category: Category(category), Problem: problem, SuggestedFix: suggestedFix, Priority: Priority(priority),
	}
	return s.Validate()
}

// Validate is to Edit what Submission.Validate is to Submit.
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

// Validate is to Resolve what Submission.Validate is to Submit.
func (r *Resolution) Validate() error {
	var c check
	enum(&c, "status", r.Status, Statuses)
	c.text("resolution_note", r.Note, text.Rule{Max: MaxNote})
	switch {
	case r.DuplicateOf == "":
	case r.Status != Rejected:
		c.add("duplicate_of", "goes with the status rejected only")
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

// Validate is to Vote what Submission.Validate is to Submit.
func (b *Ballot) Validate() error {
	var c check
	enum(&c, "vote", b.Choice, Choices)
	c.text("comment", b.Comment, text.Rule{Max: MaxComment})
	return c.err()
}

// check collects every broken rule, so that a caller learns of all at once.
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

// clip keeps an error message short whatever the caller sent.
func clip(s string) string {
	if utf8.RuneCountInString(s) > 40 {
		return string([]rune(s)[:40]) + "…"
	}
	return s
}
