// Package httpx holds what every HTTP transport shares: request ids, panic recovery, security
// headers, metrics, the access log, bearer authentication, rate limits, a strict JSON decoder and
// the mapping of errors to problem documents (RFC 9457).
//
// It imports errs and identity and nothing else of the domain. It knows no routes, no resources and
// no wire types of an API.
package httpx
