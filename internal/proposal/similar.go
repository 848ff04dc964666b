package proposal

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/words"
)

const (
	// MaxSimilar limits the number of likely duplicates.
	MaxSimilar = 5
	// MaxLikeWords limits the words of a text that are searched.
	MaxLikeWords = 12
	// SimilarCandidates is how many matching proposals are compared.
	SimilarCandidates = 30
)

// SimilarTo is the text to find likely duplicates of.
type SimilarTo struct {
	Title   string
	Problem string
	Except  string // the id of the proposal itself; empty before it is submitted
}

// Likeness is a query for proposals that have some of the words.
type Likeness struct {
	Org    string
	Viewer Viewer
	Words  []string // the most significant first
	Except string
}

// Likely is a likely duplicate.
type Likely struct {
	Item
	Words int // how many of the words it contains
}

// Similar returns likely duplicates, the most similar first: open, approved and rejected
// proposals, and the caller's own drafts. limit is at most MaxSimilar, which is the default.
func (s *Proposals) Similar(ctx context.Context, a identity.Access, to SimilarTo, limit int) ([]Likely, error) {
	if err := a.For(identity.ListProposals); err != nil {
		return nil, err
	}
	return s.similar(ctx, a, to, limit)
}

func (s *Proposals) similar(ctx context.Context, a identity.Access, to SimilarTo, limit int) ([]Likely, error) {
	if limit == 0 {
		limit = MaxSimilar
	}
	if err := to.check(limit); err != nil {
		return nil, err
	}
	like := LikeWords(to.Title, to.Problem)
	if len(like) == 0 {
		return []Likely{}, nil
	}
	found, err := s.store.Similar(ctx, Likeness{Org: a.Org(), Viewer: viewer(a), Words: like, Except: to.Except})
	if err != nil {
		return nil, err
	}
	return rank(like, found, limit), nil
}

// SimilarToOne is like Similar, for an existing proposal.
func (s *Proposals) SimilarToOne(ctx context.Context, a identity.Access, id string, limit int) ([]Likely, error) {
	if err := a.For(identity.ReadProposal); err != nil {
		return nil, err
	}
	cur, err := s.Get(ctx, a, id)
	if err != nil {
		return nil, err
	}
	p := &cur.Proposal
	return s.similar(ctx, a, SimilarTo{Title: p.Title, Problem: p.Problem, Except: id}, limit)
}

func (to *SimilarTo) check(limit int) error {
	c := queryCheck{}
	if limit < 1 || limit > MaxSimilar {
		c.add("limit", "must be between 1 and "+strconv.Itoa(MaxSimilar))
	}
	for _, f := range []struct {
		name, text string
		most       int
	}{{"title", to.Title, MaxTitle}, {"problem", to.Problem, MaxText}} {
		c.text(f.name, f.text, f.most)
	}
	if to.Title == "" && to.Problem == "" {
		c.add("title", "is required, unless there is a problem")
	}
	if len(c.fields) > 0 {
		return errs.InvalidFields(c.fields...)
	}
	return nil
}

// rank sorts the candidates. A word in the title counts twice. A candidate with only one of
// several words is dropped.
func rank(like []string, found []Proposal, limit int) []Likely {
	type scored struct {
		Likely
		score int
	}
	var list []scored
	for i := range found {
		p := &found[i]
		all := CountWords(like, p.Title, p.Problem, p.SuggestedFix)
		if all < min(2, len(like)) {
			continue
		}
		it := Item{Proposal: *p, Excerpt: ExcerptOf(p.Problem)}
		it.Problem, it.SuggestedFix, it.ResolutionNote = "", "", ""
		list = append(list, scored{Likely{it, all}, all + CountWords(like, p.Title)})
	}
	slices.SortFunc(list, func(x, y scored) int {
		return cmp.Or(-cmp.Compare(x.score, y.score), -cmp.Compare(x.ID, y.ID)) // newest first
	})
	out := make([]Likely, 0, limit)
	for _, s := range list[:min(len(list), limit)] {
		out = append(out, s.Likely)
	}
	return out
}

// CountWords returns how many of the words the texts contain.
func CountWords(list []string, texts ...string) int {
	has := map[string]bool{}
	for _, text := range texts {
		words.Index(text, func(t string) { has[t] = true })
	}
	n := 0
	for _, w := range list {
		if has[w] {
			n++
		}
	}
	return n
}

// LikeWords returns the words by which likely duplicates are found: those of the title, then
// those of the problem, without short and common words.
func LikeWords(title, problem string) []string {
	list := slices.DeleteFunc(words.Distinct(append(words.Query(title), words.Query(problem)...)), func(w string) bool {
		return len(w) < 3 || stopWords[w] // bytes, because two characters can be a word in other scripts
	})
	return list[:min(len(list), MaxLikeWords)]
}
