package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// profiles saves a processor profile of the server for each hot path: it shows what limits a path
// that misses its target.
var profiles profiler

type profiler struct {
	dir     string             // where to save; empty: nowhere
	side    string             // of a comparison, for servers that start from now on: base, or empty
	servers map[string]profile // by the address of the server
}

// profile is a server whose profiles are saved.
type profile struct{ engine, debug string }

// flag returns the flag that makes a server offer its profiles, and the address where it does.
func (p *profiler) flag() (flags []string, debug string, err error) {
	if p.dir == "" {
		return nil, "", nil
	}
	debug, err = freeAddr()
	return []string{"--debug-listen=" + debug}, debug, err
}

func (p *profiler) add(addr, engine, debug string) {
	if debug == "" {
		return
	}
	if p.servers == nil {
		p.servers = map[string]profile{}
	}
	p.servers[addr] = profile{engine: strings.TrimSpace(p.side + " " + engine), debug: debug}
}

// start saves the profile of a server during a measurement that begins now. The result waits for
// it. A later profile of the same name replaces it.
func (p *profiler) start(ctx context.Context, addr, name string, d time.Duration) (wait func() error) {
	server, ok := p.servers[addr]
	if !ok {
		return func() error { return nil }
	}
	saved := make(chan error, 1)
	go func() {
		seconds := max(1, int((warmup + d).Seconds()))
		text, err := fetchText(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", server.debug, seconds))
		if err == nil {
			file := regexp.MustCompile(`[^0-9A-Za-z]+`).ReplaceAllString(server.engine+" "+name, "-") + ".pprof"
			err = os.WriteFile(filepath.Join(p.dir, file), []byte(text), 0o600)
		}
		saved <- err
	}()
	return func() error { return <-saved }
}
