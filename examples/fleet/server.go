package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"time"
)

// org is the shop.
const org = "teashop"

// agents are the fleet, in the order in which they work on an order.
var agents = []string{"intake", "pricing", "dispatch"}

var agentNames = map[string]string{"intake": "Intake", "pricing": "Pricing", "dispatch": "Dispatch"}

// site is a server with the shop's org.
type site struct {
	url, link string            // of the server, and to sign in to the dashboard
	shop      string            // the key of the shop, which sends orders
	admin     string            // the key of an admin
	keys      map[string]string // of the agents
}

func (f *fleet) program() string { return filepath.Join(f.dir, "parley") }

func (f *fleet) build(ctx context.Context) error {
	_, err := output(exec.CommandContext(ctx, "go", "build", "-o", f.program(), "github.com/parley-dev/parley/cmd/parley"))
	return err
}

// startServer starts the server on a new store and creates the org, its members and their keys.
func (f *fleet) startServer(ctx context.Context, listen string) (*site, error) {
	s := &site{url: "http://" + listen, keys: map[string]string{}}
	data := filepath.Join(f.dir, "data")
	cli := func(args ...string) (string, error) {
		return output(exec.CommandContext(ctx, f.program(), append(args, "--data", data)...))
	}
	serve := exec.Command(f.program(), "serve", "--data", data, "--listen", listen, "--log-level", "error")
	serve.Stdout = io.Discard // its greeting
	ended, err := f.start(ctx, "server", serve)
	if err != nil {
		return nil, err
	}
	if err := ready(ctx, s.url, ended); err != nil {
		return nil, err
	}
	steps := [][]string{
		{"org", "create", org},
		{"user", "create", "you", "--org", org, "--admin"},
		{"service", "create", "till", "--org", org},
	}
	for _, agent := range agents {
		steps = append(steps, []string{"agent", "create", agent, "--org", org, "--name", agentNames[agent]})
	}
	for _, args := range steps {
		if _, err := cli(args...); err != nil {
			return nil, err
		}
	}
	key := func(who string, scopes ...string) (string, error) {
		args := []string{"key", "create", "--org", org, "--as", who}
		for _, scope := range scopes {
			args = append(args, "--scope", scope)
		}
		return cli(args...)
	}
	if s.shop, err = key("service:till", "svc:a2a:write"); err != nil {
		return nil, err
	}
	if s.admin, err = key("user:you", "svc:tasks:read", "svc:tasks:write", "svc:admin:admin", "svc:a2a:write"); err != nil {
		return nil, err
	}
	for _, agent := range agents {
		if s.keys[agent], err = key("agent:"+agent, "svc:a2a:serve", "svc:tasks:read", "svc:tasks:write"); err != nil {
			return nil, err
		}
	}
	s.link, err = cli("admin", "link", "--user", "you", "--org", org, "--public-url", s.url)
	return s, err
}

// ready waits for the server.
func ready(ctx context.Context, url string, ended <-chan struct{}) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
		if err != nil {
			return err
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ended:
			return errors.New("the server has ended")
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
