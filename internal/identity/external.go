package identity

import (
	"context"
	"strings"
	"time"
)

// ExternalTokens verifies access tokens of other issuers.
type ExternalTokens interface {
	// CallerByJWT returns the caller that a token identifies. The error for a token that
	// is not accepted is Unauthenticated and says why. KeyID is the id of the token, and
	// ExpiresAt its expiry.
	CallerByJWT(ctx context.Context, token string) (*Caller, error)
}

// AcceptExternal makes the Authenticator accept tokens of other issuers. It must be called
// before the first request.
func (a *Authenticator) AcceptExternal(t ExternalTokens) { a.external = t }

// MaxJWT is the size limit of a token of another issuer, in bytes.
const MaxJWT = 16 << 10

// externalFor is how long a token is cached before it is verified again. A token that was
// signed with a stolen key stops working this long after the issuer removed the key.
const externalFor = 5 * time.Minute

// looksLikeJWT distinguishes tokens of another issuer from our keys and tokens.
func looksLikeJWT(s string) bool {
	return len(s) <= MaxJWT && !strings.HasPrefix(s, secretPrefix) && strings.Count(s, ".") == 2
}
