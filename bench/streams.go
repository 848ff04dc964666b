package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
)

const (
	streamsName = "KiB of the server for each idle stream of events (heap and stacks in use)"

	idleStreams = 4000
	firstIdle   = 200 // cause the fixed costs
	maxIdleKiB  = 12
)

// measureStreams measures the memory of idle streams. It is the growth of what the Go runtime has in
// use after collections: the resident size also has what earlier requests left behind.
func measureStreams(ctx context.Context, _ settings, engine, program string) ([]line, error) {
	data, remove, err := newData(ctx, engine)
	if err != nil {
		return nil, err
	}
	defer remove()
	debug, err := freeAddr()
	if err != nil {
		return nil, err
	}
	w, err := newWorld(ctx, engine, program, data, "--debug-listen="+debug,
		"--max-streams=10000", "--max-streams-per-principal=10000")
	if err != nil {
		return nil, err
	}
	defer w.Kill()
	var before float64
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	for i := range firstIdle + idleStreams {
		if i == firstIdle {
			if before, err = w.inUse(ctx, debug); err != nil {
				return nil, err
			}
		}
		c, err := w.openIdle()
		if err != nil {
			return nil, fmt.Errorf("stream %d: %w", i, err)
		}
		open = append(open, c)
	}
	after, err := w.inUse(ctx, debug)
	if err != nil {
		return nil, err
	}
	each := (after - before) / idleStreams / 1024
	progress("%s, %s: %.1f", engine, streamsName, each)
	return []line{{
		Engine: engine, Name: streamsName, Callers: idleStreams, Rate: each,
		Target: fmt.Sprintf("≤ %d KiB", maxIdleKiB), Verdict: verdict(each <= maxIdleKiB),
	}}, nil
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

// openIdle opens a stream and reads its header.
func (w *world) openIdle() (net.Conn, error) {
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		return nil, err
	}
	req := request("GET", w.addr, eventsPath+"?since=now", w.keys[0], "", "Accept: text/event-stream")
	if _, err = c.Write(req); err == nil {
		var res *http.Response
		res, err = http.ReadResponse(bufio.NewReaderSize(c, 512), nil)
		if err == nil && res.StatusCode != http.StatusOK {
			err = fmt.Errorf("got %s", res.Status)
		}
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// inUse returns the bytes of heap and stacks that the server has in use after some collections; each
// one halves the stacks that are too large.
func (w *world) inUse(ctx context.Context, debug string) (total float64, err error) {
	for range 6 {
		if _, err := fetchText(ctx, "http://"+debug+"/debug/pprof/heap?gc=1"); err != nil {
			return 0, err
		}
	}
	text, err := fetchText(ctx, "http://"+w.addr+"/metrics")
	if err != nil {
		return 0, err
	}
	for _, name := range []string{"go_memstats_heap_inuse_bytes ", "go_memstats_stack_inuse_bytes "} {
		_, rest, ok := strings.Cut(text, "\n"+name)
		if !ok {
			return 0, fmt.Errorf("the server has no metric %s", name)
		}
		value, _, _ := strings.Cut(rest, "\n")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

func fetchText(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, res.Status)
	}
	return string(body), err
}
