package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/parley-dev/parley/internal/servertest"
)

const (
	org     = "bench"
	path    = "/api/v1/orgs/" + org + "/proposals"
	people  = 8    // users who submit and vote
	variety = 1000 // different requests in turn, so that the cache serves either all or none
	writers = 256  // concurrent callers of writes: an org's agents, each with its own connection
)

// world is a Parley server with an org to measure.
type world struct {
	*process
	engine  string
	program string
	data    []string
	args    []string // of the server
	keys    []string
	rng     *rand.Rand
	refs    int    // number of different bodies so far
	cookie  string // of a signed-in user
}

// serveFlags are given to servers that support them; another revision may not.
var serveFlags = []string{"--rate-limit=0", "--log-level=error", "--max-stored-tasks=1000000000"}

func knownFlags(ctx context.Context, program string, flags []string) (known []string, err error) {
	help, err := exec.CommandContext(ctx, program, "serve", "--help").Output()
	if err != nil {
		return nil, fmt.Errorf("%s serve --help: %w", program, err)
	}
	for _, f := range flags {
		name, _, _ := strings.Cut(f, "=")
		if bytes.Contains(help, []byte(name)) {
			known = append(known, f)
		}
	}
	return known, nil
}

func newWorld(ctx context.Context, engine, program string, data []string, more ...string) (*world, error) {
	flags, err := knownFlags(ctx, program, serveFlags)
	if err != nil {
		return nil, err
	}
	profile, debug, err := profiles.flag()
	if err != nil {
		return nil, err
	}
	args := slices.Concat(flags, profile, more, data)
	p, err := startServer(ctx, nil, "/readyz", program, slices.Concat([]string{"serve", "--listen=127.0.0.1:0"}, args)...)
	if err != nil {
		return nil, err
	}
	profiles.add(p.addr, engine, debug)
	w := &world{
		process: p, engine: engine, program: program, data: data, args: args, rng: rand.New(rand.NewPCG(1, 2)),
	}
	if err := w.prepare(ctx); err != nil {
		w.Kill()
		return nil, err
	}
	return w, nil
}

// restart replaces the server by a new process with the same address and store.
func (w *world) restart(ctx context.Context) error {
	if err := w.Stop(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the server: %w", err)
	}
	for tries := 1; ; tries++ {
		p, err := startServer(ctx, nil, "/readyz", w.program, slices.Concat([]string{"serve", "--listen=" + w.addr}, w.args)...)
		if err == nil {
			*w.process = *p
			return nil
		}
		// A connection of another process may use the port for a while.
		if tries == 10 || !strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) {
			return err
		}
		time.Sleep(time.Second)
	}
}

// seeded starts a server on a new store with so many proposals. cleanup ends both.
func seeded(ctx context.Context, engine, program string, rows int) (w *world, cleanup func(), err error) {
	data, remove, err := newData(ctx, engine)
	if err != nil {
		return nil, nil, err
	}
	if w, err = newWorld(ctx, engine, program, data); err != nil {
		remove()
		return nil, nil, err
	}
	cleanup = func() {
		w.Kill()
		remove()
	}
	if err := w.seed(ctx, rows); err != nil {
		cleanup()
		return nil, nil, err
	}
	return w, cleanup, nil
}

func (w *world) prepare(ctx context.Context) error {
	if _, err := w.cli(ctx, "org", "create", org); err != nil {
		return err
	}
	for i := range people {
		id := fmt.Sprintf("person%d", i)
		if _, err := w.cli(ctx, "user", "create", id, "--org", org); err != nil {
			return err
		}
		key, err := w.cli(ctx, "key", "create", "--org", org, "--as", "user:"+id,
			"--scope", "svc:tasks:read", "--scope", "svc:tasks:write")
		if err != nil {
			return err
		}
		w.keys = append(w.keys, key)
	}
	return nil
}

func (w *world) cli(ctx context.Context, args ...string) (string, error) {
	return servertest.Run(exec.CommandContext(ctx, w.program, append(args, w.data...)...))
}

type page struct {
	Proposals []struct{ ID string }
	Total     int
	Next      *string `json:"next_cursor"`
}

// get returns the body of a response.
func (w *world) get(path string) ([]byte, error) {
	var body bytes.Buffer
	// Use a new connection: minutes pass between two calls, and the server closes idle connections.
	c, err := dial(w.addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	status, err := c.do(request("GET", w.addr, path, w.keys[0], ""), &body)
	if err == nil && status != 200 {
		err = fmt.Errorf("GET %s: %d %s", path, status, &body)
	}
	return body.Bytes(), err
}

func (w *world) list(query string) (page, error) {
	var p page
	b, err := w.get(path + query)
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(b, &p)
}

// seed submits until the org has n proposals.
func (w *world) seed(ctx context.Context, n int) error {
	const chunk = 100_000 // between two lines of progress
	for {
		p, err := w.list("?limit=1")
		if err != nil {
			return err
		}
		if p.Total >= n {
			progress("%s: %d proposals", w.engine, p.Total)
			return nil
		}
		progress("%s: %d of %d proposals", w.engine, p.Total, n)
		_, err = load(ctx, job{Addr: w.addr, Callers: writers, Requests: w.submits(), Count: min(chunk, n-p.Total)})
		if err != nil {
			return err
		}
	}
}

func (w *world) submits() [][]byte {
	out := make([][]byte, variety)
	for i := range out {
		b, _ := json.Marshal(w.submission()) // strings only
		out[i] = request("POST", w.addr, path, w.keys[i%people], string(b))
	}
	return out
}

// submission returns a body of a usual size. All its words but one are common, so that a search for
// that word finds only submissions with the same body.
func (w *world) submission() submission {
	w.refs++
	return submission{
		Title: w.words(60), Problem: fmt.Sprintf("%s ref%d", w.words(240), w.refs), SuggestedFix: w.words(250),
		Category: pick(w.rng, "reliability", "performance", "security", "process", "feature", "documentation"),
		Priority: pick(w.rng, "low", "low", "normal", "normal", "normal", "normal", "normal", "normal", "normal", "high"),
	}
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// words returns text of about n characters.
func (w *world) words(n int) string {
	var b strings.Builder
	for b.Len() < n {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(vocabulary[w.rng.IntN(len(vocabulary))])
	}
	return b.String()
}

var vocabulary = strings.Fields(`the upload retry fails when a token expires during handoff and nobody notices until
	morning because alerts go to an old channel add backoff with jitter check each response keep logs for thirty days
	rotate secrets weekly document every step of release process reduce latency under load cache results per region
	avoid duplicate work between agents share context before escalation measure again after change review queue daily`)

func (w *world) votes(ids []string) [][]byte {
	out := make([][]byte, 0, people*len(ids))
	for i, id := range ids {
		for _, key := range w.keys {
			b, _ := json.Marshal(ballot{Vote: []string{"for", "against"}[i%2], Comment: w.words(40)})
			out = append(out, request("POST", w.addr, path+"/"+id+"/vote", key, string(b)))
		}
	}
	w.rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// ids returns up to variety ids, half of the newest and half of the oldest proposals.
func (w *world) ids() ([]string, error) {
	var out []string
	for _, sort := range []string{"newest", "oldest"} {
		for n := 1; n <= variety/200; n++ {
			p, err := w.list(fmt.Sprintf("?limit=100&sort=%s&page=%d", sort, n))
			if err != nil {
				return nil, err
			}
			for _, it := range p.Proposals {
				out = append(out, it.ID)
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the org has no proposals")
	}
	return out, nil
}

// filters returns requests for lists with different filters.
func (w *world) filters() [][]byte {
	var out [][]byte
	for _, status := range []string{"open", "all"} {
		for _, category := range []string{
			"all", "reliability", "performance", "security", "process", "feature", "documentation",
		} {
			for _, sort := range []string{"review", "newest", "oldest", "votes"} {
				for _, who := range append([]string{"all"}, w.people()...) {
					for n := 1; n <= 2; n++ {
						q := fmt.Sprintf("?status=%s&category=%s&sort=%s&submitted_by=%s&page=%d",
							status, category, sort, who, n)
						out = append(out, request("GET", w.addr, path+q, w.keys[0], ""))
					}
				}
			}
		}
	}
	w.rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// searches returns searches for the rare word of each recently submitted body.
func (w *world) searches() [][]byte {
	out := make([][]byte, min(variety, w.refs))
	for i := range out {
		out[i] = request("GET", w.addr, fmt.Sprintf("%s?q=ref%d", path, w.refs-i), w.keys[0], "")
	}
	return out
}

func (w *world) people() []string {
	out := make([]string, people)
	for i := range out {
		out[i] = fmt.Sprintf("user:person%d", i)
	}
	return out
}

// cursors returns requests for pages that start after rows depth+1, depth+2, … of the list, each by
// its cursor: the same work as the default list, but all different, so that none is served from the
// cache.
func (w *world) cursors(depth int) ([][]byte, error) {
	next := ""
	step := func(limit int) error {
		p, err := w.list(fmt.Sprintf("?limit=%d%s", limit, next))
		if err == nil && p.Next == nil {
			err = fmt.Errorf("the list ends before row %d", depth)
		}
		if err == nil {
			next = "&cursor=" + *p.Next
		}
		return err
	}
	for at := 0; at+100 <= depth; at += 100 {
		if err := step(100); err != nil {
			return nil, err
		}
	}
	out := make([][]byte, variety/2)
	for i := range out {
		if err := step(1); err != nil {
			return nil, err
		}
		out[i] = request("GET", w.addr, path+"?limit=20"+next, w.keys[0], "")
	}
	return out, nil
}
