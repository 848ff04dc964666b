package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const (
	relayName = "relayed task; p50, p99: added to the direct call"
	hangName  = "task send → completed beside 200 relayed tasks to a remote that hangs (limit: without them)"

	relayCallers = 8
	hanging      = 200
	maxAdded     = 5000 // microseconds that a relay may add at the median
	leastBeside  = 0.8  // of the rate without the tasks that hang; it would be 1 without noise
)

// relayWorld is a Parley server with two relays in an org of their own: to a remote agent that does
// the same as the built-in echo, and to one that hangs.
type relayWorld struct{ *taskWorld }

// measureRelay compares relayed tasks with direct calls of the same remote agent, and the tasks of
// another org without and beside a remote that hangs.
func measureRelay(ctx context.Context, set settings, engine, program string) ([]line, error) {
	set.duration, set.rounds = min(set.duration, time.Second), min(set.rounds, 5)
	w, cleanup, err := newRelayWorld(ctx, engine, program)
	if err != nil {
		return nil, err
	}
	defer cleanup()
	var out []line
	for _, callers := range []int{1, relayCallers} {
		l, err := w.addedByRelay(ctx, set, callers)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", relayName, err)
		}
		out = append(out, l)
	}
	l, err := w.besideHanging(ctx, set)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", hangName, err)
	}
	return append(out, l), nil
}

func newRelayWorld(ctx context.Context, engine, program string) (*relayWorld, func(), error) {
	data, remove, err := newData(ctx, engine)
	if err != nil {
		return nil, nil, err
	}
	base, err := newWorld(ctx, engine, program, data, "--outbound-allow=127.0.0.1")
	if err != nil {
		remove()
		return nil, nil, err
	}
	w := &relayWorld{&taskWorld{world: base}}
	cleanup := func() {
		w.close()
		remove()
	}
	if err := w.setUpRelays(ctx); err != nil {
		cleanup()
		return nil, nil, err
	}
	return w, cleanup, nil
}

func (w *relayWorld) setUpRelays(ctx context.Context) error {
	if err := w.setUp(ctx); err != nil {
		return err
	}
	if err := w.startPeers(ctx); err != nil {
		return err
	}
	c, err := dial(w.addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	for _, agent := range []string{"steps", "hang"} {
		body := fmt.Sprintf(`{"id":"remote-%s","relay":{"url":"http://%s/%s"}}`, agent, w.sdk.addr, agent)
		var said bytes.Buffer
		status, err := c.do(request("POST", w.addr, "/api/v1/orgs/main/agents", w.Key, body), &said)
		if err == nil && status != http.StatusCreated {
			err = fmt.Errorf("register a relay: %d %s", status, &said)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addedByRelay measures how much longer a relayed task takes than the direct call, in the same run.
func (w *relayWorld) addedByRelay(ctx context.Context, set settings, callers int) (line, error) {
	var relayed, direct [][]byte
	for i := range variety {
		call := official("SendMessage", i, w.words(80))
		relayed = append(relayed, request("POST", w.addr, "/a2a/remote-steps", w.Key, call, "A2A-Version: 1.0"))
		direct = append(direct, request("POST", w.sdk.addr, "/steps", "", call, "A2A-Version: 1.0"))
	}
	ours, theirs := taskJob(w.addr, sdkDone, relayed), taskJob(w.sdk.addr, sdkDone, direct)
	ours.Callers, theirs.Callers = callers, callers
	var p50, p99 []float64 // that the relay adds, by round
	var last result
	l, err := alternate(set, func() (result, error) {
		r, err := beside(ctx, set, nil, ours)
		last = r
		return r, err
	}, func() (result, error) {
		r, err := beside(ctx, set, nil, theirs)
		p50, p99 = append(p50, last.P50-r.P50), append(p99, last.P99-r.P99)
		return r, err
	})
	if err != nil {
		return line{}, err
	}
	l.Engine, l.Name, l.Callers, l.P50, l.P99 = w.engine, relayName, callers, median(p50), median(p99)
	if callers == 1 { // more of them share the processors with both servers, and wait for those
		l.Target, l.Verdict = fmt.Sprintf("p50 ≤ %d ms", maxAdded/1000), verdict(l.P50 <= maxAdded)
	}
	progress("%s, %s, %d callers: p50 +%.0f µs, p99 +%.0f µs", w.engine, relayName, callers, l.P50, l.P99)
	return l, nil
}

// besideHanging measures the tasks of one org without and beside tasks of another org whose remote
// hangs.
func (w *relayWorld) besideHanging(ctx context.Context, set settings) (line, error) {
	echo := taskJob(w.addr, done, w.taskCalls().sends)
	echo.Callers = relayCallers
	measure := func() (rates, p50, p99 []float64, err error) {
		for range set.rounds {
			r, err := beside(ctx, set, nil, echo)
			if err != nil {
				return nil, nil, nil, err
			}
			rates, p50, p99 = append(rates, r.rate()), append(p50, r.P50), append(p99, r.P99)
		}
		return rates, p50, p99, nil
	}
	before, _, _, err := measure()
	if err != nil {
		return line{}, err
	}
	if err := w.startHanging(ctx); err != nil {
		return line{}, err
	}
	rates, p50, p99, err := measure()
	if err != nil {
		return line{}, err
	}
	l := line{
		Engine: w.engine, Name: hangName, Callers: relayCallers, Rate: median(rates), LimitRate: median(before),
		P50: median(p50), P99: median(p99), Target: fmt.Sprintf("≥ %.2f", leastBeside),
	}
	l.Ratio = l.Rate / l.LimitRate
	l.Verdict = verdict(l.Ratio >= leastBeside)
	progress("%s, %s: %.0f/s, without %.0f/s, ratio %.2f", w.engine, hangName, l.Rate, l.LimitRate, l.Ratio)
	return l, nil
}

// startHanging sends the tasks that hang, and waits until the remote has all of them.
func (w *relayWorld) startHanging(ctx context.Context) error {
	var sends [][]byte
	for range hanging {
		call := rpcCall{Method: "tasks/send", Params: textParams("", w.words(10))}
		sends = append(sends, request("POST", w.addr, "/a2a/remote-hang", w.Key, call.body()))
	}
	if _, err := load(ctx, job{Addr: w.addr, Callers: relayCallers, Requests: sends, Count: hanging}); err != nil {
		return err
	}
	c, err := dial(w.sdk.addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	var body bytes.Buffer
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		body.Reset()
		if _, err := c.do(request("GET", w.sdk.addr, "/hanging", "", ""), &body); err != nil {
			return err
		}
		if strings.TrimSpace(body.String()) == fmt.Sprint(hanging) {
			return nil
		}
	}
	return fmt.Errorf("the remote has %s of %d tasks", &body, hanging)
}
