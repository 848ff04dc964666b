package web

import (
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// noVote is the choice that withdraws a vote.
const noVote = "none"

// vote casts, changes or withdraws the member's vote: choice is for, against or none. A form with a
// comment replaces the earlier comment.
func (v *visit) vote() error {
	a, err := v.access(identity.VoteOnProposal)
	if err != nil {
		return err
	}
	id := v.r.PathValue("id")
	said, err := v.cast(a, id)
	if errs.As(err).Code == "proposal.not_open" {
		// It was decided meanwhile. The next page shows how.
		return v.back(v.base()+"/proposals/"+id, refusal(sentence(err)+" Your vote was not counted."))
	}
	if err != nil && v.r.PostForm.Has("comment") {
		return v.showProposal(decisionForm{}, err) // with the entered comment
	}
	if err != nil {
		return err
	}
	return v.back(v.base()+"/proposals/"+id, said)
}

// cast sets the vote and returns the message.
func (v *visit) cast(a identity.Access, id string) (string, error) {
	ctx, choice := v.r.Context(), v.value("choice")
	cur, err := v.voted(id)
	if err != nil {
		return "", err
	}
	if choice == noVote {
		if cur.Vote != nil {
			_, err = v.Proposals.WithdrawVote(ctx, a, id)
		}
		if errs.KindOf(err) == errs.NotFound { // it was already withdrawn
			err = nil
		}
		return "Your vote was withdrawn.", err
	}
	// The key includes the choice, because one page may send for and then against.
	once, err := idempotency.New(v.r.Method+" "+v.r.URL.Path+" "+choice, v.value(onceField), []byte(v.text("comment")))
	if err != nil {
		return "", err
	}
	b := proposal.Ballot{Choice: proposal.Choice(choice), Comment: v.text("comment"), Once: once}
	if !v.votedSo(cur, b) {
		out, err := v.Proposals.Vote(ctx, a, id, b)
		if err != nil {
			return "", err
		}
		if out.Replayed {
			if err := v.castAgain(a, id, b); err != nil {
				return "", err
			}
		}
	}
	return "You voted " + choice + ".", nil
}

// castAgain handles a page that was opened again with the back button: it sent this choice before,
// and the vote was changed since. If the vote is unchanged, it is not cast again.
func (v *visit) castAgain(a identity.Access, id string, b proposal.Ballot) error {
	cur, err := v.voted(id)
	if err != nil || v.votedSo(cur, b) {
		return err
	}
	b.Once = nil
	_, err = v.Proposals.Vote(v.r.Context(), a, id, b)
	return err
}

// voted returns the proposal with the member's vote.
func (v *visit) voted(id string) (proposal.Current, error) {
	a, err := v.access(identity.ReadProposal)
	if err != nil {
		return proposal.Current{}, err
	}
	return v.Proposals.Get(v.r.Context(), a, id)
}

// votedSo reports whether the ballot would change nothing.
func (v *visit) votedSo(cur proposal.Current, b proposal.Ballot) bool {
	if cur.Proposal.Status != proposal.Open || cur.Vote == nil || cur.Vote.Choice != b.Choice {
		return false
	}
	return !v.r.PostForm.Has("comment") || cur.Vote.Comment == b.Comment
}
