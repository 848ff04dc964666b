package rest

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/parley-dev/parley/internal/cache"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
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
//
// A page is built without waiting for the version if the cache does not have it, or if this process
// has changed the org's proposals since and the page was not served from the cache of late. It gets
// a version that was read earlier. That can be too old, so that the cache never serves it, but not too
// new.
type pageCache struct {
	pages    *cache.Cache[pageKey, *page]
	versions dataVersions
	making   cache.Flights[versionedPage, *page] // nil: the page cannot be shared
	alone    cache.Flights[pageKey, struct{}]    // pages that are built without waiting for the version

	hits, misses atomic.Uint64
}

// dataVersions are methods of proposal.Proposals.
type dataVersions interface {
	DataVersion(ctx context.Context, a identity.Access) (uint64, error)
	SeenVersion(a identity.Access) (proposal.SeenVersion, error)
}

func newPageCache(o Options) *pageCache {
	size := o.PageCacheBytes
	if size < 0 {
		return nil
	}
	if size == 0 {
		size = DefaultPageCache
	}
	c := newPageCacheOf(newPages(size), o.Proposals)
	if o.OnCache != nil {
		o.OnCache("proposal_pages", c.stats)
	}
	return c
}

func newPageCacheOf(pages *cache.Cache[pageKey, *page], versions dataVersions) *pageCache {
	return &pageCache{pages: pages, versions: versions}
}

// stats counts the requests that got a page from the cache, or from another request, and those that had
// it built.
func (c *pageCache) stats() cache.Stats {
	return cache.Stats{Hits: c.hits.Load(), Misses: c.misses.Load()}
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

	changes   uint64      // by this process, before the page was built
	reused    atomic.Bool // the page was served for other requests than the one that had it built
	wasReused bool        // so was the one that it replaced
}

// lookup is what is known about a request before a page is built for it.
type lookup struct {
	key  pageKey
	seen proposal.SeenVersion
	page *page // nil: none
}

// buildsAlone reports whether the page should be built without waiting for the version.
func (l *lookup) buildsAlone() bool {
	p := l.page
	return l.seen.Known && (p == nil || p.changes != l.seen.Changes && !p.wasReused && !p.reused.Load()) &&
		!strings.Contains(l.key.query, "q=") // a search is expensive, and several requests would rather share it
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
		l := lookup{key: pageKey{keyID: caller.KeyID, path: r.URL.Path, query: r.URL.RawQuery}}
		if l.seen, err = c.versions.SeenVersion(access); err != nil {
			next.ServeHTTP(w, r)
			return
		}
		l.page, _ = c.pages.Get(l.key)
		if l.buildsAlone() {
			// Other requests for the page, until it is built, wait for the version and share the next one.
			if flight, first := c.alone.Join(l.key); first {
				defer flight.Abandon()
				c.buildAlone(&pageRecorder{ResponseWriter: w, passing: flight.Abandon}, r, next, &l, caller)
				return
			}
		}
		version, err := c.versions.DataVersion(r.Context(), access)
		if err != nil {
			next.ServeHTTP(w, r) // fails in the same way and writes the error
			return
		}
		if l.page == nil || l.page.version != version { // another request may have had it built meanwhile
			l.page, _ = c.pages.Peek(l.key)
		}
		if p := l.page; p != nil && p.version == version && p.isFor(caller) {
			c.reuse(p, w, r)
			return
		}
		flight, first := c.making.Join(versionedPage{l.key, version})
		if !first {
			if p, err := flight.Wait(r.Context()); err == nil && p != nil && p.isFor(caller) {
				c.reuse(p, w, r)
				return
			}
			c.misses.Add(1)
			next.ServeHTTP(w, r)
			return
		}
		rec := &pageRecorder{ResponseWriter: w, passing: flight.Abandon}
		defer flight.Abandon() // if next panics
		p := c.build(rec, r, next, &l, version, caller)
		if p != nil {
			c.pages.Set(l.key.clone(), p)
		}
		flight.Land(p, nil)
		rec.send() // after the waiting requests have got the page
	})
}

// build builds a page. It returns nil if the page cannot be cached.
func (c *pageCache) build(
	rec *pageRecorder, r *http.Request, next http.Handler, l *lookup, version uint64, caller *identity.Caller,
) *page {
	c.misses.Add(1)
	next.ServeHTTP(rec, r)
	p := rec.page(version)
	if p != nil {
		p.principal, p.scopes, p.changes = caller.Principal, caller.Scopes, l.seen.Changes
		p.wasReused = l.page != nil && l.page.reused.Load()
	}
	return p
}

// buildAlone builds a page without waiting for the version, and sends it.
func (c *pageCache) buildAlone(
	rec *pageRecorder, r *http.Request, next http.Handler, l *lookup, caller *identity.Caller,
) {
	p := c.build(rec, r, next, l, l.seen.Version, caller)
	// A page that another request has had built meanwhile has a better version.
	if now, _ := c.pages.Peek(l.key); p != nil && now == l.page {
		c.pages.Set(l.key.clone(), p)
	}
	rec.send()
}

// reuse sends a page that was built for another request.
func (c *pageCache) reuse(p *page, w http.ResponseWriter, r *http.Request) {
	c.hits.Add(1)
	if !p.reused.Load() { // a store would take the cache line from concurrent requests
		p.reused.Store(true)
	}
	p.write(w, r)
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
		version: version, body: fitted(r.body.Bytes()), contentType: h["Content-Type"], link: h["Link"],
		contentLength: []string{strconv.Itoa(r.body.Len())}, etag: h["Etag"], cacheControl: h["Cache-Control"],
	}
}

// fitted returns b, or a copy of it if its memory is much larger.
func fitted(b []byte) []byte {
	if cap(b) > len(b)+len(b)/4 {
		return bytes.Clone(b)
	}
	return b[:len(b):len(b)]
}
