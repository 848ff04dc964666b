package rest

import (
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// The document takes limits and enumerations from the domain, so that each rule is written once.
// These helpers put them into schemas.

// property edits one property of an object's schema.
func property(s *huma.Schema, name string, edit ...func(*huma.Schema)) {
	p := s.Properties[name]
	for _, e := range edit {
		e(p)
	}
}

func length(low, high int) func(*huma.Schema) {
	return func(s *huma.Schema) {
		if low > 0 {
			s.MinLength = &low
		}
		s.MaxLength = &high
	}
}

func oneOf[S ~string](known []S) func(*huma.Schema) {
	return func(s *huma.Schema) {
		for _, k := range known {
			s.Enum = append(s.Enum, string(k))
		}
		if s.Nullable {
			s.Enum = append(s.Enum, nil) // otherwise null would not match the enum
		}
	}
}

func byDefault(v any) func(*huma.Schema) { return func(s *huma.Schema) { s.Default = v } }

// exampleOf sets the example of a property that is too long for a struct tag.
func exampleOf(v any) func(*huma.Schema) { return func(s *huma.Schema) { s.Examples = []any{v} } }

// describedAs sets the description of a property that is too long for a struct tag.
func describedAs(doc string) func(*huma.Schema) { return func(s *huma.Schema) { s.Description = doc } }

func stringSchema(edit ...func(*huma.Schema)) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, e := range edit {
		e(s)
	}
	return s
}

// filter returns the schema of a filter: one of the values, or "all".
func filter[S ~string](known []S, def string) *huma.Schema {
	return stringSchema(oneOf(known), oneOf([]string{proposal.All}), byDefault(def))
}

func integer(low, high, def int) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeInteger, Format: "int64", Default: def}
	between(low, high)(s)
	return s
}

// maxPage is the largest page number. It is far beyond the end of any list, and its offset does
// not overflow.
const maxPage = 1_000_000_000_000_000

// Types of parameters. Their schemas have the limits of the domain.
type (
	statusFilter         string
	categoryFilter       string
	priorityFilter       string
	sortOrder            string
	searchText           string
	submitterFilter      string
	submitterKind        string
	evidenceFilter       string
	include              string
	followupStatusFilter string
	assigneeFilter       string
	pageNumber           int
	pageLimit            int
	followupLimit        int
	idempotencyKey       string
	reportKey            string

	fingerprintFilter string
)

const includeExcerpt include = "excerpt"

func (statusFilter) Schema(huma.Registry) *huma.Schema {
	return filter(proposal.Statuses, string(proposal.Open))
}

func (categoryFilter) Schema(huma.Registry) *huma.Schema {
	return filter(proposal.Categories, proposal.All)
}

func (priorityFilter) Schema(huma.Registry) *huma.Schema {
	return filter(proposal.Priorities, proposal.All)
}

func (sortOrder) Schema(huma.Registry) *huma.Schema {
	return stringSchema(oneOf(proposal.SearchSorts)) // the default depends on q
}

func (searchText) Schema(huma.Registry) *huma.Schema {
	return stringSchema(length(1, proposal.MaxSearch), matching(storable))
}

func (submitterFilter) Schema(huma.Registry) *huma.Schema {
	return stringSchema(length(1, proposal.MaxSearch), matching(storable), byDefault(proposal.All))
}

func (submitterKind) Schema(huma.Registry) *huma.Schema { return filter(identity.Kinds, proposal.All) }

func (evidenceFilter) Schema(huma.Registry) *huma.Schema {
	return filter(proposal.Evidences, proposal.All)
}

func (fingerprintFilter) Schema(huma.Registry) *huma.Schema {
	return stringSchema(length(1, proposal.MaxSearch), matching(storable), byDefault(proposal.All))
}

func (include) Schema(huma.Registry) *huma.Schema {
	return stringSchema(oneOf([]include{includeExcerpt}))
}

func (followupStatusFilter) Schema(huma.Registry) *huma.Schema {
	return filter(followup.Statuses, followup.All)
}

func (assigneeFilter) Schema(huma.Registry) *huma.Schema {
	return stringSchema(
		matching("^("+followup.All+"|"+followup.Unassigned+"|(user|agent|service):"+memberIDPattern+")$"),
		byDefault(followup.All),
	)
}

// Schema has no default, because generated clients would send it together with a cursor.
func (pageNumber) Schema(huma.Registry) *huma.Schema {
	s := integer(1, maxPage, 1)
	s.Default = nil
	return s
}

func (pageLimit) Schema(huma.Registry) *huma.Schema {
	return integer(1, proposal.MaxLimit, proposal.DefaultLimit)
}

func (followupLimit) Schema(huma.Registry) *huma.Schema {
	return integer(1, followup.MaxLimit, followup.DefaultLimit)
}

// Schema documents the header, too: its description is too long for a struct tag.
func (idempotencyKey) Schema(huma.Registry) *huma.Schema {
	return stringSchema(length(1, idempotency.MaxLength), matching(idempotencyPattern),
		describedAs("A key that makes retries safe. For 24 hours, a request with the same key and body returns the first "+
			"outcome."))
}

// Schema documents the header, too: its description is too long for a struct tag.
func (reportKey) Schema(huma.Registry) *huma.Schema {
	return stringSchema(length(1, idempotency.MaxLength), matching(idempotencyPattern),
		describedAs("A key that makes retries safe. For 2 hours, a request with the same key and body returns the first "+
			"outcome."))
}

// Examples of times in the document, in their order.
const (
	exampleTime  = "2026-03-02T10:00:00.000000Z"
	exampleLater = "2026-03-02T10:10:00.000000Z"
	exampleEnd   = "2026-06-02T10:00:00.000000Z"
)

// exampleTimes adds an example to the times in the document that have none: something is created,
// then changes, and expires at last.
func exampleTimes(doc *huma.OpenAPI) {
	for _, s := range doc.Components.Schemas.Map() {
		for name, p := range s.Properties {
			if p.Format == "date-time" && len(p.Examples) == 0 {
				p.Examples = []any{exampleTimeOf(name)}
			}
		}
	}
}

func exampleTimeOf(property string) string {
	switch {
	case strings.HasSuffix(property, "expires_at"):
		return exampleEnd
	case property == "created_at", property == "submitted_at", property == "at", property == "time":
		return exampleTime
	}
	return exampleLater
}

// stamp formats a time for the API: UTC with microseconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// orNull returns nil for "", which is encoded as null.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// names converts a list to strings. It never returns nil, so that an empty list is encoded as [].
func names[S ~string](list []S) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}
