package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/parley-dev/parley/internal/cache"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// fixedAuth accepts every secret as the key of the same name in org acme.
type fixedAuth struct{}

func (fixedAuth) Authenticate(_ context.Context, secret string) (*identity.Caller, error) {
	p := identity.Principal{Org: "acme", Kind: identity.User, ID: secret}
	return &identity.Caller{Principal: p, KeyID: secret, Scopes: identity.Scopes{identity.TasksRead}}, nil
}

// versionSource is the versions of the cache.
type versionSource struct {
	read          func() (uint64, error)
	known         bool // seen has a meaning
	seen, changes atomic.Uint64
}

func (v *versionSource) DataVersion(context.Context, identity.Access) (uint64, error) {
	return v.read()
}

func (v *versionSource) SeenVersion(identity.Access) (proposal.SeenVersion, error) {
	return proposal.SeenVersion{Version: v.seen.Load(), Known: v.known, Changes: v.changes.Load()}, nil
}

// cacheWorld is the cache in front of a handler that counts its calls.
type cacheWorld struct {
	version uint64
	err     error
	calls   int
	status  int
	body    string
	handler http.Handler

	versions *versionSource
	cache    *pageCache
	building func() // called after the content of a page was read
}

func newCacheWorld(limit int64) *cacheWorld {
	w := &cacheWorld{status: http.StatusOK}
	w.versions = &versionSource{read: func() (uint64, error) { return w.version, w.err }}
	w.cache = newPageCacheOf(newPages(limit), w.versions)
	rt := httpx.NewRouter(httpx.Options{Authenticator: fixedAuth{}, Logger: slog.New(slog.DiscardHandler)})
	rt.Handle("GET "+proposalsPath, w.cache.wrap(identity.ListProposals, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		w.calls++
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Add("Link", fmt.Sprint(w.calls))
		rw.WriteHeader(w.status)
		body := w.body
		if body == "" {
			body = fmt.Sprint("answer ", w.calls)
		}
		if w.building != nil {
			w.building()
		}
		_, _ = rw.Write([]byte(body))
	})))
	w.handler = rt
	return w
}

func (w *cacheWorld) get(method, target, secret string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Header.Set("Authorization", "Bearer "+secret)
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return rec
}

func TestACachedPageIsTheFirstAnswerByteForByte(t *testing.T) {
	t.Parallel()
	w := newCacheWorld(1 << 20)
	first, second := w.get("GET", proposals, "ada"), w.get("GET", proposals, "ada")
	if w.calls != 1 || first.Body.String() != second.Body.String() || second.Code != 200 {
		t.Errorf("got %d calls, %q, then %q, want 1 call and the same body twice", w.calls, first.Body, second.Body)
	}
	for _, name := range []string{"Content-Type", "Link", "Cache-Control", "Vary", "X-Content-Type-Options"} {
		if got, want := second.Header().Get(name), first.Header().Get(name); got != want || want == "" {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, rec := range []*httptest.ResponseRecorder{first, second} {
		if got := rec.Header().Get("Content-Length"); got != "8" {
			t.Errorf("Content-Length = %q, want 8", got)
		}
	}
}

func TestACachedPageIsForOneKeyTargetAndVersion(t *testing.T) {
	t.Parallel()
	w := newCacheWorld(1 << 20)
	w.get("GET", proposals, "ada")
	for _, c := range []struct {
		why     string
		request func()
	}{
		{"another key", func() { w.get("GET", proposals, "bob") }},
		{"another query", func() { w.get("GET", proposals+"?page=1", "ada") }},
		{"another org", func() { w.get("GET", "/api/v1/orgs/globex/proposals", "ada") }},
		{"another org again", func() { w.get("GET", "/api/v1/orgs/globex/proposals", "ada") }},
		{"another method", func() { w.get("HEAD", proposals, "ada") }},
		{"a newer version", func() { w.version++; w.get("GET", proposals, "ada") }},
		{"an older version", func() { w.version--; w.get("GET", proposals, "ada") }},
		{"a version that cannot be read", func() { w.err = errors.New("down"); w.get("GET", proposals, "ada"); w.err = nil }},
	} {
		before := w.calls
		c.request()
		if w.calls != before+1 {
			t.Errorf("%s came from the cache, want a call of the handler", c.why)
		}
	}
}

func TestOnlySmallSuccessesAreKept(t *testing.T) {
	t.Parallel()
	w := newCacheWorld(64 << 20)
	for _, c := range []struct {
		why    string
		status int
		body   string
		kept   bool
	}{
		{"a refusal", 422, "x", false},
		{"a failure", 500, "x", false},
		{"another success", 204, "", false},
		{"too large", 200, strings.Repeat("x", maxCachedPage+1), false},
		{"just small enough", 200, strings.Repeat("x", maxCachedPage), true},
	} {
		w.status, w.body, w.version, w.calls = c.status, c.body, w.version+1, 0
		w.get("GET", proposals, "ada")
		w.get("GET", proposals, "ada")
		if kept := w.calls == 1; kept != c.kept {
			t.Errorf("%s: got kept %v, want %v", c.why, kept, c.kept)
		}
	}
}

func TestTheCacheForgetsTheLeastRecentlyUsedAndStaysInItsBounds(t *testing.T) {
	t.Parallel()
	const shards = 16
	l := newPages(shards * 4 * (1000 + entryOverhead + 15))
	key := func(i int) pageKey { return pageKey{keyID: "k", query: fmt.Sprintf("page=%09d", i)} }
	for i := range 10_000 {
		l.Set(key(i), &page{body: make([]byte, 1000)})
		l.Get(key(0)) // keep it in use
	}
	if n := l.Len(); n != shards*4 {
		t.Errorf("%d pages of 1000 bytes are kept; want %d", n, shards*4)
	}
	has := func(i int) bool {
		_, ok := l.Get(key(i))
		return ok
	}
	if !has(0) {
		t.Error("the page in use was forgotten")
	}
	if !has(9999) || has(1) {
		t.Error("not the oldest was forgotten")
	}
	l.Set(key(0), &page{body: make([]byte, 1<<20)})
	if has(0) {
		t.Error("a page larger than a shard was kept, or its older version was")
	}
}

func TestAWriteIsSeenByTheNextList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, bob := w.admin("acme", "user:ada"), w.member("acme", "user:bob")
	total := func(secret string) (list ProposalList) {
		for range 2 { // the second response may come from the cache
			w.do(secret, "GET", proposals, "").want(200).into(&list)
		}
		return list
	}
	for i := range 20 {
		p := w.submit(bob, "acme")
		if l := total(ada); l.Total != int64(i+1) || l.Proposals[0].ID != p.ID {
			t.Fatalf("total after %d submissions = %d, want %d", i+1, l.Total, i+1)
		}
		path := proposals + "/" + p.ID
		w.do(ada, "POST", path+"/vote", `{"vote":"for"}`).want(200)
		if l := total(ada); l.Proposals[0].VotesFor != 1 || l.Proposals[0].MyVote == nil {
			t.Fatal("the vote is not in the list")
		}
		if l := total(bob); l.Proposals[0].VotesFor != 1 || l.Proposals[0].MyVote != nil {
			t.Fatal("bob sees ada's vote as his own, or not at all")
		}
		w.do(ada, "DELETE", path+"/vote", "").want(200)
		if l := total(ada); l.Proposals[0].VotesFor != 0 {
			t.Fatal("the withdrawal is not in the list")
		}
	}
}

// Concurrent requests for the same page and version share the work of the first. Others do not.
func TestRequestsForAPageThatIsBeingMadeWaitForIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		fails  bool // the first request fails
		status int
		calls  int64 // of ten concurrent requests
	}{
		{"a page", false, http.StatusOK, 1},
		{"a refusal", false, http.StatusUnprocessableEntity, 10},
		{"a panic", true, http.StatusOK, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int64
				version, release := uint64(1), make(chan struct{})
				pages := newPageCacheOf(newPages(1<<20), &versionSource{read: func() (uint64, error) { return version, nil }})
				rt := httpx.NewRouter(httpx.Options{Authenticator: fixedAuth{}, Logger: slog.New(slog.DiscardHandler)})
				rt.Handle("GET "+proposalsPath, pages.wrap(identity.ListProposals, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
					n := calls.Add(1)
					<-release
					if c.fails && n == 1 {
						panic("first")
					}
					rw.WriteHeader(c.status)
					_, _ = fmt.Fprint(rw, "page ", n)
				})))
				w := &cacheWorld{handler: rt}
				bodies := make([]string, 10)
				ask := func(i int) { bodies[i] = w.get("GET", proposals, "ada").Body.String() }
				for i := range bodies[:9] {
					go ask(i)
				}
				synctest.Wait()
				if n := calls.Load(); n != 1 {
					t.Fatalf("%d requests build the page, want 1", n)
				}
				close(release)
				synctest.Wait()
				ask(9)
				if n := calls.Load(); n != c.calls {
					t.Errorf("the page was made %d times; want %d: %q", n, c.calls, bodies)
				}
				if c.calls == 1 && slices.ContainsFunc(bodies, func(b string) bool { return b != "page 1" }) {
					t.Errorf("got %q, want page 1 for all", bodies)
				}
			})
		})
	}
}

// A page that the cache does not have, or only an old one that it did not serve, is built without
// waiting for the version. The cache serves it only under a version that was read.
func TestAPageThatWasNotReusedIsBuiltAtOnce(t *testing.T) {
	t.Parallel()
	w := newCacheWorld(1 << 20)
	source, asked := w.versions, 0
	source.known, source.read = true, func() (uint64, error) {
		asked++
		source.seen.Store(w.version)
		return w.version, nil
	}
	here := func() { w.version++; source.changes.Add(1) } // a change by this process
	for i, c := range []struct {
		change       func()
		asked, calls int
		why          string
	}{
		{here, 0, 1, "the cache does not have the page"},
		{nil, 1, 2, "its version was read before the change"},
		{nil, 2, 2, "nothing has changed"},
		{here, 3, 3, "the page was served from the cache"},
		{here, 4, 4, "the page before was served from the cache"},
		{here, 4, 5, "no page of late was served from the cache"},
		{here, 4, 6, "again"},
		{func() { w.version++ }, 5, 7, "another process may have changed something"},
		{here, 5, 8, "the page was not served from the cache either"},
	} {
		if c.change != nil {
			c.change()
		}
		body := w.get("GET", proposals, "ada").Body.String()
		if asked != c.asked || w.calls != c.calls || body != fmt.Sprint("answer ", c.calls) {
			t.Fatalf("request %d: %q after %d questions and %d calls, want %d and %d: %s", i, body, asked, w.calls,
				c.asked, c.calls, c.why)
		}
	}
	if got, want := w.cache.stats(), (cache.Stats{Hits: 1, Misses: 8}); got != want {
		t.Errorf("the metrics say %+v, want %+v", got, want)
	}
}

// Requests that arrive while a page is built alone share the next one.
func TestManyReadersOfANewPageShareIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		release := make(chan struct{})
		source := &versionSource{known: true, read: func() (uint64, error) { return 1, nil }}
		pages := newPageCacheOf(newPages(1<<20), source)
		rt := httpx.NewRouter(httpx.Options{Authenticator: fixedAuth{}})
		rt.Handle("GET "+proposalsPath, pages.wrap(identity.ListProposals, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			n := calls.Add(1)
			<-release
			_, _ = fmt.Fprint(rw, "page ", n)
		})))
		w := &cacheWorld{handler: rt}
		for range 10 {
			go w.get("GET", proposals, "ada")
		}
		synctest.Wait()
		if n := calls.Load(); n != 2 {
			t.Errorf("10 requests for a new page build %d, want 2", n)
		}
		close(release)
	})
}

// What changes while a page is built alone may be missing in it, so the next request does not get it.
func TestAPageThatIsBuiltAloneIsOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	w := newCacheWorld(1 << 20)
	source := w.versions
	source.known, source.read = true, func() (uint64, error) { return w.version, nil }
	building := func() {}
	w.building = func() { building() }
	building = func() { // after the content was read
		w.version++
		source.seen.Store(w.version)
	}
	w.get("GET", proposals, "ada")
	building = func() {}
	if body := w.get("GET", proposals, "ada").Body.String(); body != "answer 2" {
		t.Errorf("got %q after a change while the page was built, want a new one", body)
	}

	// Another request has it built meanwhile, under a newer version.
	source.changes.Add(1)
	w.get("GET", proposals+"?limit=2", "ada")
	source.changes.Add(1)
	building = func() {
		building = func() {}
		w.version++
		w.get("GET", proposals+"?limit=2", "ada")
	}
	w.get("GET", proposals+"?limit=2", "ada")
	calls := w.calls
	if w.get("GET", proposals+"?limit=2", "ada"); w.calls != calls {
		t.Error("the newer page of the cache was replaced by an older one")
	}
}

// A page that cannot be cached, and a panic, leave nothing behind that later requests would wait for.
func TestAPageThatIsBuiltAloneCanFail(t *testing.T) {
	t.Parallel()
	w := newCacheWorld(1 << 20)
	w.versions.known = true
	for _, c := range []struct {
		why      string
		status   int
		body     string
		building func()
	}{
		{"too large", 200, strings.Repeat("x", maxCachedPage+1), func() {}},
		{"a refusal", 422, "x", func() {}},
		{"a panic", 200, "", func() { panic("now") }},
	} {
		w.status, w.body, w.building = c.status, c.body, c.building
		first := w.get("GET", proposals, "ada")
		if c.why != "a panic" && (first.Code != c.status || first.Body.String() != c.body) {
			t.Errorf("%s: %d and %d bytes, want %d and %d", c.why, first.Code, first.Body.Len(), c.status, len(c.body))
		}
		w.status, w.body, w.building = 200, "", func() {}
		calls := w.calls
		if got := w.get("GET", proposals, "ada"); got.Code != 200 || w.calls != calls+1 {
			t.Errorf("after %s: %d, %q", c.why, got.Code, got.Body)
		}
		w.versions.changes.Add(1)
	}
}

// A search is shared rather than built twice.
func TestASearchWaitsForTheVersion(t *testing.T) {
	t.Parallel()
	w := newCacheWorld(1 << 20)
	asked := 0
	w.versions.known, w.versions.read = true, func() (uint64, error) { asked++; return 1, nil }
	for range 2 {
		w.get("GET", proposals+"?q=word", "ada")
	}
	if asked != 2 || w.calls != 1 {
		t.Errorf("two searches asked %d times for the version and were built %d times, want 2 and 1", asked, w.calls)
	}
}

// A slow client of a large page does not delay other requests.
func TestALargePageKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pages := newPageCacheOf(newPages(1<<20), &versionSource{read: func() (uint64, error) { return 1, nil }})
		rt := httpx.NewRouter(httpx.Options{Authenticator: fixedAuth{}})
		rt.Handle("GET "+proposalsPath, pages.wrap(identity.ListProposals, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			_, _ = rw.Write(make([]byte, maxCachedPage+1))
		})))
		w := &cacheWorld{handler: rt}
		slow := &slowClient{httptest.NewRecorder(), make(chan struct{})}
		r := httptest.NewRequest("GET", proposals, nil)
		r.Header.Set("Authorization", "Bearer ada")
		go rt.ServeHTTP(slow, r)
		synctest.Wait()
		if n := w.get("GET", proposals, "ada").Body.Len(); n != maxCachedPage+1 {
			t.Errorf("got %d bytes, want %d", n, maxCachedPage+1)
		}
		close(slow.reads)
	})
}

// slowClient blocks writes until it reads.
type slowClient struct {
	*httptest.ResponseRecorder
	reads chan struct{}
}

func (s *slowClient) Write(p []byte) (int, error) {
	<-s.reads
	return s.ResponseRecorder.Write(p)
}

// A request that has read a newer version does not wait for a page of an older one.
func TestAPageThatIsBeingMadeIsOfItsVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var version, calls atomic.Uint64
		release := make(chan struct{})
		pages := newPageCacheOf(newPages(1<<20), &versionSource{read: func() (uint64, error) { return version.Load(), nil }})
		rt := httpx.NewRouter(httpx.Options{Authenticator: fixedAuth{}})
		rt.Handle("GET "+proposalsPath, pages.wrap(identity.ListProposals, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			if calls.Add(1) == 1 {
				<-release
			}
			_, _ = fmt.Fprint(rw, "version ", version.Load())
		})))
		w := &cacheWorld{handler: rt}
		go w.get("GET", proposals, "ada")
		synctest.Wait()
		version.Add(1)
		if got := w.get("GET", proposals, "ada").Body.String(); got != "version 1" {
			t.Errorf("got %q; want the newer version, at once", got)
		}
		close(release)
	})
}

// A record from the cache is the same as a fresh one, with its headers, and after every change to
// what it shows.
func TestACachedRecordIsFresh(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, bob := w.admin("acme", "user:ada"), w.member("acme", "user:bob")
	path := proposals + "/" + w.submit(bob, "acme").ID
	var shown Proposal
	get := func(why string, holds func() bool) {
		t.Helper()
		fresh := w.do(ada, "GET", path, "").want(200)
		cached := w.do(ada, "GET", path, "").want(200)
		for _, name := range []string{"Content-Type", "ETag", "Cache-Control", "Vary", "X-Content-Type-Options"} {
			if got, want := cached.Header.Get(name), fresh.Header.Get(name); got != want || want == "" {
				t.Errorf("after %s: %s of the cached record = %q, want %q", why, name, got, want)
			}
		}
		if cached.Body != fresh.Body {
			t.Errorf("after %s: cached record = %s, want %s", why, cached.Body, fresh.Body)
		}
		unchanged := w.do(ada, "GET", path, "", "If-None-Match", cached.Header.Get("ETag")).want(304)
		if unchanged.Body != "" || unchanged.Header.Get("ETag") != fresh.Header.Get("ETag") {
			t.Errorf("after %s: 304 with the body %q and ETag %s", why, unchanged.Body, unchanged.Header.Get("ETag"))
		}
		shown = Proposal{}
		if fresh.into(&shown); !holds() {
			t.Errorf("after %s: %s", why, fresh.Body)
		}
	}
	get("the submission", func() bool { return shown.MyVote == nil })
	w.do(bob, "POST", path+"/vote", `{"vote":"against"}`).want(200)
	get("another's vote", func() bool { return shown.MyVote == nil && shown.VotesAgainst == 1 })
	w.do(ada, "POST", path+"/vote", `{"vote":"for"}`).want(200)
	get("a vote", func() bool { return shown.MyVote != nil && shown.VotesFor == 1 })
	w.do(ada, "PATCH", path, `{"status":"approved"}`).want(200)
	get("the approval", func() bool { return shown.FollowupStatus != nil && *shown.FollowupStatus == "open" })
	w.do(ada, "PATCH", "/api/v1/orgs/acme/followups/"+*shown.FollowupID, `{"status":"done"}`).want(200)
	get("its follow-up", func() bool { return *shown.FollowupStatus == "done" && shown.Resolvable })
}
