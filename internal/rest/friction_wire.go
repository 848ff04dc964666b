package rest

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/proposal"
)

// Friction is a reported problem, identified by its fingerprint.
type Friction struct {
	Fingerprint  string  `json:"fingerprint" doc:"Reports with the same fingerprint are counted together." example:"registry:timeout"`
	Title        string  `json:"title" doc:"Title in the latest report, like the fields below." example:"The registry times out"`
	Category     string  `json:"category" doc:"Category." example:"reliability"`
	Problem      string  `json:"problem" doc:"What goes wrong." example:"Pulls of large images fail."`
	SuggestedFix string  `json:"suggested_fix" doc:"Latest suggested fix; empty without one." example:"Mirror the images."`
	Priority     string  `json:"priority" doc:"Priority for the review." example:"normal"`
	Count        int64   `json:"count" doc:"Number of counted reports." example:"4"`
	ProposalID   *string `json:"proposal_id" doc:"Proposal that was filed; null before." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
	FirstAt      string  `json:"first_at" format:"date-time" doc:"When it was first reported." example:"2026-03-01T09:30:00.000000Z"`
	LastAt       string  `json:"last_at" format:"date-time" doc:"When it was last reported."`
	LastBy       string  `json:"last_by" doc:"Who reported it last." example:"agent:scout"`
}

// FrictionEvidence is a counted report.
type FrictionEvidence struct {
	Seq        int64   `json:"seq" doc:"Number of the report, from 1." example:"4"`
	Reporter   string  `json:"reporter" doc:"Who reported it." example:"agent:scout"`
	Occurrence *string `json:"occurrence" doc:"The reporter's id of the occurrence; null without one." example:"run-7"`
	Evidence   string  `json:"evidence" doc:"What the reporter observed; may be empty." example:"504 after 60 s"`
	At         string  `json:"at" format:"date-time" doc:"When it was reported."`
}

// FrictionRecord is friction with its evidence.
type FrictionRecord struct {
	Friction
	Evidence []FrictionEvidence `json:"evidence" nullable:"false" doc:"Latest reports, newest first; their number is limited."`
}

// FrictionList is a page of friction.
type FrictionList struct {
	Friction   []Friction `json:"friction" nullable:"false" doc:"Friction, last reported first."`
	NextCursor *string    `json:"next_cursor" doc:"Cursor of the next page; null on the last page."`
}

// FrictionReport is the body of a report.
type FrictionReport struct {
	Fingerprint  string  `json:"fingerprint" doc:"Identifies the cause; use the same one for the same cause." example:"registry:timeout"`
	Title        string  `json:"title" doc:"One line that names the problem; title of the proposal." example:"The registry times out"`
	Category     string  `json:"category" doc:"Category." example:"reliability"`
	Problem      string  `json:"problem" doc:"What goes wrong." example:"Pulls of large images fail."`
	SuggestedFix *string `json:"suggested_fix,omitempty" doc:"How to fix it, if known." example:"Mirror the images."`
	Evidence     *string `json:"evidence,omitempty" doc:"A log line or an error; at most 4096 bytes." example:"504 after 60 s"`
	Occurrence   *string `json:"occurrence,omitempty" doc:"Your id, such as a job id. Counts once per reporter." example:"run-7"`
	Priority     *string `json:"priority,omitempty" doc:"Priority for the review; default normal." example:"normal"`
}

// TransformSchema adds the enumerations and limits of the domain.
func (FrictionReport) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "fingerprint", matching(friction.Pattern()))
	property(s, "title", length(1, proposal.MaxTitle), matching(titlePattern()))
	property(s, "category", oneOf(proposal.Categories))
	property(s, "problem", length(1, friction.MaxProblem), matching(requiredPattern()))
	property(s, "suggested_fix", length(0, proposal.MaxText), matching(prosePattern()))
	property(s, "evidence", length(0, friction.MaxEvidence), matching(prosePattern()))
	property(s, "occurrence", length(0, friction.MaxOccurrence), matching(plainPattern()))
	property(s, "priority", oneOf(proposal.Priorities))
	return s
}

// FrictionOutcome is the result of a report.
type FrictionOutcome struct {
	Fingerprint string  `json:"fingerprint" doc:"Fingerprint." example:"registry:timeout"`
	Count       int64   `json:"count" doc:"Number of counted reports so far." example:"3"`
	Threshold   int     `json:"threshold" doc:"Number of reports that file a proposal; 0 means never." example:"3"`
	Counted     bool    `json:"counted" doc:"false if you have already reported this occurrence." example:"true"`
	Filed       bool    `json:"filed" doc:"Whether this report filed the proposal." example:"true"`
	ProposalID  *string `json:"proposal_id" doc:"Proposal that was filed, now or earlier; null before."`
}

// TransformSchema adds an example.
func (FrictionOutcome) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "proposal_id", exampleOf(exampleProposalID))
	return s
}

// FrictionSettings are the friction settings of the org.
type FrictionSettings struct {
	Threshold int `json:"threshold" doc:"Number of reports that file a proposal; 0 means never." example:"3"`
}

// FrictionSettingsChange is the body that changes the settings.
type FrictionSettingsChange struct {
	Threshold *int `json:"threshold" nullable:"false" doc:"2 to 100 reports, or 0 to file nothing." example:"3"`
}

// TransformSchema adds the limits of the domain.
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
		Fingerprint: f.Fingerprint, Title: f.Title, Category: f.Category, Problem: f.Problem,
		SuggestedFix: f.SuggestedFix, Priority: f.Priority, Count: f.Count, ProposalID: orNull(f.ProposalID),
		FirstAt: stamp(f.FirstAt), LastAt: stamp(f.LastAt), LastBy: f.LastBy,
	}
}

func evidenceOf(e *friction.Evidence) FrictionEvidence {
	return FrictionEvidence{
		Seq: e.Seq, Reporter: e.Reporter, Occurrence: orNull(e.Occurrence), Evidence: e.Text, At: stamp(e.At),
	}
}
