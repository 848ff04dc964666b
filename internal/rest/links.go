package rest

import (
	"net/url"
	"strconv"
)

// position is the position of a page in a list.
type position struct {
	page     int
	more     bool
	cursor   string // of the next page
	byCursor bool   // the client pages by cursor, so the links do too
}

// links returns the values of the Link header. They are relative, because clients may reach the
// server under different names.
func links(u *url.URL, at position) []string {
	link := func(rel string, edit func(url.Values)) string {
		q := u.Query()
		q.Del("page")
		q.Del("cursor")
		edit(q)
		target := url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: q.Encode()}
		return "<" + target.String() + `>; rel="` + rel + `"`
	}
	page := func(n int) func(url.Values) {
		return func(q url.Values) { q.Set("page", strconv.Itoa(n)) }
	}
	out := []string{link("first", func(url.Values) {})}
	if at.page > 1 && !at.byCursor {
		out = append(out, link("prev", page(at.page-1)))
	}
	switch {
	case at.more && at.byCursor:
		out = append(out, link("next", func(q url.Values) { q.Set("cursor", at.cursor) }))
	case at.more:
		out = append(out, link("next", page(at.page+1)))
	}
	return out
}

// numbered returns the position in a list that is paged by number only. The offset cannot
// overflow, because the domain rejects such a page earlier.
func numbered(page, limit, got int, total int64) position {
	return position{page: page, more: got > 0 && int64(page-1)*int64(limit)+int64(got) < total}
}
