package web_test

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/parley-dev/parley/internal/httpx"
)

// A page says how long it is, compressed or not, also to HEAD. (Pages with tokens of forms differ by some
// bytes when they are compressed.)
func TestPagesHaveALength(t *testing.T) {
	t.Parallel()
	d := newDashboard(t)
	cookie := d.signIn("acme", "ann", "Ann", true)
	srv := httptest.NewServer(d.handler)
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	get := func(method, encoding string) (length int64, body []byte) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+"/orgs/acme/proposals", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.AddCookie(cookie)
		req.Header.Set("Accept-Encoding", encoding)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		in := io.Reader(res.Body)
		if res.StatusCode != http.StatusOK || (res.Header.Get("Content-Encoding") == "gzip") != (encoding == "gzip") {
			t.Fatalf("%s: %s, %v", encoding, res.Status, res.Header)
		}
		if method == http.MethodGet && encoding == "gzip" {
			if in, err = gzip.NewReader(res.Body); err != nil {
				t.Fatal(err)
			}
		}
		if body, err = io.ReadAll(in); err != nil {
			t.Fatal(err)
		}
		return res.ContentLength, body
	}
	plain, page := get(http.MethodGet, "identity")
	packed, unpacked := get(http.MethodGet, "gzip")
	if plain != int64(len(page)) || packed <= 0 || packed >= plain || len(unpacked) != len(page) {
		t.Errorf("lengths %d and %d of pages of %d and %d bytes", plain, packed, len(page), len(unpacked))
	}
	for encoding, want := range map[string]int64{"identity": plain, "gzip": packed} {
		if n, body := get(http.MethodHead, encoding); n != want || len(body) > 0 {
			t.Errorf("HEAD, %s: a length of %d, a body of %d bytes; want a length of %d", encoding, n, len(body), want)
		}
	}
}

// A browser that is gone, or has closed its side of the connection, does not get an empty success.
func TestABrowserThatIsGone(t *testing.T) {
	t.Parallel()
	d := newDashboard(t)
	cookie := d.signIn("acme", "ann", "Ann", true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/orgs/acme/clients", http.NoBody)
	r.AddCookie(cookie)
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	if w.Code != httpx.StatusCanceled || w.Body.Len() > 0 {
		t.Errorf("status %d, %d bytes", w.Code, w.Body.Len())
	}
}
