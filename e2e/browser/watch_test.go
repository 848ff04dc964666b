package browser

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// watch records the requests of a tab and its faults.
type watch struct {
	mu       sync.Mutex
	base     string
	also     string // another site that it may visit
	faults   []string
	requests []request
	results  map[network.RequestID]result
	current  cdp.LoaderID // of the page that is shown
}

// request is a request of a tab.
type request struct {
	id     network.RequestID
	loader cdp.LoaderID // of the requesting page
	page   bool         // requests a page
	method string
	url    string
	result
}

// result is the outcome of a request.
type result struct {
	status int64
	bytes  float64 // over the wire, with headers
	ended  bool
}

// report is a script that reports violations of the content policy.
const report = `document.addEventListener('securitypolicyviolation', e =>
	globalThis.parleyFault?.('content policy: ' + e.violatedDirective + ' refused ' + (e.blockedURI || e.sample) + ' on ' + e.documentURI));`

func (w *watch) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

// listen begins to watch. Events of different kinds may arrive out of order.
func (w *watch) listen(ctx context.Context) {
	on(ctx, network.RequestWillBeSent, w.sent)
	on(ctx, network.ResponseReceived, func(e network.EventResponseReceived) {
		w.note(e.RequestID, func(r *result) { r.status = e.Response.Status })
	})
	on(ctx, network.LoadingFinished, func(e network.EventLoadingFinished) {
		w.note(e.RequestID, func(r *result) { r.bytes, r.ended = e.EncodedDataLength, true })
	})
	on(ctx, network.LoadingFailed, func(e network.EventLoadingFailed) {
		w.note(e.RequestID, func(r *result) { r.ended = true })
	})
	on(ctx, page.FrameNavigated, func(e page.EventFrameNavigated) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if e.Frame.ParentID == "" {
			w.current = e.Frame.LoaderID
		}
	})
	on(ctx, runtime.ExceptionThrown, func(e runtime.EventExceptionThrown) {
		w.fault("script: %s", (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	})
	on(ctx, runtime.BindingCalled, func(e runtime.EventBindingCalled) { w.fault("%s", e.Payload) })
	on(ctx, runtime.ConsoleAPICalled, func(e runtime.EventConsoleAPICalled) {
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			w.fault("console: %s", consoleText(e.Args))
		}
	})
	on(ctx, cdplog.EntryAdded, func(e cdplog.EventEntryAdded) {
		// A refusal by the server is no fault of the page.
		if e.Entry.Level == cdplog.EntryLevelError && e.Entry.Source != cdplog.EntrySourceNetwork {
			w.fault("log of %s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	})
	on(ctx, page.JavascriptDialogOpening, func(e page.EventJavascriptDialogOpening) {
		if e.Type != page.DialogTypeBeforeunload {
			w.fault("a dialog opened: %s", e.Message)
		}
		_, _ = chromedp.Call(ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
	})
}

// on calls f for each event of a kind, until the tab closes.
func on[E any](ctx context.Context, sort cdp.Event[E], f func(E)) {
	events := chromedp.Events(ctx, sort)
	go func() {
		for e, err := range events {
			if err != nil {
				return
			}
			f(e)
		}
	}()
}

func consoleText(args []*runtime.RemoteObject) string {
	var b strings.Builder
	for _, a := range args {
		fmt.Fprintf(&b, "%s%s ", a.Value, a.Description)
	}
	return b.String()
}

func (w *watch) sent(e network.EventRequestWillBeSent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	url := e.Request.URL
	if !isLive(e) {
		w.requests = append(w.requests, request{
			id: e.RequestID, loader: e.LoaderID, page: e.Type == network.ResourceTypeDocument, method: e.Request.Method, url: url,
		})
	}
	own := url == w.base || strings.HasPrefix(url, w.base+"/") || w.also != "" && strings.HasPrefix(url, w.also+"/")
	if !own && !strings.HasPrefix(url, "data:") && url != "about:blank" {
		w.faults = append(w.faults, "a request leaves the site: "+e.Request.Method+" "+url)
	}
}

// isLive reports whether an open page follows the org with the request. Such requests come at any
// time, and the stream does not end, so no test waits for them.
func isLive(e network.EventRequestWillBeSent) bool {
	return e.Type == network.ResourceTypeEventSource || e.Request.Headers["Parley-Live"] != nil
}

func (w *watch) note(id network.RequestID, change func(*result)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.results[id]
	change(&r)
	w.results[id] = r
}

// count returns the number of requests, and those in flight.
func (w *watch) count() (started int, open []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.requests {
		// Requests of an old page do not matter any more.
		if !r.page && r.loader != w.current {
			continue
		}
		// A browser fetches the icon at any time, and may not report when it has it.
		if !w.results[r.id].ended && !strings.Contains(r.url, "favicon") {
			open = append(open, r.method+" "+r.url)
		}
	}
	return len(w.requests), open
}

// since lists the requests after the first n with their results. Of several joined by a redirect,
// the last has the result.
func (w *watch) since(n int) []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := slices.Clone(w.requests[min(n, len(w.requests)):])
	seen := map[network.RequestID]bool{}
	for i := range slices.Backward(out) {
		if id := out[i].id; !seen[id] {
			seen[id] = true
			out[i].result = w.results[id]
		}
	}
	return out
}

// take returns the faults so far and clears them.
func (w *watch) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.faults
	w.faults = nil
	return out
}
