package proposal

import "github.com/parley-dev/parley/internal/words"

// Terms returns the terms by which a search finds the proposal: those of the title, and those of the
// rest of its text, each once.
func (p *Proposal) Terms() (title, text []string) {
	return terms(p.Title), terms(p.Problem, p.SuggestedFix)
}

func terms(texts ...string) (out []string) {
	seen := map[string]struct{}{}
	for _, text := range texts {
		words.Index(text, func(t string) {
			if _, ok := seen[t]; !ok {
				seen[t] = struct{}{}
				out = append(out, t)
			}
		})
	}
	return out
}
