package friction

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
)

// Limits on what callers send. The problem leaves room for the evidence in the
// proposal's own; a proposal's other limits hold for its other fields.
const (
	MaxProblem    = 10_000 // characters
	MaxEvidence   = 4 << 10
	MaxOccurrence = 200 // characters
)

// defaultPriority is a proposal's.
const defaultPriority = "normal"

// Report says that a friction was met.
type Report struct {
	Fingerprint  string
	Title        string
	Category     string
	Problem      string
	SuggestedFix string // may be empty
	Evidence     string // may be empty
	Occurrence   string // may be empty
	Priority     string // empty: normal
	Once         *idempotency.Key
}

// validate fills in defaults and reports every field that breaks a rule of friction,
// or one of proposals, which check knows.
func (r *Report) validate(check Check) error {
	if r.Priority == "" {
		r.Priority = defaultPriority
	}
	var fields []errs.Field
	add := func(name, format string, args ...any) {
		fields = append(fields, errs.Field{In: errs.Body, Name: name, Message: fmt.Sprintf(format, args...)})
	}
	switch {
	case r.Fingerprint == "":
		add("/fingerprint", "is required")
	case !ValidFingerprint(r.Fingerprint):
		add("/fingerprint", "must have 1 to 200 characters of a-z, 0-9, '.', '_', ':' and '-', and begin with a letter or a digit")
	}
	if n := utf8.RuneCountInString(r.Problem); n > MaxProblem {
		add("/problem", "must have at most %d characters; it has %d", MaxProblem, n)
	}
	if n := len(r.Evidence); n > MaxEvidence {
		add("/evidence", "must have at most %d bytes; it has %d", MaxEvidence, n)
	} else if bad(r.Evidence, "\r\n\t") {
		add("/evidence", "must be valid UTF-8 without control characters")
	}
	if n := utf8.RuneCountInString(r.Occurrence); n > MaxOccurrence {
		add("/occurrence", "must have at most %d characters; it has %d", MaxOccurrence, n)
	} else if bad(r.Occurrence, "") {
		add("/occurrence", "must be valid UTF-8 without control characters")
	}
	if check != nil {
		if err := check(r.Title, r.Category, r.Problem, orNoFix(r.SuggestedFix), r.Priority); err != nil {
			e := errs.As(err)
			if len(e.Fields) == 0 {
				return err
			}
			for _, f := range e.Fields {
				if !named(fields, f.Name) {
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

func named(fields []errs.Field, name string) bool {
	for _, f := range fields {
		if f.Name == name {
			return true
		}
	}
	return false
}

// bad reports text that cannot be stored by every engine or shown by every terminal.
func bad(s, allowed string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool {
		return (r < ' ' || r == 0x7f) && !strings.ContainsRune(allowed, r)
	})
}

// ValidateThreshold refuses a setting that makes no sense.
func ValidateThreshold(n int) error {
	if n == Off || n >= MinThreshold && n <= MaxThreshold {
		return nil
	}
	return errs.InvalidFields(errs.Field{
		In: errs.Body, Name: "/threshold",
		Message: fmt.Sprintf("must be between %d and %d, or %d to file nothing", MinThreshold, MaxThreshold, Off),
	})
}
