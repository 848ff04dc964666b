package identity

import "context"

// TokenPrefix starts every access token. A token has the form of a key's secret; its prefix
// selects the table to look it up in.
const TokenPrefix = secretPrefix + "at_"

// TokenPattern is the regular expression by which secret scanners find a token.
const TokenPattern = `parley_at_[0-9A-Za-z]{36}`

// NewToken returns an access token of 178 random bits.
func NewToken() string { return randomSecret(TokenPrefix) }

// WellFormedToken reports whether s has the shape and the checksum of a token.
func WellFormedToken(s string) bool { return wellFormed(TokenPrefix, s) }

// Tokens looks up the access tokens of the authorization server.
type Tokens interface {
	// CallerByToken returns the caller of a live token, and NotFound for any other token.
	// KeyID is the id of the token, and ExpiresAt its expiry.
	CallerByToken(ctx context.Context, h Hash) (*Caller, error)
}

// AcceptTokens makes the Authenticator accept access tokens. It must be called before the
// first request.
func (a *Authenticator) AcceptTokens(t Tokens) { a.tokens = t }
