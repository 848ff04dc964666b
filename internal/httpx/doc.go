// Package httpx is the part of HTTP that every transport shares: request ids,
// recovery, security headers, metrics, the access log, bearer authentication,
// rate limits, one strict JSON decoder and the one mapping of errors to
// problem documents (RFC 9457).
//
// It knows errs and identity, and nothing else of the domain: no route, no
// resource, no wire type of one API.
package httpx
