package web

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

func (p *Pages) mountProposal() {
	p.orgPages(map[string]handler{
		"GET /proposals/new":          (*visit).newProposalPage,
		"POST /proposals/new":         (*visit).submitProposal,
		"GET /proposals/similar":      (*visit).similarFragment,
		"GET /proposals/{id}":         (*visit).proposalPage,
		"GET /proposals/{id}/edit":    (*visit).editProposalPage,
		"POST /proposals/{id}/edit":   (*visit).editProposal,
		"GET /proposals/{id}/decide":  (*visit).toProposal,
		"GET /proposals/{id}/vote":    (*visit).toProposal,
		"POST /proposals/{id}/decide": (*visit).decide,
	})
}

// proposalView is the page of a proposal.
type proposalView struct {
	P         proposal.Proposal
	Own       *proposal.Vote
	Comment   string // comment on the member's vote, entered or stored
	People    proposal.Tally
	Agents    proposal.Tally
	MayVote   bool
	NoVote    string // why the member cannot vote; empty if allowed
	MayEdit   bool
	Decision  decisionView
	Changed   *changedView // set if the text changed while the member read
	Evidence  *evidenceView
	Votes     votesView
	History   historyView
	Similar   []proposal.Likely
	MayReject bool               // the member may reject it as a duplicate
	Original  *proposal.Proposal // duplicated proposal; nil if none is visible
	Followup  *followupCard
}

// toProposal redirects to the page of the proposal, because the URL of a form is not a page.
func (v *visit) toProposal() error { return v.done(v.proposalURL(v.r.PathValue("id")), "") }

func (v *visit) proposalURL(id string) string { return v.base() + "/proposals/" + id }

// proposalPage shows a proposal.
func (v *visit) proposalPage() error { return v.showProposal(decisionForm{}, nil) }

// showProposal shows a proposal. If a decision failed, typed has its values and problem its error.
func (v *visit) showProposal(typed decisionForm, problem error) error {
	a, err := v.access(identity.ReadProposal)
	if err != nil {
		return err
	}
	ctx, id := v.r.Context(), v.r.PathValue("id")
	cur, err := v.Proposals.Get(ctx, a, id)
	if err != nil {
		return err
	}
	p := cur.Proposal
	view := proposalView{P: p, Own: cur.Vote, People: p.People(), Agents: p.Agents(), MayEdit: v.mayEdit(&p)}
	view.MayVote, view.NoVote = v.mayVote(&p)
	if cur.Vote != nil {
		view.Comment = cur.Vote.Comment
	}
	if v.r.PostForm.Has("comment") {
		view.Comment = v.text("comment")
	}
	if view.Decision, err = v.decision(&p, typed); err != nil {
		return err
	}
	view.MayReject = view.Decision.allows(proposal.Rejected)
	if problem != nil && errs.KindOf(problem) == errs.Stale {
		if view.Changed, err = v.textChange(&p, typed.TextVersion); err != nil {
			return err
		}
	}
	if view.Evidence, err = v.evidence(&p); err != nil {
		return err
	}
	if view.Votes, err = v.votes(a, id); err != nil {
		return err
	}
	if view.History, err = v.history(id); err != nil {
		return err
	}
	if p.Status == proposal.Draft || p.Status == proposal.Open {
		// The page is still useful without them if the search is busy.
		if view.Similar, err = v.similarTo(p.Title, p.Problem, p.ID); err != nil && errs.KindOf(err) != errs.Unavailable {
			return err
		}
	}
	if view.Original, err = v.proposalWith(p.DuplicateOf); err != nil {
		return err
	}
	if view.Followup, err = v.followupCard(p.FollowupID); err != nil {
		return err
	}
	return renderForm(v, http.StatusOK, "proposal", p.Title, view, problem)
}

// mayEdit reports whether the member may edit the text, by the rules of the service.
func (v *visit) mayEdit(p *proposal.Proposal) bool {
	a, err := v.access(identity.ChangeProposal)
	return err == nil && (p.Status == proposal.Draft || p.Status == proposal.Open) &&
		(a.Has(identity.Admin) || p.SubmittedBy == v.member.Ref())
}

// mayVote reports whether the member may vote and, if not, why.
func (v *visit) mayVote(p *proposal.Proposal) (may bool, why string) {
	switch {
	case !v.may(identity.VoteOnProposal):
		return false, "Your account cannot vote."
	case p.Status == proposal.Draft:
		return false, "Voting starts when the draft is published."
	case p.Status != proposal.Open:
		return false, "Voting is over: the proposal is " + string(p.Status) + "."
	default:
		return true, ""
	}
}

// evidenceView shows the friction that filed a proposal.
type evidenceView struct {
	Fingerprint string
	Count       int64
	Reporters   int64 // of the stored reports
	Latest      []friction.Evidence
	More        bool // there are more reports
}

// maxEvidence is the number of reports on a page.
const maxEvidence = 10

// evidence returns the reports behind a proposal, or nil if it was not filed from friction.
func (v *visit) evidence(p *proposal.Proposal) (*evidenceView, error) {
	if p.Fingerprint == "" {
		return nil, nil
	}
	out := &evidenceView{Fingerprint: p.Fingerprint, Count: p.Evidence}
	a, err := v.access(identity.ReadFriction)
	if err != nil {
		return out, nil //nolint:nilerr // the member may only see the number
	}
	f, reports, err := v.Frictions.Get(v.r.Context(), a, p.Fingerprint)
	if err != nil {
		if errs.KindOf(err) == errs.NotFound {
			return out, nil
		}
		return nil, err
	}
	out.Count = max(out.Count, f.Count)
	who := map[string]bool{}
	for i := range reports {
		who[reports[i].Reporter] = true
	}
	out.Reporters = int64(len(who))
	out.Latest = reports[:min(len(reports), maxEvidence)]
	out.More = out.Count > int64(len(out.Latest))
	return out, nil
}

// votesView is a page of votes, of users and agents separately.
type votesView struct {
	People, Agents []proposal.Vote
	Total          int64
	Pager          pager
}

// votesPerPage is the page size of votes.
const votesPerPage = 50

// votes returns the page of votes that the query parameter "votes" selects.
func (v *visit) votes(a identity.Access, id string) (votesView, error) {
	page := proposal.Paging{Page: v.number("votes"), Limit: votesPerPage}
	list, total, err := v.Proposals.Votes(v.r.Context(), a, id, &page)
	if err != nil {
		return votesView{}, err
	}
	out := votesView{Total: total}
	for _, vote := range list {
		if strings.HasPrefix(vote.Voter, string(identity.Agent)+":") {
			out.Agents = append(out.Agents, vote)
		} else {
			out.People = append(out.People, vote)
		}
	}
	first := int64(page.Page-1)*votesPerPage + 1
	if total > votesPerPage && len(list) > 0 {
		out.Pager.Text = count(first) + "–" + count(first+int64(len(list))-1) + " of " + count(total)
	}
	if page.Page > 1 {
		out.Pager.Prev = v.pageLink(id, "votes", page.Page-1)
	}
	if first+int64(len(list)) <= total && len(list) > 0 {
		out.Pager.Next = v.pageLink(id, "votes", page.Page+1)
	}
	return out, nil
}

// number returns a page number of the URL, or 1 if it is invalid.
func (v *visit) number(name string) int {
	n, err := strconv.Atoi(v.r.URL.Query().Get(name))
	if err != nil || n < 1 || n > 1<<30 {
		return 1
	}
	return n
}

// pageLink returns the URL of another page of a list on the proposal's page.
func (v *visit) pageLink(id, list string, page int) string {
	return v.proposalURL(id) + "?" + list + "=" + strconv.Itoa(page) + "#" + list
}

// followupCard is the follow-up of a proposal, with the work of the agent.
type followupCard struct {
	followup.Followup
	Work *workView // nil if no agent works on it
}

// followupCard returns the follow-up, or nil.
func (v *visit) followupCard(id string) (*followupCard, error) {
	a, err := v.access(identity.ReadFollowup)
	if id == "" || err != nil {
		return nil, nil //nolint:nilerr // not shown
	}
	f, err := v.Followups.Get(v.r.Context(), a, id)
	if err != nil {
		if errs.KindOf(err) == errs.NotFound {
			return nil, nil
		}
		return nil, err
	}
	card := &followupCard{Followup: f}
	card.Work, err = v.work(&f, maxWorkBeside)
	return card, err
}

// similarTo lists likely duplicates of a text, without the proposal itself.
func (v *visit) similarTo(title, problem, except string) ([]proposal.Likely, error) {
	if strings.TrimSpace(title+problem) == "" {
		return nil, nil
	}
	to := proposal.SimilarTo{
		Title: clipRunes(title, proposal.MaxTitle), Problem: clipRunes(problem, proposal.MaxText), Except: except,
	}
	a, err := v.access(identity.ListProposals)
	if err != nil {
		return nil, err
	}
	return v.Proposals.Similar(v.r.Context(), a, to, 0)
}

func clipRunes(s string, most int) string {
	for i := range s {
		if most--; most < 0 {
			return s[:i]
		}
	}
	return s
}
