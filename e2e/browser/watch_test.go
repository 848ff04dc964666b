package browser

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// watch notes what a tab does: what it asks for, and what went wrong.
type watch struct {
	mu       sync.Mutex
	base     string
	faults   []string
	requests []request
	started  int                        // how many requests, ever
	open     map[network.RequestID]bool // on their way
}

// request is one that a tab made.
type request struct {
	id     network.RequestID
	method string
	url    string
	status int64
	bytes  float64 // over the wire, with headers
	cached bool
}

// report is a script that tells of broken content policies.
const report = `document.addEventListener('securitypolicyviolation', e =>
	globalThis.parleyFault?.('content policy: ' + e.violatedDirective + ' refused ' + (e.blockedURI || e.sample) + ' on ' + e.documentURI));`

func (w *watch) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

// listen begins to watch.
func (w *watch) listen(ctx context.Context) {
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			w.sent(e)
		case *network.EventResponseReceived:
			w.note(e.RequestID, func(r *request) { r.status = e.Response.Status })
		case *network.EventRequestServedFromCache:
			w.note(e.RequestID, func(r *request) { r.cached = true })
		case *network.EventLoadingFinished:
			w.note(e.RequestID, func(r *request) { r.bytes += e.EncodedDataLength })
			w.ended(e.RequestID)
		case *network.EventLoadingFailed:
			w.ended(e.RequestID)
		case *runtime.EventExceptionThrown:
			w.fault("script: %s", e.ExceptionDetails.Error())
		case *runtime.EventBindingCalled:
			w.fault("%s", e.Payload)
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError || e.Type == runtime.APITypeAssert {
				w.fault("console: %s", consoleText(e.Args))
			}
		case *cdplog.EventEntryAdded:
			// That a server refuses is no fault of the page.
			if e.Entry.Level == cdplog.LevelError && e.Entry.Source != cdplog.SourceNetwork {
				w.fault("log of %s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
			}
		case *page.EventJavascriptDialogOpening:
			if e.Type != page.DialogTypeBeforeunload {
				w.fault("a dialog opened: %s", e.Message)
			}
			go func() { _ = chromedp.Run(ctx, page.HandleJavaScriptDialog(true)) }()
		}
	})
}

func consoleText(args []*runtime.RemoteObject) string {
	var b strings.Builder
	for _, a := range args {
		fmt.Fprintf(&b, "%s%s ", a.Value, a.Description)
	}
	return b.String()
}

func (w *watch) sent(e *network.EventRequestWillBeSent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started++
	w.open[e.RequestID] = true
	url := e.Request.URL
	w.requests = append(w.requests, request{id: e.RequestID, method: e.Request.Method, url: url})
	if url != w.base && !strings.HasPrefix(url, w.base+"/") && !strings.HasPrefix(url, "data:") && url != "about:blank" {
		w.faults = append(w.faults, "a request leaves the site: "+e.Request.Method+" "+url)
	}
}

func (w *watch) note(id network.RequestID, change func(*request)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range slices.Backward(w.requests) {
		if w.requests[i].id == id {
			change(&w.requests[i])
			return
		}
	}
}

func (w *watch) ended(id network.RequestID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, id)
}

// count is how many requests were made, and how many are on their way.
func (w *watch) count() (started, open int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.started, len(w.open)
}

// since lists the requests after the first n.
func (w *watch) since(n int) []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests[min(n, len(w.requests)):])
}

// take returns what went wrong so far, and forgets it.
func (w *watch) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.faults
	w.faults = nil
	return out
}
