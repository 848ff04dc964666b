package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

// Config configures a Worker.
type Config struct {
	// URL is the URL of the server, such as https://parley.example.
	URL string
	// Agent is the id of the agent.
	Agent string
	// Key is an API key with the scope svc:a2a:serve, of the agent itself or of another
	// principal of its org with the scope agent:<id>.
	Key string
	// Name identifies this worker of the agent; if empty, the host name and the process id.
	Name string
	// Capacity is how many tasks run at a time; 1 if zero.
	Capacity int
	// Lease is how long a task stays with this worker when the server hears nothing of it: 30
	// seconds if zero, in whole seconds. The worker extends its leases, so they need not be as long
	// as the work.
	Lease time.Duration
	// Grace is how long handlers may continue after the worker begins to stop: 5 seconds if zero,
	// not at all if negative.
	Grace time.Duration
	// OnMessage gets direct messages, one at a time in the order of their arrival.
	// Without it they are logged and dropped. Its context ends when the worker has stopped.
	OnMessage func(context.Context, DirectMessage)
	// HTTPClient sends all requests. Its Timeout must not be below a minute, because a claim waits
	// for work.
	HTTPClient *http.Client
	// Logger gets the worker's log; slog.Default if nil.
	Logger *slog.Logger
}

const (
	defaultLease = 30 * time.Second
	defaultGrace = 5 * time.Second
	maxLease     = time.Hour
	maxClaim     = 100
	// maxResponse is more than a hundred of the largest tasks need in practice.
	maxResponse = 1 << 29
)

// New returns a worker, or an error if its configuration is invalid. It sends no request.
func New(cfg Config) (*Worker, error) {
	switch {
	case cfg.Agent == "":
		return nil, errors.New("worker: Agent is required")
	case cfg.Key == "":
		return nil, errors.New(
			"worker: Key is required; make one with parley key create --as agent:<id> --scope svc:a2a:serve")
	case cfg.Capacity < 0:
		return nil, fmt.Errorf("worker: Capacity must be at least 1; it is %d", cfg.Capacity)
	case cfg.Lease != 0 && (cfg.Lease < time.Second || cfg.Lease > maxLease):
		return nil, fmt.Errorf("worker: Lease must be from 1 second to 1 hour; it is %s", cfg.Lease)
	}
	api, err := client.New(client.Config{
		URL: cfg.URL, Key: cfg.Key, HTTPClient: cfg.HTTPClient, UserAgent: "parley-worker", MaxResponse: maxResponse,
	})
	if err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	w := &Worker{
		api: api, leases: api.Worker(cfg.Agent), agent: cfg.Agent, name: cfg.Name, capacity: max(1, cfg.Capacity),
		lease: defaultLease, grace: defaultGrace, log: cfg.Logger, onMessage: cfg.OnMessage,
	}
	if w.name == "" {
		w.name = defaultName()
	}
	if cfg.Lease != 0 {
		w.lease = cfg.Lease.Truncate(time.Second)
	}
	if cfg.Grace != 0 {
		w.grace = max(0, cfg.Grace)
	}
	if w.log == nil {
		w.log = slog.Default()
	}
	return w, nil
}

func defaultName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	return fmt.Sprintf("%s-%d", host[:min(len(host), 100)], os.Getpid())
}
