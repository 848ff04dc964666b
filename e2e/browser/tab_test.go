package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tab is a browser context with its own cookies.
type tab struct {
	t     *testing.T
	ctx   context.Context
	site  *site
	watch *watch
	plain bool // without scripts
}

// option changes a tab before it opens its first page, or later.
type option func(*tab) error

// tab opens an empty tab of a person; with nil, signed out.
func (s *site) tab(t *testing.T, p *person, options ...option) *tab {
	t.Helper()
	b, err := chromium()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(b, chromedp.WithNewBrowserContext())
	w := &tab{t: t, ctx: ctx, site: s, watch: &watch{base: s.base, results: map[network.RequestID]result{}}}
	// The first call creates the target, which lives as long as this context.
	if err := chromedp.Do(ctx); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.ended()
		cancel()
	})
	w.watch.listen(ctx)
	call(w, network.Enable, network.EnableParams{})
	call(w, cdplog.Enable, cdp.Empty{})
	call(w, page.Enable, page.EnableParams{})
	call(w, runtime.AddBinding, runtime.AddBindingParams{Name: "parleyFault"})
	call(w, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: report})
	call(w, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	w.set(viewport(1280, 900))
	if p != nil {
		w.cookie(p)
	}
	w.set(options...)
	return w
}

// lend returns the tab for use in a subtest, which fails for the faults of its time.
func (w *tab) lend(t *testing.T) *tab {
	out := *w
	out.t = t
	t.Cleanup(out.ended)
	return &out
}

// cookie signs a person in.
func (w *tab) cookie(p *person) {
	w.t.Helper()
	call(w, network.SetCookie, network.SetCookieParams{
		Name: p.cookie.Name, Value: p.cookie.Value, URL: w.site.base, HTTPOnly: new(true),
		SameSite: network.CookieSameSiteLax,
	})
}

// signOut deletes the cookies, like the end of a session.
func (w *tab) signOut() {
	w.t.Helper()
	call(w, network.ClearBrowserCookies, cdp.Empty{})
}

// ask sends a command to the tab.
func ask[P, R any](w *tab, c cdp.Command[P, R], params P) (R, error) {
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	return chromedp.Call(ctx, c, params)
}

// call is ask with any error as a failure.
func call[P, R any](w *tab, c cdp.Command[P, R], params P) R {
	w.t.Helper()
	out, err := ask(w, c, params)
	if err != nil {
		w.t.Fatalf("%s: %v", c.Method, err)
	}
	return out
}

// ended fails the test for every fault that the tab noticed.
func (w *tab) ended() {
	w.t.Helper()
	for _, fault := range w.watch.take() {
		w.t.Error(fault)
	}
	if w.t.Failed() {
		w.t.Logf(
			"the tab ended at %s\n%s",
			w.try("location.href"),
			cut(w.try("document.querySelector('main')?.innerText"), 700),
		)
		w.keepPicture()
	}
}

// keepPicture saves a screenshot of a failed test, if requested.
func (w *tab) keepPicture() {
	dir := os.Getenv("PARLEY_FAILED")
	if dir == "" {
		return
	}
	name := filepath.Join(dir, strings.NewReplacer("/", "_", " ", "_").Replace(w.t.Name())+".png")
	if out, err := ask(w, page.CaptureScreenshot, page.CaptureScreenshotParams{}); err == nil {
		_ = os.WriteFile(name, out.Data, 0o600)
		w.t.Log("see", name)
	}
}

func cut(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}

// set applies options.
func (w *tab) set(options ...option) {
	w.t.Helper()
	for _, o := range options {
		if err := o(w); err != nil {
			w.t.Fatal(err)
		}
	}
}

// evaluate runs an expression in the page, also without scripts.
func evaluate[T any](w *tab, expression string, options ...chromedp.EvaluateOption) (T, error) {
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, options...))
}

// js is evaluate with any error as a failure.
func js[T any](w *tab, expression string) T {
	w.t.Helper()
	out, err := evaluate[T](w, expression)
	if err != nil {
		w.t.Fatalf("%s: %v", cut(expression, 300), err)
	}
	return out
}

func (w *tab) try(expression string) string {
	s, err := evaluate[string](w, "String("+expression+")")
	if err != nil {
		return err.Error()
	}
	return s
}

// open opens a page of the site by its path, and waits until it is loaded.
func (w *tab) open(path string) {
	w.t.Helper()
	if !strings.HasPrefix(path, "http") {
		path = w.site.base + path
	}
	w.follow("open "+path, func() {
		if out := call(w, page.Navigate, page.NavigateParams{URL: path}); out.ErrorText != "" {
			w.t.Fatalf("open %s: %s", path, out.ErrorText)
		}
	})
}

// openPage opens a page of the org.
func (w *tab) openPage(path string) {
	w.t.Helper()
	w.open(w.site.path(path))
}

// follow does something that sends a request, and waits until the response is shown: the new page
// is loaded, or the old one updated.
func (w *tab) follow(what string, do func()) {
	w.t.Helper()
	before, _ := w.watch.count()
	do()
	if err := eventually(func() error { return w.settled(before) }); err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

func (w *tab) settled(before int) error {
	started, open := w.watch.count()
	switch {
	case started == before:
		return errors.New("nothing was sent")
	case len(open) > 0:
		return fmt.Errorf("%q are on their way", open)
	}
	state, err := evaluate[string](
		w,
		`document.readyState + (document.querySelector('.htmx-request,.htmx-swapping,.htmx-settling') ? ' busy' : '')`,
	)
	if err != nil {
		return err
	}
	if state != "complete" {
		return fmt.Errorf("the page is %s", state)
	}
	return nil
}

// waitFor waits until an expression is true.
func (w *tab) waitFor(expression string) {
	w.t.Helper()
	err := eventually(func() error {
		ok, err := evaluate[bool](w, "!!("+expression+")")
		if err == nil && !ok {
			err = errors.New("it is false")
		}
		return err
	})
	if err != nil {
		w.t.Fatalf("waited for %s: %v", expression, err)
	}
}

// text returns the visible text of the page.
func (w *tab) text() string {
	w.t.Helper()
	return js[string](w, "document.body.innerText")
}

// sees waits until the page shows all the words.
func (w *tab) sees(words ...string) {
	w.t.Helper()
	for _, word := range words {
		err := eventually(func() error {
			text, err := evaluate[string](w, "document.body.innerText")
			if err == nil && !strings.Contains(squeeze(text), squeeze(word)) {
				err = errors.New("it does not")
			}
			return err
		})
		if err != nil {
			w.t.Fatalf("the page should say %q: %v", word, err)
		}
	}
}

// misses checks that the page shows none of the words.
func (w *tab) misses(words ...string) {
	w.t.Helper()
	text := squeeze(w.text())
	for _, word := range words {
		if strings.Contains(text, squeeze(word)) {
			w.t.Errorf("the page shows %q, want it not shown", word)
		}
	}
}

var space = regexp.MustCompile(`\s+`)

func squeeze(s string) string { return strings.ToLower(space.ReplaceAllString(s, " ")) }

// path returns the path and query of the tab's URL.
func (w *tab) path() string {
	w.t.Helper()
	return js[string](w, "location.pathname + location.search")
}

// at waits until the tab is at a path.
func (w *tab) at(path string) {
	w.t.Helper()
	w.waitFor(fmt.Sprintf("location.pathname + location.search === %q", path))
}

// back, forward and reload are the browser's buttons.
func (w *tab) back()    { w.t.Helper(); w.travel("back", "history.back()") }
func (w *tab) forward() { w.t.Helper(); w.travel("forward", "history.forward()") }

// travel goes through the history. A page from the browser's cache sends no request, so it waits
// for the URL to change, and then for the page.
func (w *tab) travel(what, expression string) {
	w.t.Helper()
	js[any](w, "window.parleyOld = true, null")
	js[any](w, "setTimeout(() => { "+expression+" }, 0), null")
	err := eventually(func() error {
		ok, err := evaluate[bool](w, "!window.parleyOld && document.readyState === 'complete'")
		if _, open := w.watch.count(); err == nil && (!ok || len(open) > 0) {
			err = errors.New("the page is still there")
		}
		return err
	})
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

func (w *tab) reload() {
	w.t.Helper()
	w.follow("reload", func() {
		// A page from the history may be reloading itself at this moment.
		err := eventually(func() error {
			_, err := ask(w, page.Reload, page.ReloadParams{})
			return err
		})
		if err != nil {
			w.t.Fatal("reload: ", err)
		}
	})
}

// posts lists the POSTs after the first n requests.
func (w *tab) posts(n int) []string {
	var out []string
	for _, r := range w.watch.since(n) {
		if r.method == "POST" {
			out = append(out, strings.TrimPrefix(r.url, w.site.base))
		}
	}
	return out
}

// mark returns the number of requests so far, for posts.
func (w *tab) mark() int {
	n, _ := w.watch.count()
	return n
}
