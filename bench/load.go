package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// job is one measurement, as input of the load process.
type job struct {
	Addr     string
	Callers  int
	Requests [][]byte // sent in turn; each caller starts at another one
	Warmup   time.Duration
	Duration time.Duration
	Rate     int // requests per second of all callers together; 0: as many as possible
	Count    int // total number of requests, instead of a duration
	// Expect is what every response must contain; an error may have status 200.
	Expect string
	Stamp  bool // replace stampText by the time of sending
}

// result is the result of a job.
type result struct {
	Requests int
	Seconds  float64
	P50, P99 float64     // microseconds
	Max      float64     // likewise
	Statuses map[int]int // number of responses by status
	Failure  string      // the first failed request
	// Behind is the share of its rate that the job in the background reached; 0 if there was none with
	// a rate.
	Behind float64
}

func (r result) rate() float64 { return float64(r.Requests) / r.Seconds }

// load runs a job in another process, so that client and server do not share a garbage collector
// and scheduler.
func load(ctx context.Context, j job) (result, error) {
	var r result
	in, err := json.Marshal(j)
	if err != nil {
		return r, err
	}
	out, err := runRole(ctx, "load", in)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return r, err
	}
	if r.Failure != "" {
		return r, fmt.Errorf("load: %s", r.Failure)
	}
	for status, n := range r.Statuses {
		if status >= 400 {
			return r, fmt.Errorf("load: %d responses with status %d", n, status)
		}
	}
	return r, nil
}

func runLoad(in io.Reader, out io.Writer) error {
	var j job
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(j.run())
}

func (j job) run() result {
	r := result{Statuses: map[int]int{}}
	var (
		mu        sync.Mutex
		latencies []time.Duration
		wg        sync.WaitGroup
		left      atomic.Int64
	)
	left.Store(int64(j.Count))
	start := time.Now().Add(j.Warmup)
	end := start.Add(j.Duration)
	for i := range j.Callers {
		wg.Go(func() {
			c := caller{
				job: j, index: i, next: i * len(j.Requests) / j.Callers,
				start: start, end: end, left: &left, statuses: map[int]int{},
			}
			err := c.run()
			mu.Lock()
			defer mu.Unlock()
			latencies = append(latencies, c.latencies...)
			for status, n := range c.statuses {
				r.Statuses[status] += n
			}
			if err != nil && r.Failure == "" {
				r.Failure = err.Error()
			}
		})
	}
	wg.Wait()
	r.Requests, r.Seconds = len(latencies), time.Since(start).Seconds()
	if j.Count == 0 {
		r.Seconds = j.Duration.Seconds()
	}
	slices.Sort(latencies)
	r.P50, r.P99, r.Max = percentile(latencies, 0.50), percentile(latencies, 0.99), percentile(latencies, 1)
	return r
}

func percentile(sorted []time.Duration, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[int(math.Ceil(p*float64(len(sorted))))-1].Nanoseconds()) / 1000
}

// caller is the part of a job that one connection does.
type caller struct {
	job
	index      int
	next       int
	start, end time.Time
	left       *atomic.Int64
	latencies  []time.Duration
	statuses   map[int]int
	body       bytes.Buffer
}

// ask sends one request and checks the response as the job requires.
func (c *caller) ask(conn *conn, req []byte, now time.Time) (int, error) {
	if c.Stamp {
		if i := bytes.Index(req, []byte(stampText)); i >= 0 {
			req = slices.Clone(req)
			copy(req[i:], fmt.Sprintf("%0*d", len(stampText), now.UnixNano()))
		}
	}
	if c.Expect == "" {
		return conn.do(req, nil)
	}
	c.body.Reset()
	status, err := conn.do(req, &c.body)
	if err == nil && !bytes.Contains(c.body.Bytes(), []byte(c.Expect)) {
		err = fmt.Errorf("a response without %s: %d %.300s", c.Expect, status, &c.body)
	}
	return status, err
}

func (c *caller) run() error {
	conn, err := dial(c.Addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	pause := time.Duration(0)
	if c.Rate > 0 {
		pause = time.Second * time.Duration(c.Callers) / time.Duration(c.Rate)
	}
	// Each caller starts a little later than the one before, for an even rate instead of bursts.
	due := time.Now().Add(pause * time.Duration(c.index) / time.Duration(c.Callers))
	for ; ; c.next++ {
		if c.Count > 0 && c.left.Add(-1) < 0 {
			return nil
		}
		if pause > 0 { // a caller that is late sends at once until it has caught up
			time.Sleep(time.Until(due))
			due = due.Add(pause)
		}
		sent := time.Now()
		if c.Count == 0 && sent.After(c.end) {
			return nil
		}
		status, err := c.ask(conn, c.Requests[c.next%len(c.Requests)], sent)
		if err != nil {
			return err
		}
		if sent.Before(c.start) {
			continue
		}
		c.latencies = append(c.latencies, time.Since(sent))
		c.statuses[status]++
	}
}
