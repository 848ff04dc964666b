package proposal

import "github.com/parley-dev/parley/internal/words"

// Terms returns the terms by which a search finds the proposal: those of the title, and those of the
// rest of its text. They can repeat.
func (p *Proposal) Terms() (title, text []string) {
	words.Index(p.Title, func(t string) { title = append(title, t) })
	add := func(t string) { text = append(text, t) }
	words.Index(p.Problem, add)
	words.Index(p.SuggestedFix, add)
	return title, text
}
