package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Why a handler's context ended; see context.Cause.
var (
	ErrCanceled  = errors.New("worker: the sender canceled the task")
	ErrLeaseLost = errors.New("worker: the lease is lost; the task is not ours any more")
	ErrStopping  = errors.New("worker: the worker is stopping")
)

// ErrFinished is the answer to a report about a task that this handler has already
// finished.
var ErrFinished = errors.New("worker: the task is finished already")

// Handler does the work of one task; the package's documentation says what it owes.
// Up to the worker's capacity of handlers run at a time.
type Handler func(ctx context.Context, t *Task) error

// Worker works for one agent. It is made by New and run by Run.
type Worker struct {
	server    string
	agent     string
	key       string
	name      string
	capacity  int
	lease     time.Duration
	grace     time.Duration
	http      *http.Client
	log       *slog.Logger
	onMessage func(context.Context, DirectMessage)
}

const (
	defaultLease = 30 * time.Second
	defaultGrace = 5 * time.Second
	// stuckAfter is how long a handler may take to notice that its context ended.
	stuckAfter = 5 * time.Second
	maxLease   = time.Hour
	maxClaim   = 100
)

// New makes a worker for an agent of the server, such as "http://127.0.0.1:8080".
func New(server, agent, key string, options ...Option) *Worker {
	w := &Worker{
		server: strings.TrimRight(server, "/"), agent: agent, key: key,
		name: defaultName(), capacity: 1, lease: defaultLease, grace: defaultGrace,
		http: defaultClient(), log: slog.Default(),
	}
	for _, o := range options {
		o(w)
	}
	w.lease = w.lease.Truncate(time.Second)
	return w
}

func defaultName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	return fmt.Sprintf("%s-%d", host[:min(len(host), 100)], os.Getpid())
}

func defaultClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second,
			IdleConnTimeout:     90 * time.Second,
			MaxIdleConnsPerHost: 64,
			ForceAttemptHTTP2:   true,
		},
		// The key must not follow a redirect to wherever it leads.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// check finds the mistakes that no server need be asked about.
func (w *Worker) check() error {
	u, err := url.Parse(w.server)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return fmt.Errorf("worker: the server's address must start with http:// or https:// and name a host; it is %q", w.server)
	case w.agent == "":
		return errors.New("worker: the agent's id is empty")
	case w.key == "":
		return errors.New("worker: the key is empty; parley key create --as agent:<id> --scope svc:a2a:serve makes one")
	case w.capacity < 1:
		return fmt.Errorf("worker: the capacity must be at least 1; it is %d", w.capacity)
	case w.lease < time.Second || w.lease > maxLease:
		return fmt.Errorf("worker: a lease must last from 1 second to 1 hour; it is %s", w.lease)
	}
	return nil
}

// Run works until ctx ends, and then stops in good order: see the package's
// documentation. It returns nil after such an end, and an error if the server
// refuses the worker for good. A Worker runs once at a time.
func (w *Worker) Run(ctx context.Context, handle Handler) error {
	if err := w.check(); err != nil {
		return err
	}
	return newShift(ctx, w, handle).run(ctx)
}
