package followup

import (
	"slices"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
)

// Creation creates a follow-up by hand.
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

// Validate reports every field that breaks a rule. Create calls it too. A transport calls it to
// report these fields together with those that it could not decode.
func (c *Creation) Validate() error {
	return (&Edit{Title: &c.Title, Description: &c.Description, Assignee: &c.Assignee}).Validate()
}

// Validate reports every field that breaks a rule; see Creation.Validate.
func (e *Edit) Validate() error {
	var fields []errs.Field
	add := func(name, msg string) {
		fields = append(fields, errs.Field{Path: errs.At(name), Message: msg})
	}
	if e.Title != nil {
		if problem := (text.Rule{Form: text.Line, Max: MaxTitle}).Check(*e.Title); problem != "" {
			add("title", problem)
		}
	}
	if e.Description != nil {
		if problem := (text.Rule{Max: MaxDescription}).Check(*e.Description); problem != "" {
			add("description", problem)
		}
	}
	if e.Status != nil && !slices.Contains(Statuses, *e.Status) {
		add("status", "must be one of open, in_progress, done, canceled")
	}
	if e.Assignee != nil && *e.Assignee != "" {
		if p, err := identity.ParseRef("", *e.Assignee); err != nil || !p.IsMember() {
			add("assignee", "must be user:ID or agent:ID")
		}
	}
	if len(fields) > 0 {
		return errs.InvalidFields(fields...)
	}
	return nil
}

func invalid(name, msg string) error {
	return errs.InvalidFields(errs.Field{Path: errs.At(name), Message: msg})
}
