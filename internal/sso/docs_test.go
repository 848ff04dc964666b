package sso

import (
	"os"
	"strings"
	"testing"
)

// What the documentation shows is what the server reads.
func TestTheDocumentedFileIsGood(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/auth.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(data), "```json\n{\"issuers\"")
	example, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("docs/auth.md shows no file of issuers")
	}
	list, err := parse([]byte(`{"issuers"` + example))
	if err != nil || len(list) != 1 || list[0].Tokens == nil || list[0].SignIn == nil {
		t.Error(list, err)
	}
}
