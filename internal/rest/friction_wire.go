package rest

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/proposal"
)

// Friction is what is known of one fingerprint.
type Friction struct {
	Fingerprint  string  `json:"fingerprint" doc:"What makes reports the same friction." example:"registry:timeout"`
	Title        string  `json:"title" doc:"As the latest report has it, like the fields below." example:"The registry times out"`
	Category     string  `json:"category" doc:"What it is about." example:"reliability"`
	Problem      string  `json:"problem" doc:"What gets in the way." example:"Pulls of large images fail."`
	SuggestedFix string  `json:"suggested_fix" doc:"The latest that anybody gave; empty without one." example:"Mirror the images."`
	Priority     string  `json:"priority" doc:"How soon it should be reviewed." example:"normal"`
	Count        int64   `json:"count" doc:"How many reports counted." example:"4"`
	ProposalID   *string `json:"proposal_id" doc:"The proposal that was filed; null before." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
	FirstAt      string  `json:"first_at" format:"date-time" doc:"When it was first reported." example:"2026-03-01T09:30:00.000000Z"`
	LastAt       string  `json:"last_at" format:"date-time" doc:"When it was last reported." example:"2026-03-02T10:00:00.000000Z"`
	LastBy       string  `json:"last_by" doc:"Who reported it last." example:"agent:scout"`
}

// FrictionEvidence is one report that counted.
type FrictionEvidence struct {
	Seq        int64   `json:"seq" doc:"The number of the report, from 1." example:"4"`
	Reporter   string  `json:"reporter" doc:"Who reported it." example:"agent:scout"`
	Occurrence *string `json:"occurrence" doc:"The reporter's name for this time; null without one." example:"run-7"`
	Evidence   string  `json:"evidence" doc:"What the reporter saw; empty without any." example:"504 after 60 s"`
	At         string  `json:"at" format:"date-time" doc:"When it was reported." example:"2026-03-02T10:00:00.000000Z"`
}

// FrictionRecord is a friction with its evidence.
type FrictionRecord struct {
	Friction
	Evidence []FrictionEvidence `json:"evidence" nullable:"false" doc:"The latest reports, newest first; a bounded number is kept."`
}

// FrictionList is one page of what was reported.
type FrictionList struct {
	Friction   []Friction `json:"friction" nullable:"false" doc:"The page, what was reported last first."`
	NextCursor *string    `json:"next_cursor" doc:"Continues the list as the parameter cursor; null on the last page."`
}

// FrictionReport is the body of a report.
type FrictionReport struct {
	Fingerprint  string  `json:"fingerprint" doc:"What makes reports the same friction; choose it so that the same cause has the same one." example:"registry:timeout"`
	Title        string  `json:"title" doc:"One line that names the friction; the proposal's title." example:"The registry times out"`
	Category     string  `json:"category" doc:"What it is about." example:"reliability"`
	Problem      string  `json:"problem" doc:"What gets in the way." example:"Pulls of large images fail."`
	SuggestedFix *string `json:"suggested_fix,omitempty" doc:"What to do about it, if you know." example:"Mirror the images."`
	Evidence     *string `json:"evidence,omitempty" doc:"What you saw this time: a log line, an error. At most 4096 bytes." example:"504 after 60 s"`
	Occurrence   *string `json:"occurrence,omitempty" doc:"Your own name for this time, such as a job's id: it counts once, however often you report it." example:"run-7"`
	Priority     *string `json:"priority,omitempty" doc:"How soon it should be reviewed; normal if left out." example:"normal"`
}

// TransformSchema takes lists and limits from the domain.
func (FrictionReport) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "fingerprint", func(p *huma.Schema) { p.Pattern = friction.Pattern() })
	property(s, "title", length(1, proposal.MaxTitle), matching(titlePattern()))
	property(s, "category", oneOf(proposal.Categories))
	property(s, "problem", length(1, friction.MaxProblem), matching(requiredPattern()))
	property(s, "suggested_fix", length(0, proposal.MaxText), matching(prosePattern()))
	property(s, "evidence", length(0, friction.MaxEvidence), matching(prosePattern()))
	property(s, "occurrence", length(0, friction.MaxOccurrence), matching(plainPattern()))
	property(s, "priority", oneOf(proposal.Priorities))
	return s
}

// FrictionOutcome is what a report led to.
type FrictionOutcome struct {
	Fingerprint string  `json:"fingerprint" doc:"The friction." example:"registry:timeout"`
	Count       int64   `json:"count" doc:"How many reports counted so far." example:"3"`
	Threshold   int     `json:"threshold" doc:"How many file a proposal; 0: none do." example:"3"`
	Counted     bool    `json:"counted" doc:"false: you had reported this occurrence before." example:"true"`
	Filed       bool    `json:"filed" doc:"Whether this report filed the proposal." example:"true"`
	ProposalID  *string `json:"proposal_id" doc:"The proposal that was filed, now or before; null before." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
}

// FrictionSettings is what the org does with reports.
type FrictionSettings struct {
	Threshold int `json:"threshold" doc:"How many reports file a proposal; 0: none do." example:"3"`
}

// FrictionSettingsChange is the body that changes them.
type FrictionSettingsChange struct {
	Threshold *int `json:"threshold" nullable:"false" doc:"From 2 to 100, or 0 to file nothing." example:"3"`
}

// TransformSchema takes the limits from the domain.
func (FrictionSettingsChange) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "threshold", between(friction.Off, friction.MaxThreshold), func(p *huma.Schema) {
		p.Not = &huma.Schema{}
		for n := friction.Off + 1; n < friction.MinThreshold; n++ {
			p.Not.Enum = append(p.Not.Enum, n)
		}
	})
	return s
}

type frictionLimit int

func (frictionLimit) Schema(huma.Registry) *huma.Schema {
	return integer(1, friction.MaxLimit, friction.DefaultLimit)
}

func frictionOf(f *friction.Friction) Friction {
	return Friction{
		Fingerprint: f.Fingerprint, Title: f.Title, Category: f.Category, Problem: f.Problem, SuggestedFix: f.SuggestedFix,
		Priority: f.Priority, Count: f.Count, ProposalID: orNull(f.ProposalID), FirstAt: stamp(f.FirstAt), LastAt: stamp(f.LastAt),
		LastBy: f.LastBy,
	}
}

func evidenceOf(e *friction.Evidence) FrictionEvidence {
	return FrictionEvidence{Seq: e.Seq, Reporter: e.Reporter, Occurrence: orNull(e.Occurrence), Evidence: e.Text, At: stamp(e.At)}
}
