package account

import (
	_ "embed"
	"strings"
	"sync"
)

// commonText lists passwords that are tried first by whoever guesses, one in a line, in
// lower case. Only those that the bounds of a password let through are of use here.
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

// common reports whether the password, in lower case, is one of the list.
func common(lower string) bool {
	_, ok := commonSet()[strings.TrimSpace(lower)]
	return ok
}
