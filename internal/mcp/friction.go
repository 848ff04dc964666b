package mcp

import (
	"context"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

type frictionIn struct {
	Fingerprint  string  `json:"fingerprint" jsonschema:"Identifies the friction, such as registry:timeout; the same for the same cause."`
	Title        string  `json:"title" jsonschema:"One line that names the friction; the proposal's title."`
	Category     string  `json:"category" jsonschema:"The topic."`
	Problem      string  `json:"problem" jsonschema:"What gets in the way."`
	SuggestedFix *string `json:"suggested_fix,omitempty" jsonschema:"What to do about it, if you know."`
	Evidence     *string `json:"evidence,omitempty" jsonschema:"What you saw this time: a log line, an error."`
	Occurrence   *string `json:"occurrence,omitempty" jsonschema:"Your name for this time, such as a job's id; it counts once."`
	Priority     *string `json:"priority,omitempty" jsonschema:"How soon it should be reviewed."`
}

type frictionOut struct {
	Fingerprint string  `json:"fingerprint"`
	Count       int64   `json:"count" jsonschema:"How many reports counted so far."`
	Threshold   int     `json:"threshold" jsonschema:"How many reports file a proposal; 0: never."`
	Counted     bool    `json:"counted" jsonschema:"false: you reported this occurrence before."`
	Filed       bool    `json:"filed" jsonschema:"Whether this report filed the proposal."`
	ProposalID  *string `json:"proposal_id" jsonschema:"The proposal that was filed, now or before; null: none yet."`
}

func (s *server) addFriction(m *sdk.Server) {
	add(s, m, tool{
		name: "report_friction", title: "Report friction", action: identity.ReportFriction,
		description: "Reports something that got in your way. Call it each time, with the same fingerprint: " +
			"the report that reaches your org's threshold (default 3) files a proposal in your name " +
			"with the collected evidence; later reports only add evidence. " +
			"Needs the scope svc:tasks:write; services cannot report. " +
			"A repeat counts again, unless it has the same occurrence.",
		limits: func(s *jsonschema.Schema) {
			s.Properties["fingerprint"].Pattern = friction.Pattern()
			length(s, "title", 1, proposal.MaxTitle)
			oneOf(s, "category", proposal.Categories)
			length(s, "problem", 1, friction.MaxProblem)
			length(s, "suggested_fix", 0, proposal.MaxText)
			length(s, "evidence", 0, friction.MaxEvidence)
			length(s, "occurrence", 0, friction.MaxOccurrence)
			oneOf(s, "priority", proposal.Priorities)
			byDefault(s, "priority", `"normal"`)
		},
	}, s.reportFriction)
}

func (s *server) reportFriction(ctx context.Context, a *arguments[frictionIn]) (*frictionOut, error) {
	cmd := friction.Report{
		Fingerprint: a.in.Fingerprint, Title: a.in.Title, Category: a.in.Category, Problem: a.in.Problem,
		SuggestedFix: deref(a.in.SuggestedFix), Evidence: deref(a.in.Evidence), Occurrence: deref(a.in.Occurrence),
		Priority: deref(a.in.Priority),
	}
	a.notEmpty("priority", a.in.Priority)
	if err := a.check(s.Frictions.Validate(&cmd)); err != nil {
		return nil, err
	}
	done, err := s.Frictions.Report(ctx, a.access, cmd)
	if err != nil {
		return nil, err
	}
	return &frictionOut{
		Fingerprint: done.Friction.Fingerprint, Count: done.Friction.Count, Threshold: done.Threshold,
		Counted: done.Counted, Filed: done.Filed, ProposalID: orNull(done.Friction.ProposalID),
	}, nil
}
