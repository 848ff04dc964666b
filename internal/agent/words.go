package agent

import (
	"strings"

	"github.com/parley-dev/parley/internal/words"
)

// Words are the terms by which the catalogue finds an agent, each with a space before and after it.
type Words struct {
	Names string // of its id, its name and its skills
	Text  string // of its description
}

// WordsOf returns the words of an agent, whose profile must be known.
func WordsOf(a *Agent) Words {
	names := []string{a.ID, a.Name}
	names = append(names, a.Skills...)
	for _, s := range a.Rich(&a.Profile) {
		names = append(names, s.ID, s.Name)
	}
	return Words{Names: termsOf(names...), Text: termsOf(a.Description)}
}

// termsOf returns the distinct terms of texts, or "" if there are none.
func termsOf(texts ...string) string {
	var all []string
	for _, text := range texts {
		words.Index(text, func(term string) { all = append(all, term) })
	}
	if len(all) == 0 {
		return ""
	}
	return " " + strings.Join(words.Distinct(all), " ") + " "
}
