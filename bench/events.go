package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	eventsPath = "/api/v1/orgs/" + org + "/events"
	feedName   = "feed, 100 events (limit: list 100, uncached)"
	feed20Name = "feed, 100 events (limit: list 20, uncached)"
	lagName    = "1,000 streams, 20 events a second; p50, p99: submit to arrival"
	lagFarName = "the same, written on another node"

	streams   = 1000
	eventRate = 20 // per second
	// Most time that 99 of 100 events may take, in milliseconds.
	maxLag, maxLagFar = 150, 500
)

// measureEvents measures the readers of events on one engine.
func measureEvents(ctx context.Context, set settings, engine, program string) ([]line, error) {
	w, cleanup, err := seeded(ctx, engine, program, set.rows[0])
	if err != nil {
		return nil, err
	}
	defer cleanup()
	out, err := w.measureFeed(ctx, set)
	if err != nil {
		return nil, err
	}
	l, err := w.measureLag(ctx, set, w.addr, lagName, maxLag)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", lagName, err)
	}
	out = append(out, l)
	if engine == "postgres" {
		far, err := w.secondNode(ctx)
		if err != nil {
			return nil, err
		}
		defer far.Kill()
		if l, err = w.measureLag(ctx, set, far.addr, lagFarName, maxLagFar); err != nil {
			return nil, fmt.Errorf("%s: %w", lagFarName, err)
		}
		out = append(out, l)
	}
	return out, nil
}

// secondNode starts another server on the same database.
func (w *world) secondNode(ctx context.Context) (*process, error) {
	flags, err := knownFlags(ctx, w.program, serveFlags)
	if err != nil {
		return nil, err
	}
	args := slices.Concat([]string{"serve", "--listen", "127.0.0.1:0"}, flags, w.data)
	return startServer(ctx, nil, "/readyz", w.program, args...)
}

// measureFeed compares pages of the feed, each after another number, with uncached lists.
func (w *world) measureFeed(ctx context.Context, set settings) ([]line, error) {
	feed := make([][]byte, variety/2)
	for i := range feed {
		feed[i] = request("GET", w.addr, fmt.Sprintf("%s?limit=100&after=%d", eventsPath, 1+i), w.keys[0], "")
	}
	lists, err := w.cursors(0)
	if err != nil {
		return nil, err
	}
	long := make([][]byte, len(lists))
	for i, list := range lists {
		long[i] = bytes.Replace(list, []byte("limit=20"), []byte("limit=100"), 1)
	}
	// Votes keep the lists from being served from the cache.
	ids, err := w.ids()
	if err != nil {
		return nil, err
	}
	background := &job{Addr: w.addr, Callers: 1, Requests: w.votes(ids), Rate: trickle}
	var out []line
	for _, sc := range []scenario{
		{name: feedName, limit: job{Requests: long}}, {name: feed20Name, limit: job{Requests: lists}},
	} {
		sc.parley = job{Addr: w.addr, Callers: callers, Requests: feed, Expect: `"last_seq"`}
		sc.limit.Addr, sc.limit.Callers, sc.background = w.addr, callers, background
		l, err := sc.run(ctx, set)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", sc.name, err)
		}
		l.Engine, l.Rows = w.engine, set.rows[0]
		progress("%s, %s: %.0f/s, limit %.0f/s, ratio %.2f", w.engine, l.Name, l.Rate, l.LimitRate, l.Ratio)
		out = append(out, l)
	}
	return out, nil
}

// followJob is the input of the process with the streams.
type followJob struct {
	Addr     string
	Requests [][]byte // one per stream
	Duration time.Duration
}

// followResult is the result of the streams.
type followResult struct {
	Events   int     // that arrived, on all streams
	Least    int     // that arrived on the stream with the fewest
	P50, P99 float64 // from submit to arrival, microseconds
	Failure  string
}

// measureLag follows the org with many streams at one server while proposals are submitted to the
// first one. The lag includes the submit itself.
func (w *world) measureLag(ctx context.Context, set settings, addr, name string, most float64) (line, error) {
	follow := followJob{Addr: addr, Duration: 2*time.Second + set.duration}
	for i := range streams {
		follow.Requests = append(follow.Requests, request("GET", addr, eventsPath+"?types=proposal.submitted&after=HEAD",
			w.keys[i%people], "", "Accept: text/event-stream"))
	}
	var rates, p50, p99 []float64
	for range set.rounds {
		r, err := w.lagRound(ctx, set, follow)
		if err != nil {
			return line{}, err
		}
		rates = append(rates, float64(r.Events)/set.duration.Seconds())
		p50, p99 = append(p50, r.P50), append(p99, r.P99)
	}
	l := line{
		Engine: w.engine, Rows: set.rows[0], Name: name, Callers: streams, Rate: median(rates), P50: median(p50),
		P99: median(p99), Target: fmt.Sprintf("p99 ≤ %.0f ms", most),
	}
	l.Verdict = verdict(l.P99 <= most*1000)
	progress("%s, %s: %.0f/s, p50 %.0f µs, p99 %.0f µs", w.engine, name, l.Rate, l.P50, l.P99)
	return l, nil
}

func (w *world) lagRound(ctx context.Context, set settings, follow followJob) (r followResult, err error) {
	after, err := w.lastSeq()
	if err != nil {
		return r, err
	}
	follow.Requests = slices.Clone(follow.Requests)
	for i, req := range follow.Requests {
		follow.Requests[i] = bytes.Replace(req, []byte("after=HEAD"), fmt.Appendf(nil, "after=%d", after), 1)
	}
	in, err := json.Marshal(follow)
	if err != nil {
		return r, err
	}
	followed := make(chan error, 1)
	go func() {
		out, err := runRole(ctx, "follow", in)
		if err == nil {
			err = json.Unmarshal(out, &r)
		}
		followed <- err
	}()
	submits := make([][]byte, people)
	for i := range submits {
		s := w.submission()
		s.Title = stampText
		b, _ := json.Marshal(s) // strings only
		submits[i] = request("POST", w.addr, path, w.keys[i], string(b))
	}
	// The streams need a moment to open; what is submitted before counts, because they start after
	// the present number, but the warm-up keeps it out of the figures.
	sent, err := load(ctx, job{
		Addr: w.addr, Callers: 4, Requests: submits, Rate: eventRate, Stamp: true,
		Warmup: time.Second, Duration: set.duration,
	})
	if fErr := <-followed; err == nil {
		err = fErr
	}
	switch {
	case err != nil:
		return r, err
	case r.Failure != "":
		return r, fmt.Errorf("streams: %s", r.Failure)
	case r.Least < sent.Requests:
		return r, fmt.Errorf("a stream got %d of %d events", r.Least, sent.Requests)
	}
	return r, nil
}

// lastSeq returns the last number of the log.
func (w *world) lastSeq() (int64, error) {
	after := int64(0)
	for {
		var page struct {
			Events []struct{ Seq int64 }
			Last   int64 `json:"last_seq"`
		}
		b, err := w.get(fmt.Sprintf("%s?limit=100&types=member.created&after=%d", eventsPath, after))
		if err == nil {
			err = json.Unmarshal(b, &page)
		}
		if err != nil || page.Last == after {
			return after, err
		}
		after = page.Last
	}
}

// runFollow is the role of the streams.
func runFollow(in io.Reader, out io.Writer) error {
	var j followJob
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return err
	}
	var (
		r        followResult
		mu       sync.Mutex
		wg       sync.WaitGroup
		lags     []time.Duration
		failures atomic.Pointer[string]
		end      = time.Now().Add(j.Duration)
		warm     = time.Now().Add(time.Second)
	)
	r.Least = -1
	opening := make(chan struct{}, opensAtOnce)
	for _, req := range j.Requests {
		wg.Go(func() {
			opening <- struct{}{}
			own, total, err := follow(j.Addr, req, warm, end, sync.OnceFunc(func() { <-opening }))
			if err != nil {
				text := err.Error()
				failures.CompareAndSwap(nil, &text)
			}
			mu.Lock()
			defer mu.Unlock()
			lags = append(lags, own...)
			if r.Least < 0 || total < r.Least {
				r.Least = total
			}
		})
	}
	wg.Wait()
	if f := failures.Load(); f != nil {
		r.Failure = *f
	}
	slices.Sort(lags)
	r.Events, r.P50, r.P99 = len(lags), percentile(lags, 0.50), percentile(lags, 0.99)
	return json.NewEncoder(out).Encode(r)
}

// opensAtOnce is how many streams are opened at the same time: a principal may have only so many
// requests that are not streams yet.
const opensAtOnce = 100

// follow reads one stream until end. It calls opened when the stream has begun, or failed. It returns
// the lag of every event that was sent after warm, and the number of all events.
func follow(addr string, req []byte, warm, end time.Time, opened func()) (lags []time.Duration, total int, err error) {
	defer opened()
	c, err := dial(addr)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write(req); err != nil {
		return nil, 0, err
	}
	c.r = bufio.NewReaderSize(c.Conn, 4<<10)
	_ = c.SetReadDeadline(end) // a read that ends later is the end of the measurement
	title := []byte(`"title":"`)
	for first := true; ; first = false {
		line, err := c.r.ReadSlice('\n')
		opened()
		switch {
		case err == nil && first && !bytes.Contains(line, []byte(" 200 ")):
			rest, _ := c.r.Peek(c.r.Buffered()) // says why
			return lags, total, fmt.Errorf("stream: %s%s", line, rest)
		case err == bufio.ErrBufferFull: // the rest of a long line
		case err != nil && time.Now().After(end.Add(-100*time.Millisecond)):
			return lags, total, nil
		case err != nil:
			return lags, total, err
		}
		i := bytes.Index(line, title)
		if i < 0 || len(line) < i+len(title)+len(stampText) {
			continue
		}
		digits := bytes.TrimLeft(line[i+len(title):i+len(title)+len(stampText)], "0")
		sent, err := strconv.ParseInt(string(digits), 10, 64)
		if err != nil {
			return lags, total, fmt.Errorf("stream: the title %s is no time", digits)
		}
		total++
		if at := time.Unix(0, sent); at.After(warm) {
			lags = append(lags, time.Since(at))
		}
	}
}
