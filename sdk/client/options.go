package client

import (
	"net/http"
	"net/url"
)

// Option changes one request.
type Option func(*call)

// WithIdempotencyKey sets the key under which a repetition of the request has no further effect for
// 24 hours. Without it the client makes a key for each call, which covers its own retries; set one
// to repeat a call safely in another process.
func WithIdempotencyKey(key string) Option { return func(r *call) { r.once = key } }

// WithoutRetry sends the request once, and without an idempotency key unless one is set.
func WithoutRetry() Option { return func(r *call) { r.single = true } }

// WithRepeat declares that a second time does the same as the first, so that the request may be
// repeated. It is for [AgentClient.Call], whose methods the package does not know.
func WithRepeat() Option { return func(r *call) { r.repeat = true } }

// WithIfMatch makes the server refuse a change (412) unless the record still has this ETag; see
// [WithResponse] for how to read one.
func WithIfMatch(etag string) Option { return func(r *call) { r.set("If-Match", etag) } }

// WithHeader sets a header of the request.
func WithHeader(name, value string) Option { return func(r *call) { r.set(name, value) } }

// WithQuery sets query parameters, including those that the package does not know.
func WithQuery(params url.Values) Option {
	return func(r *call) {
		if r.query == nil {
			r.query = url.Values{}
		}
		for name, values := range params {
			r.query[name] = values
		}
	}
}

// WithBody sends v, encoded as JSON, instead of the typed body.
func WithBody(v any) Option { return func(r *call) { r.in = v } }

// WithResponse stores the response in res, including that of a refusal. For an iterator it stores
// the last page.
func WithResponse(res *Response) Option { return func(r *call) { r.response = res } }

// Response is a raw response.
type Response struct {
	Status int
	Header http.Header
	Body   []byte // the JSON value that was decoded; of a JSON-RPC call, its result
}

// RequestID returns the id of the request in the server's log.
func (r *Response) RequestID() string { return r.Header.Get(requestIDHeader) }

// ETag returns the version of the record, for [WithIfMatch].
func (r *Response) ETag() string { return r.Header.Get("ETag") }

// Replayed reports whether the server carried out the request before, under the same idempotency
// key.
func (r *Response) Replayed() bool { return r.Header.Get("Idempotency-Replayed") == "true" }
