package storetest

import (
	"context"

	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// These services take the Access of a caller for any action, and authorize the caller for the
// action of each call, like a transport. So a test has to name the caller only once.

// proposals calls the service like a transport.
type proposals struct{ *proposal.Proposals }

func (s proposals) Submit(ctx context.Context, a identity.Access, cmd proposal.Submission) (proposal.Outcome, error) {
	a, err := a.As(identity.SubmitProposal)
	if err != nil {
		return proposal.Outcome{}, err
	}
	return s.Proposals.Submit(ctx, a, cmd)
}

func (s proposals) Get(ctx context.Context, a identity.Access, id string) (proposal.Current, error) {
	a, err := a.As(identity.ReadProposal)
	if err != nil {
		return proposal.Current{}, err
	}
	return s.Proposals.Get(ctx, a, id)
}

func (s proposals) List(ctx context.Context, a identity.Access, q proposal.Query) (proposal.Page, error) {
	a, err := a.As(identity.ListProposals)
	if err != nil {
		return proposal.Page{}, err
	}
	return s.Proposals.List(ctx, a, q)
}

func (s proposals) Counts(
	ctx context.Context, a identity.Access, q proposal.Query,
) (map[proposal.Status]int64, error) {
	a, err := a.As(identity.ListProposals)
	if err != nil {
		return nil, err
	}
	return s.Proposals.Counts(ctx, a, q)
}

func (s proposals) Groups(
	ctx context.Context, a identity.Access, q proposal.Query, by proposal.GroupBy,
) ([]proposal.Group, error) {
	a, err := a.As(identity.ListProposals)
	if err != nil {
		return nil, err
	}
	return s.Proposals.Groups(ctx, a, q, by)
}

func (s proposals) Similar(
	ctx context.Context, a identity.Access, to proposal.SimilarTo, limit int,
) ([]proposal.Likely, error) {
	a, err := a.As(identity.ListProposals)
	if err != nil {
		return nil, err
	}
	return s.Proposals.Similar(ctx, a, to, limit)
}

func (s proposals) SimilarToOne(
	ctx context.Context, a identity.Access, id string, limit int,
) ([]proposal.Likely, error) {
	a, err := a.As(identity.ReadProposal)
	if err != nil {
		return nil, err
	}
	return s.Proposals.SimilarToOne(ctx, a, id, limit)
}

func (s proposals) Vote(
	ctx context.Context, a identity.Access, id string, cmd proposal.Ballot,
) (proposal.Outcome, error) {
	a, err := a.As(identity.VoteOnProposal)
	if err != nil {
		return proposal.Outcome{}, err
	}
	return s.Proposals.Vote(ctx, a, id, cmd)
}

func (s proposals) WithdrawVote(ctx context.Context, a identity.Access, id string) (proposal.Outcome, error) {
	a, err := a.As(identity.VoteOnProposal)
	if err != nil {
		return proposal.Outcome{}, err
	}
	return s.Proposals.WithdrawVote(ctx, a, id)
}

func (s proposals) Resolve(
	ctx context.Context, a identity.Access, id string, cmd proposal.Resolution,
) (proposal.Outcome, error) {
	a, err := a.As(identity.ResolveProposal)
	if err != nil {
		return proposal.Outcome{}, err
	}
	return s.Proposals.Resolve(ctx, a, id, cmd)
}

func (s proposals) ResolveAll(
	ctx context.Context, a identity.Access, cmd proposal.Bulk,
) ([]proposal.BulkResult, error) {
	a, err := a.As(identity.ResolveProposal)
	if err != nil {
		return nil, err
	}
	return s.Proposals.ResolveAll(ctx, a, cmd)
}

func (s proposals) Edit(
	ctx context.Context, a identity.Access, id string, cmd proposal.Edit,
) (proposal.Outcome, error) {
	a, err := a.As(identity.ChangeProposal)
	if err != nil {
		return proposal.Outcome{}, err
	}
	return s.Proposals.Edit(ctx, a, id, cmd)
}

func (s proposals) Votes(
	ctx context.Context, a identity.Access, id string, p *proposal.Paging,
) ([]proposal.Vote, int64, error) {
	a, err := a.As(identity.ReadProposal)
	if err != nil {
		return nil, 0, err
	}
	return s.Proposals.Votes(ctx, a, id, p)
}

func (s proposals) History(
	ctx context.Context, a identity.Access, id string, p *proposal.Paging,
) ([]proposal.Entry, int64, error) {
	a, err := a.As(identity.ReadProposal)
	if err != nil {
		return nil, 0, err
	}
	return s.Proposals.History(ctx, a, id, p)
}

func (s proposals) Notes(ctx context.Context, a identity.Access) ([]proposal.SavedNote, error) {
	a, err := a.As(identity.ResolveProposal)
	if err != nil {
		return nil, err
	}
	return s.Proposals.Notes(ctx, a)
}

func (s proposals) CreateNote(
	ctx context.Context, a identity.Access, cmd proposal.NoteCreation,
) (proposal.SavedNote, error) {
	a, err := a.As(identity.ManageNotes)
	if err != nil {
		return proposal.SavedNote{}, err
	}
	return s.Proposals.CreateNote(ctx, a, cmd)
}

func (s proposals) DeleteNote(ctx context.Context, a identity.Access, id string) (proposal.SavedNote, error) {
	a, err := a.As(identity.ManageNotes)
	if err != nil {
		return proposal.SavedNote{}, err
	}
	return s.Proposals.DeleteNote(ctx, a, id)
}

func (s proposals) DataVersion(ctx context.Context, a identity.Access) (uint64, error) {
	a, err := a.As(identity.ListProposals)
	if err != nil {
		return 0, err
	}
	return s.Proposals.DataVersion(ctx, a)
}

// followups calls the service like a transport.
type followups struct{ *followup.Followups }

func (s followups) Create(ctx context.Context, a identity.Access, cmd followup.Creation) (followup.Outcome, error) {
	a, err := a.As(identity.CreateFollowup)
	if err != nil {
		return followup.Outcome{}, err
	}
	return s.Followups.Create(ctx, a, cmd)
}

func (s followups) Get(ctx context.Context, a identity.Access, id string) (followup.Followup, error) {
	a, err := a.As(identity.ReadFollowup)
	if err != nil {
		return followup.Followup{}, err
	}
	return s.Followups.Get(ctx, a, id)
}

func (s followups) List(
	ctx context.Context, a identity.Access, q *followup.Query,
) ([]followup.Followup, int64, error) {
	a, err := a.As(identity.ListFollowups)
	if err != nil {
		return nil, 0, err
	}
	return s.Followups.List(ctx, a, q)
}

func (s followups) Change(
	ctx context.Context, a identity.Access, id string, cmd followup.Edit,
) (followup.Outcome, error) {
	a, err := a.As(identity.ChangeFollowup)
	if err != nil {
		return followup.Outcome{}, err
	}
	return s.Followups.Change(ctx, a, id, cmd)
}

// frictions calls the service like a transport.
type frictions struct{ *friction.Frictions }

func (s frictions) Report(ctx context.Context, a identity.Access, r friction.Report) (friction.Outcome, error) {
	a, err := a.As(identity.ReportFriction)
	if err != nil {
		return friction.Outcome{}, err
	}
	return s.Frictions.Report(ctx, a, r)
}

func (s frictions) List(ctx context.Context, a identity.Access, cursor string, limit int) (friction.Page, error) {
	a, err := a.As(identity.ReadFriction)
	if err != nil {
		return friction.Page{}, err
	}
	return s.Frictions.List(ctx, a, cursor, limit)
}

func (s frictions) Get(
	ctx context.Context, a identity.Access, fingerprint string,
) (friction.Friction, []friction.Evidence, error) {
	a, err := a.As(identity.ReadFriction)
	if err != nil {
		return friction.Friction{}, nil, err
	}
	return s.Frictions.Get(ctx, a, fingerprint)
}

func (s frictions) Threshold(ctx context.Context, a identity.Access) (int, error) {
	a, err := a.As(identity.ReadFriction)
	if err != nil {
		return 0, err
	}
	return s.Frictions.Threshold(ctx, a)
}

func (s frictions) SetThreshold(ctx context.Context, a identity.Access, n int) error {
	a, err := a.As(identity.ManageFriction)
	if err != nil {
		return err
	}
	return s.Frictions.SetThreshold(ctx, a, n)
}
