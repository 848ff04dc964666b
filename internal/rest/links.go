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
	deep     bool   // so far from the start that the next page is better found by its cursor
}

// links returns the values of the Link header. They are relative, because clients may reach the
// server under different names.
func links(u *url.URL, at position) []string {
	q := u.Query()
	q.Del("page")
	q.Del("cursor")
	link := func(rel, name, value string) string {
		if name != "" {
			q.Set(name, value)
			defer q.Del(name)
		}
		target := url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: q.Encode()}
		return "<" + target.String() + `>; rel="` + rel + `"`
	}
	out := append(make([]string, 0, 3), link("first", "", ""))
	if at.page > 1 && !at.byCursor {
		out = append(out, link("prev", "page", strconv.Itoa(at.page-1)))
	}
	switch {
	case at.more && (at.byCursor || at.deep):
		out = append(out, link("next", "cursor", at.cursor))
	case at.more:
		out = append(out, link("next", "page", strconv.Itoa(at.page+1)))
	}
	return out
}

// numbered returns the position in a list that is paged by number only. The offset cannot
// overflow, because the domain rejects such a page earlier.
func numbered(page, limit, got int, total int64) position {
	return position{page: page, more: got > 0 && int64(page-1)*int64(limit)+int64(got) < total}
}
