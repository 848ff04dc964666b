package rest

import (
	"context"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

type changeProposalInput struct {
	ProposalPath
	OnceHeader
	IfMatch string `header:"If-Match" doc:"ETag of the version you read. 412 if the record has changed since."`
	Body    payload[ProposalPatch]
}

type changeProposalOutput struct {
	ETag     string `header:"ETag" doc:"The new version of the record."`
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
	Body     shownProposal
}

// changeProposal handles two commands on one path: a body with a status is a decision, any other
// body is an edit.
func (a *api) changeProposal(ctx context.Context, c *call, in *changeProposalInput) (*changeProposalOutput, error) {
	version := func() (int64, error) {
		cur, err := a.proposals.Get(ctx, c.Access, in.ID)
		return cur.Proposal.Version, err
	}
	run := a.edit
	// A status that cannot be decoded still requires the right to decide.
	if in.Body.value.Status != nil || in.Body.failed("status") {
		run = a.resolve
	}
	done, err := run(ctx, c, in, version)
	if err != nil {
		return nil, err
	}
	return &changeProposalOutput{
		ETag: c.etag(&done.Proposal), Replayed: replayed(done.Replayed), Body: shownProposal{&done.Proposal, done.Vote},
	}, nil
}

type readVersion = func() (int64, error)

func (a *api) resolve(ctx context.Context, c *call, in *changeProposalInput, version readVersion) (proposal.Outcome, error) {
	// A decision is another action than an edit. Authorize it before reporting errors in the body.
	access, err := c.As(identity.ResolveProposal)
	if err != nil {
		return proposal.Outcome{}, err
	}
	b := &in.Body.value
	cmd := proposal.Resolution{
		Status: proposal.Status(deref(b.Status)), Note: deref(b.ResolutionNote), DuplicateOf: deref(b.DuplicateOf),
		IfTextVersion: b.TextVersion,
	}
	wrong := append(
		b.edits("cannot be changed together with status; send two requests"),
		notEmpty("duplicate_of", b.DuplicateOf)...,
	)
	if err := in.Body.check(cmd.Validate(), wrong...); err != nil {
		return proposal.Outcome{}, err
	}
	if cmd.IfVersion, err = ifMatch(c.request.Header, version); err != nil {
		return proposal.Outcome{}, err
	}
	if cmd.Once, err = c.once(b); err != nil {
		return proposal.Outcome{}, err
	}
	return a.proposals.Resolve(ctx, access, in.ID, cmd)
}

func (a *api) edit(ctx context.Context, c *call, in *changeProposalInput, version readVersion) (proposal.Outcome, error) {
	b := &in.Body.value
	cmd := proposal.Edit{
		Title: b.Title, Category: (*proposal.Category)(b.Category), Problem: b.Problem, SuggestedFix: b.SuggestedFix,
		Priority: (*proposal.Priority)(b.Priority), IfTextVersion: b.TextVersion,
	}
	wrong := b.decisions("is allowed only together with status")
	switch {
	case len(wrong) > 0:
	case len(b.edits("")) == 0 && len(in.Body.broken) == 0:
		wrong = append(wrong, errs.Field{
			Message: "must contain status, or at least one of title, category, problem, suggested_fix and priority",
		})
	}
	if err := in.Body.check(cmd.Validate(), wrong...); err != nil {
		return proposal.Outcome{}, err
	}
	var err error
	if cmd.IfVersion, err = ifMatch(c.request.Header, version); err != nil {
		return proposal.Outcome{}, err
	}
	if cmd.Once, err = c.once(b); err != nil {
		return proposal.Outcome{}, err
	}
	return a.proposals.Edit(ctx, c.Access, in.ID, cmd)
}

// edits lists the editable fields that are set, each with the message.
func (b *ProposalPatch) edits(msg string) []errs.Field {
	var out []errs.Field
	for _, f := range []struct {
		name  string
		value *string
	}{
		{"title", b.Title},
		{"category", b.Category},
		{"problem", b.Problem},
		{"suggested_fix", b.SuggestedFix},
		{"priority", b.Priority},
	} {
		if f.value != nil {
			out = append(out, errs.Field{Path: errs.At(f.name), Message: msg})
		}
	}
	return out
}

// decisions lists the fields that are set and allowed only with a status.
func (b *ProposalPatch) decisions(msg string) []errs.Field {
	var out []errs.Field
	if b.ResolutionNote != nil {
		out = append(out, errs.Field{Path: errs.At("resolution_note"), Message: msg})
	}
	if b.DuplicateOf != nil {
		out = append(out, errs.Field{Path: errs.At("duplicate_of"), Message: msg})
	}
	return out
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
