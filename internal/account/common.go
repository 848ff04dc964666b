package account

import (
	_ "embed"
	"strings"
	"sync"
)

// commonText lists common passwords, one per line, in lower case. Only passwords within the
// length bounds are useful here.
//
//go:embed common.txt
var commonText string

var commonSet = sync.OnceValue(func() map[string]struct{} {
	set := map[string]struct{}{}
	for word := range strings.Lines(commonText) {
		set[strings.TrimSpace(word)] = struct{}{}
	}
	return set
})

// common reports whether the password, in lower case, is in the list.
func common(lower string) bool {
	_, ok := commonSet()[strings.TrimSpace(lower)]
	return ok
}
