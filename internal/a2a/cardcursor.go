package a2a

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

// ofOthers begins a cursor among the public agents, in any org but a caller's own. It
// cannot begin the id of an agent.
const ofOthers = "~"

var errCursor = httpx.InvalidParts(httpx.Part{In: httpx.Query, Name: "after", Message: `must be the "next" of the page before`})

// Cursors of the card that everybody sees are signed. Each of its pages is built once a
// second at most, however many ask for it; anonymous clients that could invent cursors
// could have any number of different pages built.

// publicCursor is the cursor of the page behind an agent.
func (s *server) publicCursor(id string) string { return ofOthers + s.signCursor(id) + ofOthers + id }

// readPublicCursor is the inverse of publicCursor.
func (s *server) readPublicCursor(after string) (id string, err error) {
	if after == "" {
		return "", nil
	}
	signature, id, ok := strings.Cut(strings.TrimPrefix(after, ofOthers), ofOthers)
	if !ok || !hmac.Equal([]byte(signature), []byte(s.signCursor(id))) {
		return "", errCursor
	}
	return id, nil
}

func (s *server) signCursor(id string) string {
	h := hmac.New(sha256.New, s.CursorKey)
	h.Write([]byte(id))
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// readCursor reads the cursor of a caller: behind an agent of its own org or, if others
// is set, of other orgs.
func readCursor(after string) (id string, others bool, err error) {
	id, others = strings.CutPrefix(after, ofOthers)
	if id != "" && !identity.ValidAgentID(id) {
		return "", false, errCursor
	}
	return id, others, nil
}
