package text

import (
	"regexp"
	"sync"
)

// Pattern returns a function with the regular expression, which is compiled at the first call. Patterns
// with large counts take a millisecond, and most commands of the program match none.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
