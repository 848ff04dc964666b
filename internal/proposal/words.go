package proposal

import (
	"slices"

	"github.com/parley-dev/parley/internal/words"
)

// Terms returns the terms by which a search finds the proposal: those of the title, and those of the
// rest of its text, some of them repeatedly.
func (p *Proposal) Terms() (title, text []string) {
	return terms(p.Title), terms(p.Problem, p.SuggestedFix)
}

// manyTerms is the number from which repeated terms are removed. The index accepts them; finding them
// costs more than it saves for fewer terms.
const manyTerms = 512

func terms(texts ...string) []string {
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	out := make([]string, 0, size/6+1) // one for each word of usual length
	for _, text := range texts {
		words.Index(text, func(t string) { out = append(out, t) })
	}
	if len(out) > manyTerms {
		slices.Sort(out)
		out = slices.Compact(out)
	}
	return out
}
