package friction

import (
	"fmt"
	"slices"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/text"
)

// Limits of reports. The limit of the problem leaves room for the evidence in the problem of the
// proposal. The other fields have the limits of a proposal.
const (
	MaxProblem    = 10_000 // characters
	MaxEvidence   = 4 << 10
	MaxOccurrence = 200 // characters
)

// defaultPriority is that of proposals.
const defaultPriority = "normal"

// Report is one report of a friction.
type Report struct {
	Fingerprint  string
	Title        string
	Category     string
	Problem      string
	SuggestedFix string // may be empty
	Evidence     string // may be empty
	Occurrence   string // may be empty
	Priority     string // default normal
	Once         *idempotency.Key
}

// validate sets defaults and reports every field that breaks a rule of this package, or a rule of
// proposals, which check has.
func (r *Report) validate(check Check) error {
	if r.Priority == "" {
		r.Priority = defaultPriority
	}
	var fields []errs.Field
	add := func(name, msg string) {
		fields = append(fields, errs.Field{Path: errs.At(name), Message: msg})
	}
	switch {
	case r.Fingerprint == "":
		add("fingerprint", "is required")
	case !ValidFingerprint(r.Fingerprint):
		add("fingerprint", "must have 1 to 200 characters of a-z, 0-9, '.', '_', ':' and '-', "+
			"and begin with a letter or a digit")
	}
	for _, f := range []struct {
		name, text string
		rule       text.Rule
	}{
		{"problem", r.Problem, text.Rule{Max: MaxProblem}},
		{"evidence", r.Evidence, text.Rule{MaxBytes: MaxEvidence}},
		{"occurrence", r.Occurrence, text.Rule{Form: text.Plain, Max: MaxOccurrence}},
	} {
		if problem := f.rule.Check(f.text); problem != "" {
			add(f.name, problem)
		}
	}
	if check != nil {
		if err := check(r.Title, r.Category, r.Problem, orNoFix(r.SuggestedFix), r.Priority); err != nil {
			e := errs.As(err)
			if len(e.Fields) == 0 {
				return err
			}
			for _, f := range e.Fields {
				if !named(fields, f.Path) {
					fields = append(fields, f)
				}
			}
		}
	}
	if len(fields) > 0 {
		return errs.InvalidFields(fields...)
	}
	return nil
}

func named(fields []errs.Field, p errs.Path) bool {
	return slices.ContainsFunc(fields, func(f errs.Field) bool { return f.Path.Equal(p) })
}

// ValidateThreshold refuses a threshold that is out of range.
func ValidateThreshold(n int) error {
	if n == Off || n >= MinThreshold && n <= MaxThreshold {
		return nil
	}
	return errs.InvalidFields(errs.Field{
		Path:    errs.At("threshold"),
		Message: fmt.Sprintf("must be between %d and %d, or %d to file nothing", MinThreshold, MaxThreshold, Off),
	})
}
