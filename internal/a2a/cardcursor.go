package a2a

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

// ofOthers begins a cursor among the public agents, in any org but the caller's. It cannot begin
// the id of an agent.
const ofOthers = "~"

var errCursor = httpx.InvalidParts(httpx.Part{
	In: httpx.Query, Name: "after", Message: `must be the "next" of the page before`,
})

// Cursors of the public card are signed. Each of its pages is built at most once a second; if
// anonymous clients could invent cursors, they could make the server build any number of different
// pages.

// publicCursor returns the cursor of the page that follows an agent.
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

// readCursor reads the cursor of a caller: after an agent of the caller's org or, if others is set,
// of other orgs.
func readCursor(after string) (id string, others bool, err error) {
	id, others = strings.CutPrefix(after, ofOthers)
	if id != "" && !identity.ValidAgentID(id) {
		return "", false, errCursor
	}
	return id, others, nil
}
