package rest

import (
	"context"
	"net/http"

	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
)

const (
	frictionsPath        = "/api/v1/orgs/{org}/friction"
	frictionPath         = frictionsPath + "/{fingerprint}"
	frictionSettingsPath = "/api/v1/orgs/{org}/settings/friction"
)

func (a *api) registerFriction() {
	register(a, operation{
		id: "report-friction", method: http.MethodPost, path: frictionsPath, tag: tagFriction,
		summary: "Report friction", action: identity.ReportFriction,
		description: "Counts a report of a recurring problem. The report that reaches the org's threshold files a proposal " +
			"in the reporter's name, with the collected evidence. Later reports only add evidence, whatever the status of the " +
			"proposal. An `occurrence` counts once per reporter. Requires svc:tasks:write; services cannot report.",
	}, a.reportFriction)
	post := a.huma.OpenAPI().Paths[frictionsPath].Post
	filed := *post.Responses["200"]
	filed.Description = "The report filed a proposal."
	post.Responses["201"] = &filed
	register(a, operation{
		id: "list-friction", method: http.MethodGet, path: frictionsPath, tag: tagFriction,
		summary: "List reported friction", action: identity.ReadFriction,
		description: "Last reported first. Requires svc:tasks:read.",
	}, a.listFriction)
	register(a, operation{
		id: "get-friction", method: http.MethodGet, path: frictionPath, tag: tagFriction,
		summary: "Get reported friction", action: identity.ReadFriction,
		description: "With the evidence of the latest reports, newest first. Requires svc:tasks:read.",
	}, a.getFriction)
	register(a, operation{
		id: "get-friction-settings", method: http.MethodGet, path: frictionSettingsPath, tag: tagFriction,
		summary: "Get the friction settings", action: identity.ReadFriction, description: "Requires svc:tasks:read.",
	}, a.getFrictionSettings)
	register(a, operation{
		id: "set-friction-settings", method: http.MethodPut, path: frictionSettingsPath, tag: tagFriction,
		summary: "Change the friction settings", action: identity.ManageFriction, audit: friction.ThresholdSet,
		description: "Earlier reports count towards the new threshold. Requires svc:admin:admin.",
	}, a.setFrictionSettings)
}

type reportFrictionInput struct {
	OrgPath
	OnceHeader
	Body payload[FrictionReport]
}

type reportFrictionOutput struct {
	Status   int
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
	Body     FrictionOutcome
}

func (a *api) reportFriction(ctx context.Context, c *call, in *reportFrictionInput) (*reportFrictionOutput, error) {
	b := &in.Body.value
	cmd := friction.Report{
		Fingerprint: b.Fingerprint, Title: b.Title, Category: b.Category, Problem: b.Problem,
		SuggestedFix: deref(b.SuggestedFix), Evidence: deref(b.Evidence), Occurrence: deref(b.Occurrence),
		Priority: deref(b.Priority),
	}
	if err := in.Body.check(a.frictions.Validate(&cmd), notEmpty("priority", b.Priority)...); err != nil {
		return nil, err
	}
	var err error
	if cmd.Once, err = c.once(b); err != nil {
		return nil, err
	}
	done, err := a.frictions.Report(ctx, c.Access, cmd)
	if err != nil {
		return nil, err
	}
	out := &reportFrictionOutput{Status: http.StatusOK, Replayed: replayed(done.Replayed), Body: FrictionOutcome{
		Fingerprint: done.Friction.Fingerprint, Count: done.Friction.Count, Threshold: done.Threshold,
		Counted: done.Counted, Filed: done.Filed, ProposalID: orNull(done.Friction.ProposalID),
	}}
	if done.Filed {
		out.Status = http.StatusCreated
	}
	return out, nil
}

type listFrictionInput struct {
	OrgPath
	Cursor string        `query:"cursor" doc:"Cursor: next_cursor of the previous page."`
	Limit  frictionLimit `query:"limit" doc:"Page size."`
}

type listFrictionOutput struct{ Body FrictionList }

func (a *api) listFriction(ctx context.Context, c *call, in *listFrictionInput) (*listFrictionOutput, error) {
	page, err := a.frictions.List(ctx, c.Access, in.Cursor, int(in.Limit))
	if err != nil {
		return nil, err
	}
	out := &listFrictionOutput{
		Body: FrictionList{Friction: make([]Friction, len(page.Frictions)), NextCursor: orNull(page.Next)},
	}
	for i := range page.Frictions {
		out.Body.Friction[i] = frictionOf(&page.Frictions[i])
	}
	return out, nil
}

type getFrictionInput struct {
	OrgPath
	Fingerprint string `path:"fingerprint" pattern:"^[a-z0-9][a-z0-9._:-]{0,199}$" doc:"Fingerprint." example:"registry:timeout"`
}

type getFrictionOutput struct{ Body FrictionRecord }

func (a *api) getFriction(ctx context.Context, c *call, in *getFrictionInput) (*getFrictionOutput, error) {
	f, evidence, err := a.frictions.Get(ctx, c.Access, in.Fingerprint)
	if err != nil {
		return nil, err
	}
	out := &getFrictionOutput{
		Body: FrictionRecord{Friction: frictionOf(&f), Evidence: make([]FrictionEvidence, len(evidence))},
	}
	for i := range evidence {
		out.Body.Evidence[i] = evidenceOf(&evidence[i])
	}
	return out, nil
}

type frictionSettingsOutput struct{ Body FrictionSettings }

func (a *api) getFrictionSettings(ctx context.Context, c *call, _ *OrgPath) (*frictionSettingsOutput, error) {
	n, err := a.frictions.Threshold(ctx, c.Access)
	if err != nil {
		return nil, err
	}
	return &frictionSettingsOutput{Body: FrictionSettings{Threshold: n}}, nil
}

type setFrictionSettingsInput struct {
	OrgPath
	Body payload[FrictionSettingsChange]
}

func (a *api) setFrictionSettings(
	ctx context.Context, c *call, in *setFrictionSettingsInput,
) (*frictionSettingsOutput, error) {
	n := in.Body.value.Threshold
	if n == nil {
		n = new(int)
		*n = -1 // never valid, because the field is required
	}
	if err := in.Body.check(friction.ValidateThreshold(*n)); err != nil {
		return nil, err
	}
	if err := a.frictions.SetThreshold(ctx, c.Access, *n); err != nil {
		return nil, err
	}
	return &frictionSettingsOutput{Body: FrictionSettings{Threshold: *n}}, nil
}
