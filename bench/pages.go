package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

const (
	pageName = "page of proposals (limit: list 20, uncached)"
	pagePath = "/orgs/" + org + "/proposals"
	password = "correct horse battery bench"
)

// signIn sets the password of the first person with a set-up link, and returns the cookie of the
// session that this starts.
func (w *world) signIn(ctx context.Context) (string, error) {
	link, err := w.cli(ctx, "admin", "link", "--org", org, "--user", "person0", "--public-url", "http://"+w.addr)
	if err != nil {
		return "", err
	}
	form := url.Values{"password": {password}, "repeat": {password}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, link, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultTransport.RoundTrip(req) // does not follow redirects
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	for _, c := range res.Cookies() {
		if strings.HasSuffix(c.Name, "parley_session") {
			return c.Name + "=" + c.Value, nil
		}
	}
	return "", fmt.Errorf("the set-up link returned %s without a session", res.Status)
}

// pages returns requests for the first HTML page of the list and for pages after it.
func (w *world) pages(ctx context.Context, lists [][]byte) ([][]byte, error) {
	if w.cookie == "" {
		var err error
		if w.cookie, err = w.signIn(ctx); err != nil {
			return nil, err
		}
	}
	out := make([][]byte, len(lists))
	for i, list := range lists {
		// Each list continues at another row; so do the pages.
		line, _, _ := strings.Cut(string(list), "\r\n")
		_, query, _ := strings.Cut(line, "cursor=")
		cursor, _, _ := strings.Cut(query, " ")
		out[i] = request("GET", w.addr, pagePath+"?cursor="+cursor, "", "", "Cookie: "+w.cookie)
	}
	return out, nil
}
