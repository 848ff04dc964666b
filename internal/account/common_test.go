package account

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

func TestPasswordsThatAreGuessedFirstAreRefused(t *testing.T) {
	t.Parallel()
	ada := identity.Principal{Org: "acme", Kind: identity.User, ID: "ada"}
	for _, bad := range []string{
		"qwertyuiop123", "QwertyUiop123", "1q2w3e4r5t6y", "iloveyou1234", "Welcome12345", "letmein12345", " qwertyuiop123 ",
		"administrator",
		strings.Repeat(" ", 12), " \t  \u00a0  \u2003      ",
	} {
		if err := CheckPassword(ada, bad); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%q: %v; want a refusal", bad, err)
		}
	}
	for _, good := range []string{"qwertyuiop123 and more", "correct horse battery", "a b c d e f g"} {
		if err := CheckPassword(ada, good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}

func TestTheListOfCommonPasswords(t *testing.T) {
	t.Parallel()
	if n := len(commonSet()); n < 300 {
		t.Errorf("the list has %d entries", n)
	}
	for word := range commonSet() {
		if word != strings.ToLower(word) || utf8.RuneCountInString(word) < MinPassword {
			t.Errorf("%q is never compared: it must be in lower case, with %d characters or more", word, MinPassword)
		}
	}
}
