package identity

import "context"

// TokenPrefix starts every access token. A token is made and checked like a key's
// secret, and tells by its prefix where to look it up.
const TokenPrefix = secretPrefix + "at_"

// TokenPattern is the regular expression by which secret scanners find a token.
const TokenPattern = `parley_at_[0-9A-Za-z]{36}`

// NewToken makes an access token of 178 random bits.
func NewToken() string { return randomSecret(TokenPrefix) }

// WellFormedToken reports whether s has the shape and the checksum of a token.
func WellFormedToken(s string) bool { return wellFormed(TokenPrefix, s) }

// Tokens knows the access tokens that an authorization server gave out.
type Tokens interface {
	// CallerByToken returns the caller that a live token speaks for, and NotFound for
	// any other. The caller's KeyID names the token, and ExpiresAt is its end.
	CallerByToken(ctx context.Context, h Hash) (*Caller, error)
}

// AcceptTokens lets access tokens in wherever keys are. It is called before the
// first request.
func (a *Authenticator) AcceptTokens(t Tokens) { a.tokens = t }
