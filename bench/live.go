package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

const (
	liveName = "a page in Chromium beside 199 streams; p50, p99: vote to the page"

	liveStreams = 199
	maxLivePage = 300 // milliseconds that 99 of 100 changes may take
	liveVotes   = 25  // in each round
	livePause   = 700 * time.Millisecond
)

// noteTally records in the page when the votes change, as times since 1970 in milliseconds.
const noteTally = `window.seen = [], new MutationObserver(() => {
	const votes = document.querySelector('#tally .tally').innerText.replace(/\s+/g, ' ').trim();
	if (votes !== seen.at(-1)?.votes) seen.push({votes, at: performance.timeOrigin + performance.now()});
}).observe(document.getElementById('tally'), {subtree: true, childList: true, characterData: true}), null`

// measureLive measures how long a change takes to the open page of somebody who reads it, from
// the vote of another caller to the votes on the screen.
func measureLive(ctx context.Context, set settings, engine, program string) ([]line, error) {
	w, cleanup, err := seeded(ctx, engine, program, set.rows[0])
	if err != nil {
		return nil, err
	}
	defer cleanup()
	ids, err := w.ids()
	if err != nil {
		return nil, err
	}
	stop, err := w.startStreams(ctx)
	defer stop()
	if err != nil {
		return nil, err
	}
	lags, err := w.watchVotes(ctx, ids[0], liveVotes*set.rounds)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", liveName, err)
	}
	l := line{
		Engine: w.engine, Rows: set.rows[0], Name: liveName, Callers: liveStreams + 1,
		P50: percentile(lags, 0.50), P99: percentile(lags, 0.99), Target: fmt.Sprintf("p99 ≤ %d ms", maxLivePage),
	}
	l.Verdict = verdict(l.P99 <= maxLivePage*1000)
	progress("%s, %s: %d votes, p50 %.0f µs, p99 %.0f µs", w.engine, liveName, len(lags), l.P50, l.P99)
	return []line{l}, nil
}

// startStreams follows the org with streams of the API, and discards what they get.
func (w *world) startStreams(ctx context.Context) (stop func(), err error) {
	ctx, stop = context.WithCancel(ctx)
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	for i := range liveStreams {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.addr+eventsPath+"?since=now", nil)
		if err != nil {
			return stop, err
		}
		req.Header.Set("Authorization", "Bearer "+w.keys[i%people])
		req.Header.Set("Accept", "text/event-stream")
		res, err := client.Do(req)
		if err != nil {
			return stop, err
		}
		if res.StatusCode != http.StatusOK {
			return stop, fmt.Errorf("stream %d: %s", i, res.Status)
		}
		go func() {
			defer func() { _ = res.Body.Close() }()
			_, _ = io.Copy(io.Discard, res.Body) // ends when it is stopped
		}()
	}
	return stop, nil
}

// watchVotes opens the page of a proposal in Chromium, changes a vote now and then, and returns
// how long each change took to the screen, sorted.
func (w *world) watchVotes(ctx context.Context, id string, votes int) (lags []time.Duration, err error) {
	tab, stop, err := w.openChromium(ctx, "/orgs/"+org+"/proposals/"+id)
	if err != nil {
		return nil, err
	}
	defer stop()
	if _, err := chromedp.Run(tab, chromedp.Evaluate[any](noteTally)); err != nil {
		return nil, err
	}
	for i := range votes {
		choice := []string{"for", "against"}[i%2]
		sent := time.Now()
		if err := w.vote(ctx, id, choice); err != nil {
			return nil, err
		}
		at, err := awaitTally(tab, i+1)
		if err != nil {
			return nil, err
		}
		lags = append(lags, at.Sub(sent))
		// Neither in step with the page nor with the server.
		time.Sleep(livePause + time.Duration(w.rng.Int64N(int64(livePause))))
	}
	slices.Sort(lags)
	return lags, nil
}

// awaitTally waits until the votes have changed so many times, and returns when they last did.
func awaitTally(tab context.Context, n int) (time.Time, error) {
	limited, cancel := context.WithTimeout(tab, 10*time.Second)
	defer cancel()
	for {
		seen, err := chromedp.Run(limited, chromedp.Evaluate[[]struct {
			Votes string
			At    float64
		}]("seen"))
		if err != nil {
			return time.Time{}, fmt.Errorf("wait for vote %d: %w", n, err)
		}
		if len(seen) >= n {
			return time.UnixMicro(int64(seen[n-1].At * 1000)), nil
		}
		time.Sleep(20 * time.Millisecond) // the page has noted the time itself
	}
}

// vote votes as the last person.
func (w *world) vote(ctx context.Context, id, choice string) error {
	body := strings.NewReader(`{"vote":"` + choice + `"}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+w.addr+path+"/"+id+"/vote", body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+w.keys[people-1])
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("vote: %s", res.Status)
	}
	return nil
}

// openChromium opens a page in a real browser, signed in as the first person.
func (w *world) openChromium(ctx context.Context, at string) (tab context.Context, stop func(), err error) {
	cookie, err := w.signIn(ctx)
	if err != nil {
		return nil, nil, err
	}
	name, value, _ := strings.Cut(cookie, "=")
	program := os.Getenv("PARLEY_CHROMIUM")
	if program == "" {
		if program, err = exec.LookPath("chromium-headless-shell"); err != nil {
			program, err = exec.LookPath("chromium")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("name a Chromium in PARLEY_CHROMIUM: %w", err)
		}
	}
	allocated, end := chromedp.NewExecAllocator(ctx, chromedp.ExecPath(program), chromedp.NoFirstRun, chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.Flag("headless", true), chromedp.Flag("disable-dev-shm-usage", true))
	tab, quit := chromedp.NewContext(allocated)
	stop = func() { quit(); end() }
	base := "http://" + w.addr
	if err = chromedp.Do(tab); err == nil {
		_, err = chromedp.Call(tab, network.SetCookie, network.SetCookieParams{Name: name, Value: value, URL: base})
	}
	if err == nil {
		err = chromedp.Do(tab, chromedp.Navigate(base+at), chromedp.WaitReady("#tally"))
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	return tab, stop, nil
}
