package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	hands     = 16 // concurrent workers
	claimMost = 16
	// stampText is the place of the time of sending in a request, from which the worker computes
	// how long the task took to reach it. All processes share one clock.
	stampText = "0000000000000000000"
)

// workJob is the input of the workers' process.
type workJob struct {
	Addr, Key string
	Duration  time.Duration
}

// workResult is the result of the workers.
type workResult struct {
	Tasks    int
	P50, P99 float64 // from send to claim, microseconds
	Failure  string
}

// measureWork runs senders in one process and workers in another. A rate of 0 means as many as
// possible, where each sender waits for the end of its task.
func (w *taskWorld) measureWork(ctx context.Context, set settings, rate int) (line, error) {
	var rates, p50, p99 []float64
	for range set.rounds {
		sent, r, err := w.workRound(ctx, set, rate)
		if err != nil {
			return line{}, err
		}
		rates, p50, p99 = append(rates, sent.rate()), append(p50, r.P50), append(p99, r.P99)
	}
	name := taskWork
	if rate > 0 {
		name = taskPaced
	}
	return line{
		Engine: w.engine, Name: name, Callers: writers, Rate: median(rates), P50: median(p50), P99: median(p99),
	}, nil
}

// measureWorkers measures tasks through workers, as many as possible and a few.
func (w *taskWorld) measureWorkers(ctx context.Context, set settings) ([]line, error) {
	var out []line
	for _, rate := range []int{0, 300} {
		l, err := w.measureWork(ctx, set, rate)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", taskWork, err)
		}
		progress("%s, %s: %.0f/s, send to claim p50 %.0f µs, p99 %.0f µs", w.engine, l.Name, l.Rate, l.P50, l.P99)
		out = append(out, l)
	}
	return out, nil
}

func (w *taskWorld) workRound(ctx context.Context, set settings, rate int) (sent result, r workResult, err error) {
	call := rpcCall{Method: "tasks/send", Params: textParams("", stampText)}
	j := taskJob(w.addr, done, [][]byte{request("POST", w.addr, "/a2a/"+bot, w.caller, call.body(), "Prefer: wait=30")})
	j.Rate, j.Warmup, j.Duration, j.Stamp = rate, warmup, set.duration, true
	in, err := json.Marshal(workJob{Addr: w.addr, Key: w.worker, Duration: warmup + set.duration + 2*time.Second})
	if err != nil {
		return sent, r, err
	}
	worked := make(chan error, 1)
	go func() {
		out, err := runRole(ctx, "work", in)
		if err == nil {
			err = json.Unmarshal(out, &r)
		}
		worked <- err
	}()
	sent, err = load(ctx, j)
	if wErr := <-worked; err == nil {
		err = wErr
	}
	if err == nil && r.Failure != "" {
		err = fmt.Errorf("workers: %s", r.Failure)
	}
	return sent, r, err
}

// runWork is the role of the workers.
func runWork(in io.Reader, out io.Writer) error {
	var j workJob
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return err
	}
	var (
		r       workResult
		mu      sync.Mutex
		wg      sync.WaitGroup
		waits   []time.Duration
		workEnd = time.Now().Add(j.Duration)
	)
	for i := range hands {
		wg.Go(func() {
			own, err := j.work(fmt.Sprintf("hand-%d", i), workEnd)
			mu.Lock()
			defer mu.Unlock()
			waits = append(waits, own...)
			if err != nil && r.Failure == "" {
				r.Failure = err.Error()
			}
		})
	}
	wg.Wait()
	slices.Sort(waits)
	r.Tasks, r.P50, r.P99 = len(waits), percentile(waits, 0.50), percentile(waits, 0.99)
	return json.NewEncoder(out).Encode(r)
}

// claimedWork is the part of a response with tasks that the workers need.
type claimedWork struct {
	Reports []struct {
		Problem *struct{ Code, Detail string }
	}
	Tasks []struct {
		Lease   string
		Message struct{ Parts []struct{ Text string } }
	}
}

// work claims and completes tasks until end, and then until there are no more: a sender waits for
// each task. It returns the time of each task from send to claim.
func (j workJob) work(name string, end time.Time) (waits []time.Duration, err error) {
	c, err := dial(j.Addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	h := hand{
		job: j, conn: c,
		claim: fmt.Sprintf(`{"worker":%q,"max":%d,"wait_seconds":1,"capacity":%d}`, name, claimMost, claimMost),
	}
	var leases []string
	for {
		got, err := h.exchange(leases)
		if err != nil {
			return waits, err
		}
		now := time.Now()
		if len(got.Tasks) == 0 && len(leases) == 0 && now.After(end) {
			return waits, nil
		}
		leases = leases[:0]
		for _, t := range got.Tasks {
			sent, err := strconv.ParseInt(strings.TrimLeft(t.Message.Parts[0].Text, "0"), 10, 64)
			if err != nil {
				return waits, err
			}
			waits = append(waits, now.Sub(time.Unix(0, sent)))
			leases = append(leases, t.Lease)
		}
	}
}

// hand is one worker with its connection.
type hand struct {
	job    workJob
	conn   *conn
	claim  string
	body   bytes.Buffer
	single bool // the server is of a revision that does not know exchanges
}

// finished is the report of every task.
const finished = `{"status":"completed","artifacts":[{"name":"result","parts":[{"type":"text","text":"done"}]}]}`

// exchange reports the tasks of leases as completed and claims the next ones, in one request if
// the server knows that.
func (h *hand) exchange(leases []string) (got claimedWork, err error) {
	if h.single {
		return h.oneByOne(leases)
	}
	reports := make([]string, len(leases))
	for i, lease := range leases {
		reports[i] = fmt.Sprintf(`{"lease":%q,"report":%s}`, lease, finished)
	}
	status, err := h.post("/work", `{"reports":[`+strings.Join(reports, ",")+`],"claim":`+h.claim+`}`, &got)
	if err == nil && status == 404 && len(leases) == 0 {
		h.single = true
		return h.oneByOne(nil)
	}
	if err != nil || status != 200 || len(got.Reports) != len(leases) {
		return got, fmt.Errorf("exchange: %d %w %s", status, err, &h.body)
	}
	for _, r := range got.Reports {
		if r.Problem != nil {
			return got, fmt.Errorf("report: %s: %s", r.Problem.Code, r.Problem.Detail)
		}
	}
	return got, nil
}

// oneByOne is an exchange with a request for each report and one for the claim.
func (h *hand) oneByOne(leases []string) (got claimedWork, err error) {
	for _, lease := range leases {
		if status, err := h.post("/leases/"+lease, finished, nil); err != nil || status != 200 {
			return got, fmt.Errorf("report: %d %w %s", status, err, &h.body)
		}
	}
	status, err := h.post("/claim", h.claim, &got)
	if err != nil || status != 200 {
		return got, fmt.Errorf("claim: %d %w %s", status, err, &h.body)
	}
	return got, nil
}

// post sends a request about the agent's work and decodes a response of status 200 to out.
func (h *hand) post(path, body string, out any) (status int, err error) {
	h.body.Reset()
	status, err = h.conn.do(request("POST", h.job.Addr, "/api/v1/agents/"+bot+path, h.job.Key, body), &h.body)
	if err == nil && status == 200 && out != nil {
		err = json.Unmarshal(h.body.Bytes(), out)
	}
	return status, err
}
