package httpx

import (
	"crypto/rand"
	"strconv"
	"sync/atomic"
)

// requestIDs makes unique ids cheaply: a random prefix per process and a counter. They are not
// secret.
type requestIDs struct {
	prefix string
	count  atomic.Uint64
}

func newRequestIDs() *requestIDs { return &requestIDs{prefix: rand.Text()[:12] + "-"} }

// next keeps the client's id if it is safe in a log line.
func (g *requestIDs) next(sent []string) string {
	if len(sent) == 1 && validRequestID(sent[0]) {
		return sent[0]
	}
	var buf [32]byte
	return string(strconv.AppendUint(append(buf[:0], g.prefix...), g.count.Add(1), 36))
}

func validRequestID(s string) bool {
	if len(s) < 1 || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
