package identity

import (
	"context"
	"strings"
	"time"
)

// ExternalTokens knows access tokens that other issuers gave out.
type ExternalTokens interface {
	// CallerByJWT returns the caller that a token speaks for. One that is good for
	// nothing is Unauthenticated, in words that say why. The caller's KeyID names
	// the token, and ExpiresAt is when it is over.
	CallerByJWT(ctx context.Context, token string) (*Caller, error)
}

// AcceptExternal lets tokens of other issuers in wherever keys are. It is called
// before the first request.
func (a *Authenticator) AcceptExternal(t ExternalTokens) { a.external = t }

// MaxJWT bounds a token of another issuer, in bytes.
const MaxJWT = 16 << 10

// externalFor is how long a token is believed without another look at its issuer's
// keys, so that one that was signed with a stolen key ends with the key.
const externalFor = 5 * time.Minute

// looksLikeJWT tells a token of another issuer from everything of ours.
func looksLikeJWT(s string) bool {
	return len(s) <= MaxJWT && !strings.HasPrefix(s, secretPrefix) && strings.Count(s, ".") == 2
}
