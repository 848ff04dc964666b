package rest

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/cache"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

// maxCachedPage is the largest response that is cached.
const maxCachedPage = 256 << 10

// pageCache caches encoded pages of the list of proposals, and single proposals.
//
// A response depends on the caller with its scopes, the request URL, and the data version of the
// org. Entries are keyed by credential, and used only while the credential has the same principal
// and scopes: the scopes of a session change with the role of its user. Authentication runs first
// and rejects a revoked or expired credential. The version is read before the page is built: if
// data changes in between, the entry holds newer data under an older version and is only dropped
// too early.
//
// Concurrent requests for the same page and version wait for the first one. Each of them has read
// the version itself, so the page contains everything written before the request.
type pageCache struct {
	pages   *cache.Cache[pageKey, *page]
	version func(ctx context.Context, a identity.Access) (uint64, error)
	making  cache.Flights[versionedPage, *page] // nil: the page cannot be shared
}

func newPageCache(o Options) *pageCache {
	size := o.PageCacheBytes
	if size < 0 {
		return nil
	}
	if size == 0 {
		size = DefaultPageCache
	}
	pages := newPages(size)
	if o.OnCache != nil {
		o.OnCache("proposal_pages", pages.Stats)
	}
	return newPageCacheOf(pages, o.Proposals.DataVersion)
}

func newPageCacheOf(
	pages *cache.Cache[pageKey, *page],
	version func(ctx context.Context, a identity.Access) (uint64, error),
) *pageCache {
	return &pageCache{pages: pages, version: version}
}

// newPages creates a cache with the given limit in bytes.
func newPages(limit int64) *cache.Cache[pageKey, *page] {
	return cache.New(cache.Options[pageKey, *page]{Max: limit, Size: pageSize})
}

// entryOverhead is the memory of an entry beside its strings and its body.
const entryOverhead = 512

func pageSize(key pageKey, p *page) int64 {
	size := len(p.body) + len(key.keyID) + len(key.path) + len(key.query) + len(p.tag()) + entryOverhead
	for _, link := range p.link {
		size += len(link)
	}
	return int64(size)
}

// pageKey identifies a request. Path and query are compared without normalization.
type pageKey struct{ keyID, path, query string }

// page is a cached response. Header values are stored in the form that net/http expects, so that
// a hit allocates nothing for them.
type page struct {
	version       uint64
	principal     identity.Principal
	scopes        identity.Scopes
	body          []byte
	contentType   []string
	contentLength []string
	link          []string
	etag          []string // of a single proposal, else nil
	cacheControl  []string
}

// wrap caches the responses of a handler that authorizes the action.
func (c *pageCache) wrap(action identity.Action, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := httpx.CallerOf(r.Context())
		access, err := identity.Authorize(caller, r.PathValue("org"), action)
		if err != nil || r.Method != http.MethodGet {
			next.ServeHTTP(w, r) // rejects the request with the same error
			return
		}
		version, err := c.version(r.Context(), access)
		if err != nil {
			next.ServeHTTP(w, r) // fails in the same way and writes the error
			return
		}
		key := pageKey{keyID: caller.KeyID, path: r.URL.Path, query: r.URL.RawQuery}
		if p, ok := c.pages.Get(key); ok && p.version == version && p.isFor(caller) {
			p.write(w, r)
			return
		}
		flight, first := c.making.Join(versionedPage{key, version})
		if !first {
			if p, err := flight.Wait(r.Context()); err == nil && p != nil && p.isFor(caller) {
				p.write(w, r)
				return
			}
			next.ServeHTTP(w, r)
			return
		}
		rec := &pageRecorder{ResponseWriter: w, passing: flight.Abandon}
		defer flight.Abandon() // if next panics
		flight.Land(c.record(rec, r, next, versionedPage{key, version}, caller), nil)
		rec.send() // after the waiting requests have got the page
	})
}

// record builds a page and caches it. It returns nil if the page cannot be cached.
func (c *pageCache) record(
	rec *pageRecorder, r *http.Request, next http.Handler, key versionedPage, caller *identity.Caller,
) *page {
	next.ServeHTTP(rec, r)
	p := rec.page(key.version)
	if p != nil {
		p.principal, p.scopes = caller.Principal, caller.Scopes
		c.pages.Set(key.clone(), p)
	}
	return p
}

// versionedPage identifies a page at one version of the data.
type versionedPage struct {
	pageKey
	version uint64
}

func (p *page) isFor(c *identity.Caller) bool {
	return p.principal == c.Principal && slices.Equal(p.scopes, c.Scopes)
}

// clone copies the key out of the memory of the request.
func (k pageKey) clone() pageKey {
	return pageKey{keyID: k.keyID, path: strings.Clone(k.path), query: strings.Clone(k.query)}
}

// tag returns the ETag, or "" for a list.
func (p *page) tag() string {
	if len(p.etag) == 0 {
		return ""
	}
	return p.etag[0]
}

func (p *page) write(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	if tag := p.tag(); tag != "" {
		h["Etag"], h["Cache-Control"] = p.etag, p.cacheControl
		if noneMatch(r.Header, tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h["Content-Type"] = p.contentType
	h["Content-Length"] = p.contentLength
	if len(p.link) > 0 {
		h["Link"] = p.link
	}
	_, _ = w.Write(p.body) // an error means that the client is gone
}

// pageRecorder buffers a response until it is complete, so that a slow client does not delay the
// requests that wait for the same page. A response that is too large to cache is passed through.
type pageRecorder struct {
	http.ResponseWriter
	status  int
	body    bytes.Buffer
	passing func() // called before anything is sent
	passed  bool   // the response is passed through
}

func (r *pageRecorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *pageRecorder) Write(p []byte) (int, error) {
	if !r.passed && r.body.Len()+len(p) <= maxCachedPage {
		return r.body.Write(p)
	}
	r.pass()
	return r.ResponseWriter.Write(p)
}

// pass sends the buffered part and stops buffering.
func (r *pageRecorder) pass() {
	if r.passed {
		return
	}
	r.passed = true
	r.passing()
	if r.status != 0 {
		r.ResponseWriter.WriteHeader(r.status)
	}
	_, _ = r.ResponseWriter.Write(r.body.Bytes()) // an error means that the client is gone
	r.body = bytes.Buffer{}
}

// send finishes the response.
func (r *pageRecorder) send() {
	if r.body.Len() > 0 && !r.passed {
		r.Header()["Content-Length"] = []string{strconv.Itoa(r.body.Len())}
	}
	if r.status != 0 || r.body.Len() > 0 {
		r.pass()
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (r *pageRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// page returns the response as a cache entry, or nil if it cannot be cached.
func (r *pageRecorder) page(version uint64) *page {
	if r.status != http.StatusOK || r.passed {
		return nil
	}
	h := r.Header()
	return &page{
		version: version, body: bytes.Clone(r.body.Bytes()), contentType: h["Content-Type"], link: h["Link"],
		contentLength: []string{strconv.Itoa(r.body.Len())}, etag: h["Etag"], cacheControl: h["Cache-Control"],
	}
}
