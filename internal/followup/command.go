package followup

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
)

// Creation asks for a follow-up made by hand.
type Creation struct {
	Title       string
	Description string
	Assignee    string
	Once        *idempotency.Key
}

// Edit changes the fields that are not nil. An empty Assignee unassigns.
type Edit struct {
	Title       *string
	Description *string
	Status      *Status
	Assignee    *string
	IfVersion   *int64
	Once        *idempotency.Key
}

// Validate reports every field that breaks a rule. Create does it too; a
// transport calls it to report fields that it could not read beside these.
func (c *Creation) Validate() error {
	return (&Edit{Title: &c.Title, Description: &c.Description, Assignee: &c.Assignee}).Validate()
}

// Validate is to Change what Creation.Validate is to Create.
func (e *Edit) Validate() error {
	var fields []errs.Field
	add := func(name, msg string) {
		fields = append(fields, errs.Field{In: errs.Body, Name: name, Message: msg})
	}
	if e.Title != nil {
		if msg := text(*e.Title, MaxTitle); msg != "" {
			add("/title", msg)
		} else if strings.TrimSpace(*e.Title) == "" {
			add("/title", "is required and must not be blank")
		} else if problem := identity.LineProblem(*e.Title); problem != "" {
			add("/title", problem)
		}
	}
	if e.Description != nil {
		if msg := text(*e.Description, MaxDescription); msg != "" {
			add("/description", msg)
		}
	}
	if e.Status != nil && !slices.Contains(Statuses, *e.Status) {
		add("/status", "must be one of open, in_progress, done, canceled")
	}
	if e.Assignee != nil && *e.Assignee != "" {
		if p, err := identity.ParseRef("", *e.Assignee); err != nil || !p.IsMember() {
			add("/assignee", "must be user:ID or agent:ID")
		}
	}
	if len(fields) > 0 {
		return errs.InvalidFields(fields...)
	}
	return nil
}

func text(s string, limit int) string {
	switch {
	case !utf8.ValidString(s):
		return "must be valid UTF-8"
	case utf8.RuneCountInString(s) > limit:
		return fmt.Sprintf("must have at most %d characters", limit)
	case strings.IndexFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }) >= 0:
		return "must not contain control characters"
	}
	return ""
}

func invalid(name, msg string) error {
	return errs.InvalidFields(errs.Field{In: errs.Body, Name: name, Message: msg})
}
