package rest

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

// maxCachedPage is the largest answer that is worth keeping.
const maxCachedPage = 256 << 10

// pageCache keeps encoded pages of the list of proposals.
//
// It is sound because the answer is a function of three things: who asks with
// which scopes, the target, and the data version of the org. A credential is looked
// up by its id, and what it found is its own only while it speaks for the same
// principal with the same scopes: a session's grow and shrink with a person's role.
// A revoked or expired one fails authentication, which runs before. The version is read before the page is made: if data changes in between, the
// entry holds newer data under an older version and is merely dropped too early.
type pageCache struct {
	lru     *lru
	version func(ctx context.Context, org string) (uint64, error)
}

func newPageCache(o Options) *pageCache {
	size := o.PageCacheBytes
	if size < 0 {
		return nil
	}
	if size == 0 {
		size = DefaultPageCache
	}
	return &pageCache{lru: newLRU(size), version: o.Proposals.DataVersion}
}

// pageKey identifies a request. Path and query are compared as they came.
type pageKey struct{ keyID, path, query string }

// page is one kept answer. Header values have the shape in which net/http takes
// them, so that a hit allocates nothing for them.
type page struct {
	version       uint64
	principal     identity.Principal
	scopes        identity.Scopes
	body          []byte
	contentType   []string
	contentLength []string
	link          []string
}

func (c *pageCache) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := httpx.CallerOf(r.Context())
		// Whoever asks for another org gets its 404 from the handler.
		if caller == nil || r.Method != http.MethodGet || r.PathValue("org") != caller.Org {
			next.ServeHTTP(w, r)
			return
		}
		version, err := c.version(r.Context(), caller.Org)
		if err != nil {
			next.ServeHTTP(w, r) // fails the same way, with an answer
			return
		}
		key := pageKey{keyID: caller.KeyID, path: r.URL.Path, query: r.URL.RawQuery}
		if p := c.lru.get(key); p != nil && p.version == version && p.isFor(caller) {
			p.write(w)
			return
		}
		rec := &pageRecorder{ResponseWriter: w}
		next.ServeHTTP(rec, r)
		if p := rec.page(version); p != nil {
			p.principal, p.scopes = caller.Principal, caller.Scopes
			c.lru.put(key.clone(), p)
		}
	})
}

func (p *page) isFor(c *identity.Caller) bool {
	return p.principal == c.Principal && slices.Equal(p.scopes, c.Scopes)
}

// clone detaches the key from the request's memory.
func (k pageKey) clone() pageKey {
	return pageKey{keyID: k.keyID, path: strings.Clone(k.path), query: strings.Clone(k.query)}
}

func (p *page) write(w http.ResponseWriter) {
	h := w.Header()
	h["Content-Type"] = p.contentType
	h["Content-Length"] = p.contentLength
	if len(p.link) > 0 {
		h["Link"] = p.link
	}
	_, _ = w.Write(p.body) // the client may be gone; there is nobody to tell
}

// pageRecorder copies an answer while it is sent.
type pageRecorder struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
	full   bool // too large to keep
}

func (r *pageRecorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *pageRecorder) Write(p []byte) (int, error) {
	switch {
	case r.full:
	case r.body.Len()+len(p) > maxCachedPage:
		r.full = true
		r.body = bytes.Buffer{}
	default:
		r.body.Write(p)
	}
	n, err := r.ResponseWriter.Write(p)
	if err != nil {
		r.full = true // what was not sent whole is not kept either
	}
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (r *pageRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// page returns what can be kept of the answer; nil: nothing.
func (r *pageRecorder) page(version uint64) *page {
	if r.status != http.StatusOK || r.full {
		return nil
	}
	h := r.Header()
	return &page{
		version: version, body: bytes.Clone(r.body.Bytes()), contentType: h["Content-Type"], link: h["Link"],
		contentLength: []string{strconv.Itoa(r.body.Len())},
	}
}
