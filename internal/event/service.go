package event

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
)

// Service serves the readers of the logs.
type Service struct {
	store    Store
	hub      hub
	now      func() time.Time
	asked    *askedOrgs
	stopping <-chan struct{}
	onError  func(error)
}

// Options configures a Service.
type Options struct {
	Store    Store
	Now      func() time.Time
	Stopping <-chan struct{} // closed to end streams and long polls
	OnError  func(error)     // of background work
}

// NewService returns the service.
func NewService(o Options) *Service {
	return &Service{
		store: o.Store, now: o.Now, stopping: o.Stopping, onError: o.OnError,
		hub: newHub(o.Store), asked: newAskedOrgs(o.Now),
	}
}

// Changed tells the streams on this node that the log of an org has grown. It does not block.
func (s *Service) Changed(org string) {
	if read := s.hub.changed(org); read != nil {
		go s.look(context.Background(), read)
	}
}

// look reads a log. If that fails, the next hint or poll reads it.
func (s *Service) look(ctx context.Context, read func(context.Context) error) {
	err := read(ctx)
	if err == nil || ctx.Err() != nil {
		return
	}
	select {
	case <-s.stopping: // the store may be closed already
	default:
		s.onError(err)
	}
}

// ChangedAll is Changed for every followed org, because news may have been lost.
func (s *Service) ChangedAll() {
	for _, org := range s.hub.orgs() {
		s.Changed(org)
	}
}

const (
	pollEvery   = time.Second      // in case news of other processes is lost
	indexEvery  = 10 * time.Second // of logs that are asked by subject
	expireEvery = 10 * time.Minute
)

// Run indexes logs that are asked by subject, deletes events older than retention, and looks for lost news, until ctx
// ends.
func (s *Service) Run(ctx context.Context, retention time.Duration) {
	var polling sync.WaitGroup
	polling.Go(func() { s.poll(ctx) })
	defer polling.Wait()
	index, expire := time.NewTicker(indexEvery), time.NewTicker(expireEvery)
	defer index.Stop()
	defer expire.Stop()
	s.expire(ctx, retention)
	for {
		select {
		case <-ctx.Done():
			return
		case <-index.C:
			s.index(ctx)
		case <-s.asked.wake:
			s.index(ctx)
		case <-expire.C:
			s.expire(ctx, retention)
		}
	}
}

// poll reads the logs of all followed orgs, one after the other, at every interval.
func (s *Service) poll(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, org := range s.hub.orgs() {
			if read := s.hub.changed(org); read != nil {
				s.look(ctx, read)
			}
		}
	}
}

// expire deletes events older than retention; 0 keeps all.
func (s *Service) expire(ctx context.Context, retention time.Duration) {
	if retention > 0 {
		before := s.now().Add(-retention)
		for more := true; more; {
			n, err := s.store.Expire(ctx, before)
			more = s.more(ctx, n, err)
		}
	}
}

// index brings the index of the logs that are asked by subject up to date. The logs take turns, so
// that a long one does not delay the others.
func (s *Service) index(ctx context.Context) {
	for orgs := s.asked.list(); len(orgs) > 0; {
		orgs = slices.DeleteFunc(orgs, func(org string) bool {
			n, err := s.store.IndexSubjects(ctx, org)
			return !s.more(ctx, n, err)
		})
	}
}

// more reports whether a bounded piece of work, which did so much, has to be called again.
func (s *Service) more(ctx context.Context, done int, err error) bool {
	if err != nil && ctx.Err() == nil {
		s.onError(err)
	}
	return done > 0 && err == nil
}

// Bounds of a page.
const (
	DefaultLimit = 50
	MaxLimit     = 100
	MaxSubject   = 500
	// MaxWait bounds a long poll.
	MaxWait = time.Minute
)

// Request asks for events, as the caller may see them.
type Request struct {
	Start   Start
	After   int64     // for AfterNumber; 0: the reader has seen none
	Since   time.Time // for FromTime
	Types   []Type    // empty: all
	Subject string    // "": all
	Limit   int       // 0: DefaultLimit
}

// Start is where a request starts in the log.
type Start uint8

// The starts.
const (
	AfterNumber Start = iota // after the number in Request.After
	FromOldest               // with the oldest event that is kept
	FromTime                 // with the first event at the time in Request.Since, or later
	FromNow                  // with the next event
)

// SinceNow is the value of a parameter since for FromNow.
const SinceNow = "now"

// StartAt sets where the request starts from the parameters of a reader. Of those that are given, the
// most exact one counts, so that a reader can add its position to the request with which it began.
// since is a time in RFC 3339 or SinceNow, or empty.
func (r *Request) StartAt(after *int64, since string) error {
	switch {
	case after != nil:
		r.Start, r.After = AfterNumber, *after
	case since == "":
		r.Start = FromOldest
	case since == SinceNow:
		r.Start = FromNow
	default:
		at, err := time.Parse(time.RFC3339, since)
		if err != nil {
			return errs.InvalidFields(errs.NewField("since", "must be a time such as 2026-03-02T10:00:00Z, or "+SinceNow))
		}
		r.Start, r.Since = FromTime, at.UTC().Truncate(time.Microsecond) // the precision of events
	}
	return nil
}

// query checks a request.
func query(a identity.Access, r Request) (Query, error) {
	q := Query{
		Filter: Filter{Viewer: viewerOf(a), Subject: r.Subject}, After: r.After, Limit: r.Limit,
	}
	if q.Limit == 0 {
		q.Limit = DefaultLimit
	}
	var fields []errs.Field
	add := func(name, format string, args ...any) {
		fields = append(fields, errs.NewField(name, fmt.Sprintf(format, args...)))
	}
	if r.After < 0 {
		add("after", "must be 0 or more")
	}
	if q.Limit < 1 || q.Limit > MaxLimit {
		add("limit", "must be between 1 and %d", MaxLimit)
	}
	if r.Subject != "" && !validSubject(r.Subject) {
		add("subject", "must be one of %s, a colon and an id, such as proposal:prop-01k5x8r2m4v7c9w3q6z1t0h8ye, "+
			"with at most %d characters", strings.Join(Subjects, ", "), MaxSubject)
	}
	for _, t := range r.Types {
		if !t.Known() {
			add("types", "contains %q, which is not a type of event", text.Clean(string(t), 100))
			break // one is enough: there may be many
		}
		q.Types |= t.Bit()
	}
	if len(fields) > 0 {
		return q, errs.InvalidFields(fields...)
	}
	return q, nil
}

// search is query for a reader of pages. A log that is searched by subject is indexed. Streams get new
// events without the index, so they do not make the server build it.
func (s *Service) search(a identity.Access, r Request) (Query, error) {
	q, err := query(a, r)
	if err == nil && q.Subject != "" {
		s.asked.add(a.Org())
	}
	return q, err
}

// validSubject reports whether an event can have this subject.
func validSubject(s string) bool {
	kind, id, _ := strings.Cut(s, ":")
	return slices.Contains(Subjects, kind) && id != "" && text.Storable(id) && utf8.RuneCountInString(s) <= MaxSubject
}

func viewerOf(a identity.Access) Viewer {
	return Viewer{Ref: a.Principal().Ref(), Admin: a.Has(identity.Admin)}
}

// List returns events, oldest first.
func (s *Service) List(ctx context.Context, a identity.Access, r Request) (Page, error) {
	if err := a.For(identity.ReadEvents); err != nil {
		return Page{}, err
	}
	q, err := s.search(a, r)
	if err != nil {
		return Page{}, err
	}
	if q.After, err = s.start(ctx, a.Org(), r); err != nil {
		return Page{}, err
	}
	if r.Start == FromNow {
		return Page{Last: q.After, Head: q.After}, nil // the rest of the log is not read
	}
	page, err := s.page(ctx, a.Org(), q)
	page.Missed = page.Missed || r.missesFirst(&page)
	return page, err
}

// maxEmpty limits the pages without events that are skipped in a search for a subject.
const maxEmpty = 5

// skipEmpty calls read, which reads the next page and reports whether it has no events although more
// of the log follows. The first search for a subject in a long log has no index, so that such pages
// come first; a few of them are skipped.
func skipEmpty[P any](f Filter, read func() (page P, empty bool, err error)) (P, error) {
	page, empty, err := read()
	for skipped := 0; f.Subject != "" && empty && err == nil && skipped < maxEmpty; skipped++ {
		page, empty, err = read()
	}
	return page, err
}

// page returns a page of the log.
func (s *Service) page(ctx context.Context, org string, q Query) (Page, error) {
	return skipEmpty(q.Filter, func() (Page, bool, error) {
		page, err := s.store.Page(ctx, org, q)
		q.After = page.Last
		return page, len(page.Events) == 0 && page.Last < page.Head && !page.Missed, err
	})
}

// ListBack returns the events before a number, newest first; 0 starts with the newest. It ignores
// the start of the request.
func (s *Service) ListBack(ctx context.Context, a identity.Access, r Request, before int64) (BackPage, error) {
	if err := a.For(identity.ReadEvents); err != nil {
		return BackPage{}, err
	}
	r.Start, r.After = FromOldest, 0
	q, err := s.search(a, r)
	if err == nil && before < 0 {
		err = errs.InvalidFields(errs.NewField("before", "must be 0 or more"))
	}
	if err != nil {
		return BackPage{}, err
	}
	back := BackQuery{Filter: q.Filter, Before: before, Limit: q.Limit}
	return skipEmpty(q.Filter, func() (BackPage, bool, error) {
		page, err := s.store.PageBack(ctx, a.Org(), back)
		back.Before = page.First
		return page, len(page.Events) == 0 && page.More(), err
	})
}

// start returns the number after which a request starts; 0 is before the oldest event.
func (s *Service) start(ctx context.Context, org string, r Request) (int64, error) {
	switch r.Start {
	case FromOldest:
		return 0, nil
	case AfterNumber:
		return r.After, nil
	}
	head, err := s.store.Head(ctx, org) // first, so that no event gets between it and the search
	if err != nil || r.Start == FromNow {
		return head, err
	}
	first, err := s.store.FirstSince(ctx, org, r.Since)
	if first == 0 {
		return head, err
	}
	return first - 1, err
}

// missesFirst reports whether the reader of a page has seen no events, and the first ones were
// deleted. Stores do not tell 0 from the oldest.
func (r *Request) missesFirst(p *Page) bool {
	return r.Start == AfterNumber && r.After == 0 && p.Kept > 1
}

// Head returns the number of the last event, which the caller may not see; 0 if there is none.
func (s *Service) Head(ctx context.Context, a identity.Access) (int64, error) {
	if err := a.For(identity.ReadEvents); err != nil {
		return 0, err
	}
	return s.store.Head(ctx, a.Org())
}

// Wait is List, but if there are no events it waits for some, at most so long.
func (s *Service) Wait(ctx context.Context, a identity.Access, r Request, most time.Duration) (Page, error) {
	page, err := s.List(ctx, a, r)
	if err != nil || len(page.Events) > 0 || page.Missed || most <= 0 {
		return page, err
	}
	limited, cancel := context.WithTimeout(ctx, min(most, MaxWait))
	defer cancel()
	later := r
	later.Start, later.After = AfterNumber, page.Last
	for item, err := range s.Follow(limited, a, later, MaxWait) {
		if err != nil {
			return page, err
		}
		if item.Event != nil || item.Reset {
			return s.List(ctx, a, later)
		}
		page.Last, later.After = item.Last, item.Last
	}
	return page, ctx.Err()
}

// Item is what a stream yields.
type Item struct {
	Event *Event // nil: nothing new; valid until the next Item
	Last  int64  // all selected events up to this number were yielded
	Reset bool   // the reader's number is not in the log; the stream goes on with the oldest kept
}

// Follow yields events of the log, and then new ones as they happen. It yields an Item without
// an event at first if there are none, after each batch of events, and every idle. It ends when ctx
// ends, when the server stops, and after an error. It ignores Request.Limit.
func (s *Service) Follow(ctx context.Context, a identity.Access, r Request, idle time.Duration) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		if err := a.For(identity.ReadEvents); err != nil {
			yield(Item{}, err)
			return
		}
		if f := s.follower(ctx, a, &r, yield); f != nil {
			f.run(ctx, idle)
		}
	}
}
