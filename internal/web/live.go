package web

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// Open pages follow the org. GET /orgs/{org}/live is a stream of hints: what kind of records
// changed, never the records themselves. A script then requests its page again and replaces what
// changed, so that every rule of who sees what stays in the handlers of the pages.

// livePath is the path of the stream, below orgPrefix.
const livePath = "/live"

// liveHeader marks the request of a script for a page that is already shown.
const liveHeader = "Parley-Live"

// Times of a stream.
const (
	liveGap       = 100 * time.Millisecond // between two messages
	liveRecheck   = 2 * time.Second        // until the end of a session ends the stream
	liveKeepAlive = 15 * time.Second
	liveRetry     = time.Second // until the browser connects again
)

func (p *Pages) mountLive() {
	p.router.HandlePeople("GET "+orgPrefix+livePath, p.visitor, httpx.WriteError, http.HandlerFunc(p.serveLive))
}

// live reports whether a script requests the page again. Such a request does not extend the
// session, so that an open tab does not keep the user signed in.
func (v *visit) live() bool { return v.r.Header.Get(liveHeader) != "" }

// readHead notes the last event before a page is read: the page follows the org from there on, so
// that it misses nothing and requests nothing twice.
func (v *visit) readHead() error {
	if v.r.Method == http.MethodPost || v.live() || v.r.Header.Get("HX-Request") != "" {
		return nil
	}
	a, err := v.access(identity.ReadEvents)
	if err == nil {
		v.head, err = v.Events.Head(v.r.Context(), a)
	}
	return err
}

// liveView tells the script of a page which stream to follow, and from where on.
type liveView struct {
	Stream string
	After  int64
}

// liveView returns nil for a page that cannot be requested again, such as the response to a form.
func (v *visit) liveView(status int) *liveView {
	if v.r.Method == http.MethodPost || status != http.StatusOK {
		return nil
	}
	return &liveView{Stream: v.base() + livePath, After: v.head}
}

// serveLive streams hints to the page of a signed-in member.
func (p *Pages) serveLive(w http.ResponseWriter, r *http.Request) {
	m, _ := r.Context().Value(visitKey{}).(*identity.Member)
	if m == nil {
		httpx.WriteError(w, r, identity.ErrMissing)
		return
	}
	v := &visit{Pages: p, w: w, r: r, caller: httpx.CallerOf(r.Context()), member: m}
	var s *liveStream
	err := p.router.Park(r.Context(), httpx.Stream)
	if err == nil {
		s, err = v.newLiveStream()
	}
	if err != nil {
		httpx.WriteError(w, r, err)
		return
	}
	if r.Method == http.MethodHead { // a script asks why it was refused
		httpx.NewSSE(w)
		return
	}
	p.router.Stream(r, s.run)
}

// liveStream is the stream of one page.
type liveStream struct {
	*visit
	access  identity.Access
	request event.Request
	task    *liveTask // nil: none is followed
	hints   *hints
	sse     *httpx.SSE
	wrote   time.Time
}

// liveTask is the task that a page shows.
type liveTask struct {
	name   string // AGENT/ID of a task that the member sent, or for admins the uid of any
	follow func(context.Context) (iter.Seq2[task.Event, error], error)
}

// newLiveStream authorizes the member and reads the parameters.
func (v *visit) newLiveStream() (*liveStream, error) {
	s := &liveStream{visit: v, hints: newHints()}
	var err error
	if s.access, err = v.access(identity.ReadEvents); err != nil {
		return nil, err
	}
	if s.request, err = liveStart(v.r); err != nil {
		return nil, err
	}
	if s.request.Start == event.FromNow {
		s.request.Start = event.AfterNumber
		if s.request.After, err = v.Events.Head(v.r.Context(), s.access); err != nil {
			return nil, err
		}
	}
	if name := v.r.URL.Query().Get("task"); name != "" {
		s.task, err = v.liveTask(name)
	}
	return s, err
}

// liveStart returns where the stream starts: after the last event that the browser knows, after
// the one that the page was made at, or now.
func liveStart(r *http.Request) (event.Request, error) {
	given := r.Header.Get("Last-Event-ID")
	if given == "" {
		given = r.URL.Query().Get("after")
	}
	if given == "" {
		return event.Request{Start: event.FromNow}, nil
	}
	n, err := strconv.ParseInt(given, 10, 64)
	if err != nil || n < 0 {
		return event.Request{}, errs.InvalidFields(errs.NewField("after", "must be the number of an event"))
	}
	return event.Request{Start: event.AfterNumber, After: n}, nil
}

// liveTask finds a task by the rule of its page: members follow tasks that they sent, admins those of
// the org's agents.
func (v *visit) liveTask(name string) (*liveTask, error) {
	agent, id, own := strings.Cut(name, "/")
	if !own {
		a, err := v.access(identity.ReadTasks)
		return &liveTask{name, func(ctx context.Context) (iter.Seq2[task.Event, error], error) {
			return v.Tasks.OrgFollow(ctx, a, name, liveKeepAlive)
		}}, err
	}
	call, err := v.Tasks.Reach(v.r.Context(), v.caller, agent)
	return &liveTask{name, func(ctx context.Context) (iter.Seq2[task.Event, error], error) {
		_, events, err := v.Tasks.Follow(ctx, call, id, dispatch.FromNow, liveKeepAlive)
		return events, err
	}}, err
}

// run writes hints until the browser leaves, the session ends, or the server stops.
func (s *liveStream) run() {
	ctx, stop := context.WithCancel(s.r.Context())
	defer stop()
	if s.task != nil {
		if err := s.followTask(ctx); err != nil {
			httpx.WriteError(s.w, s.r, err)
			return
		}
	}
	s.sse = httpx.NewSSE(s.w)
	s.router.Yield(ctx)
	if s.send("hello", s.request.After, []byte("{}")) != nil {
		return
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.followOrg(ctx)
	}()
	s.loop(ctx, over)
	stop()
	<-over
}

// loop writes hints as they come, at most one each liveGap. The first one is not delayed.
func (s *liveStream) loop(ctx context.Context, over <-chan struct{}) {
	check := time.NewTicker(liveRecheck)
	defer check.Stop()
	gap := time.NewTimer(0)
	defer gap.Stop()
	var ready <-chan struct{} // nil: a message was sent just now
	for {
		select {
		case <-ctx.Done():
			return
		case <-gap.C:
			ready = s.hints.ready
		case <-ready:
			ready = nil
			gap.Reset(liveGap)
			if s.tell() != nil {
				return
			}
		case <-check.C:
			if !s.goesOn() {
				return
			}
		case <-over:
			_ = s.tell()
			s.again()
			return
		}
	}
}

// followOrg collects the events that the member may see.
func (s *liveStream) followOrg(ctx context.Context) {
	for item, err := range s.Events.Follow(ctx, s.access, s.request, liveKeepAlive) {
		switch {
		case err != nil:
			s.Logger.WarnContext(ctx, "live stream ended", "error", err)
			return
		case item.Event != nil:
			s.hints.add(item.Event)
		case item.Reset:
			s.hints.addAll(item.Last)
		}
	}
}

// followTask collects the changes of the task. The first hint comes at once, because the task may
// have changed since the page was made.
func (s *liveStream) followTask(ctx context.Context) error {
	events, err := s.task.follow(ctx)
	if err != nil {
		return err
	}
	s.hints.addTask()
	go func() {
		for e, err := range events {
			if err != nil {
				return // the page still follows the events of the org
			}
			if e.Seq > 0 {
				s.hints.addTask()
			}
		}
	}()
	return nil
}

// tell sends what was collected.
func (s *liveStream) tell() error {
	h := s.hints.take()
	if h.task {
		if err := s.send("task", 0, taskHint(s.task.name)); err != nil {
			return err
		}
	}
	if h.seq == 0 {
		return nil
	}
	return s.send("change", h.seq, h.encode())
}

// send writes one message. Messages with the number 0 do not change the position of the browser.
func (s *liveStream) send(name string, seq int64, data []byte) error {
	s.wrote = time.Now()
	var err error
	if seq > 0 {
		err = s.sse.Named(seq, name, data)
	} else {
		err = s.sse.Unnumbered(name, data)
	}
	if err == nil {
		err = s.sse.Flush()
	}
	return err
}

// goesOn keeps the stream open, and reports whether the member may still read it.
func (s *liveStream) goesOn() bool {
	switch s.standing() {
	case sameMember:
		if time.Since(s.wrote) < liveKeepAlive {
			return s.sse.Flush() == nil // with nothing to send, it looks for the client
		}
		return s.send("alive", 0, []byte("{}")) == nil
	case noMember:
		_ = s.send("signed-out", 0, []byte("{}"))
	case otherRights: // the page may show other things now, or be refused
		_ = s.send("change", 0, anyHint())
		s.again()
	}
	return false
}

// again asks the browser to connect again.
func (s *liveStream) again() {
	_ = s.sse.Retry(liveRetry)
	_ = s.sse.Flush()
}

// standing is what became of the member of a stream.
type standing uint8

const (
	sameMember standing = iota
	otherRights
	noMember
)

// standing reads the session and the membership again. A store that is unavailable for a moment
// signs nobody out.
func (s *liveStream) standing() standing {
	ctx, cancel := context.WithTimeout(context.Background(), liveRecheck) // without the session that was loaded
	defer cancel()
	caller, _, err := s.visitor(s.r.WithContext(ctx))
	switch {
	case err == nil && caller == nil, errs.KindOf(err) == errs.NotFound && err != nil:
		return noMember
	case err != nil:
		return sameMember
	}
	access, err := identity.Authorize(caller, s.member.Org, identity.ReadEvents)
	if err != nil || access.Has(identity.Admin) != s.access.Has(identity.Admin) {
		return otherRights
	}
	return sameMember
}
