package rest

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// The document takes its limits and lists from the domain, so that a rule is
// written once. These helpers put them into schemas.

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
			s.Enum = append(s.Enum, nil) // or null would be no value of the enumeration
		}
	}
}

func byDefault(v any) func(*huma.Schema) { return func(s *huma.Schema) { s.Default = v } }

func stringSchema(edit ...func(*huma.Schema)) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, e := range edit {
		e(s)
	}
	return s
}

// filter is the schema of a filter: one of the list, or all.
func filter[S ~string](known []S, def string) *huma.Schema {
	return stringSchema(oneOf(known), oneOf([]string{proposal.All}), byDefault(def))
}

func integer(low, high, def int) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeInteger, Format: "int64", Default: def}
	between(low, high)(s)
	return s
}

// maxPage is the last page that can be asked for. It is far behind the end of any list,
// and no offset overflows.
const maxPage = 1_000_000_000_000_000

// The types of parameters, each with the domain's limits as its schema.
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
	return stringSchema(oneOf(proposal.Sorts), byDefault(string(proposal.SortReview)))
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
	return stringSchema(matching("^("+followup.All+"|"+followup.Unassigned+"|(user|agent|service):"+memberIDPattern+")$"), byDefault(followup.All))
}

// Schema has no default: generated clients would send it, also beside a cursor.
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

func (idempotencyKey) Schema(huma.Registry) *huma.Schema {
	return stringSchema(length(1, idempotency.MaxLength), matching(idempotencyPattern))
}

// stamp writes a time as the wire has it: UTC, to the microsecond.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// orNull is nil for "", which the wire shows as null.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// names writes a list of statuses as strings; never nil, so that the wire shows [].
func names[S ~string](list []S) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}
