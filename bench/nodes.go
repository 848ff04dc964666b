package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// nodeCounts are the numbers of Parley nodes that share one PostgreSQL.
var nodeCounts = []int{1, 2, 4}

const nodeSubmits, nodeTasks = "submit", "task send → completed"

// maxNodeGrowth is how much more processor time of the database a request may cost with the most
// nodes than with one.
const maxNodeGrowth = 1.10

// measureNodes measures the processor time of PostgreSQL for a submit and for a task with one and
// several nodes, under the same load by the same number of callers, which are spread over the nodes.
func measureNodes(ctx context.Context, set settings, program string) ([]cost, error) {
	var clusters []*cluster
	defer func() {
		for _, c := range clusters {
			c.close()
		}
	}()
	for _, n := range nodeCounts {
		c, err := newCluster(ctx, program, n)
		if err != nil {
			return nil, err
		}
		clusters = append(clusters, c)
	}
	var out []cost
	for _, what := range []string{nodeSubmits, nodeTasks} {
		costs, err := compareClusters(ctx, set, clusters, what)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		out = append(out, costs...)
	}
	return out, nil
}

// cluster is a number of nodes on one database, which serves nothing else.
type cluster struct {
	nodes    []*process
	jobs     map[string][]job // what to measure: a job for each node
	data     []string         // flags
	postgres int              // process id
	remove   func()
}

func newCluster(ctx context.Context, program string, n int) (_ *cluster, err error) {
	c := &cluster{jobs: map[string][]job{}}
	if c.data, c.remove, err = newData(ctx, "postgres"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.postgres, err = postmaster(ctx, c.data[1]); err != nil {
		return nil, err
	}
	w, err := newTaskWorld(ctx, "postgres", program, c.data)
	if err != nil {
		return nil, err
	}
	c.nodes = append(c.nodes, w.process)
	flags, err := knownFlags(ctx, program, serveFlags)
	if err != nil {
		return nil, err
	}
	for len(c.nodes) < n {
		args := slices.Concat([]string{"serve", "--listen", "127.0.0.1:0"}, flags, c.data)
		p, err := startServer(ctx, nil, "/readyz", program, args...)
		if err != nil {
			return nil, err
		}
		c.nodes = append(c.nodes, p)
	}
	for _, p := range c.nodes {
		w.process = p // the requests name its address
		submits, tasks := job{Addr: p.addr, Requests: w.submits()}, taskJob(p.addr, done, w.taskCalls().sends)
		submits.Callers, tasks.Callers = writers/n, writers/n
		c.jobs[nodeSubmits] = append(c.jobs[nodeSubmits], submits)
		c.jobs[nodeTasks] = append(c.jobs[nodeTasks], tasks)
	}
	return c, nil
}

func (c *cluster) close() {
	for _, p := range c.nodes {
		p.Kill()
	}
	c.remove()
}

// usage is what a load used.
type usage struct {
	rate            float64 // requests per second
	micros          float64 // processor time of the database per request
	database, nodes float64 // processors in use
	waits           string  // what the database's processes wait for most
}

// run loads all nodes at once.
func (c *cluster) run(ctx context.Context, set settings, what string) (u usage, err error) {
	var wg sync.WaitGroup
	results, failed := make([]result, len(c.nodes)), make([]error, len(c.nodes))
	stop := make(chan struct{})
	waits := make(chan string, 1)
	go func() { waits <- c.sample(ctx, stop) }()
	start, database, nodes := time.Now(), familyTicks(c.postgres), c.nodeTicks()
	for i, j := range c.jobs[what] {
		wg.Go(func() {
			j.Duration = set.duration
			results[i], failed[i] = load(ctx, j)
		})
	}
	wg.Wait()
	seconds := time.Since(start).Seconds()
	database, nodes = (familyTicks(c.postgres)-database)/ticks, (c.nodeTicks()-nodes)/ticks
	close(stop)
	u.waits = <-waits
	requests := 0
	for i := range results {
		if failed[i] != nil {
			return u, failed[i]
		}
		requests += results[i].Requests
	}
	if requests == 0 {
		return u, fmt.Errorf("nothing was done in %s", set.duration)
	}
	u.rate, u.micros = float64(requests)/set.duration.Seconds(), database*1e6/float64(requests)
	u.database, u.nodes = database/seconds, nodes/seconds
	return u, nil
}

func (c *cluster) nodeTicks() (sum float64) {
	for _, p := range c.nodes {
		sum += cpuTicks(p.Cmd.Process.Pid)
	}
	return sum
}

// sample returns the event that backends with a running statement wait for most often until stop.
func (c *cluster) sample(ctx context.Context, stop <-chan struct{}) string {
	conn, err := pgx.Connect(ctx, c.data[1])
	if err != nil {
		return "unknown"
	}
	defer func() { _ = conn.Close(ctx) }()
	seen := map[string]int{}
	most := "none"
	for {
		select {
		case <-stop:
			return most
		case <-time.After(20 * time.Millisecond):
		}
		found, err := conn.Query(ctx, `SELECT coalesce(wait_event, 'none') FROM pg_stat_activity
			WHERE state = 'active' AND pid <> pg_backend_pid() AND datname = current_database()`)
		if err != nil {
			return "unknown"
		}
		events, err := pgx.CollectRows(found, pgx.RowTo[string])
		if err != nil {
			return "unknown"
		}
		for _, e := range events {
			if seen[e]++; seen[e] > seen[most] {
				most = e
			}
		}
	}
}

// limit names what keeps the rate from being higher.
func (u *usage) limit() string {
	processors := float64(runtime.NumCPU())
	used := u.database + u.nodes
	switch {
	case u.waits == "none" || used > 0.8*processors:
		return "the processors"
	case u.waits == "WALSync" || u.waits == "WALWrite":
		return "the sync of the write-ahead log"
	}
	return "waits for " + u.waits
}

func plural(nodes int) string {
	if nodes == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", nodes)
}

// compareClusters measures all clusters in turn and returns their median costs.
func compareClusters(ctx context.Context, set settings, clusters []*cluster, what string) ([]cost, error) {
	micros, last := make([][]float64, len(clusters)), make([]usage, len(clusters))
	growth := make([][]float64, len(clusters))
	for _, c := range clusters { // every connection prepares its statements
		if _, err := c.run(ctx, set, what); err != nil {
			return nil, err
		}
	}
	for round := range set.rounds {
		for i, c := range clusters {
			u, err := c.run(ctx, set, what)
			if err != nil {
				return nil, err
			}
			micros[i], last[i] = append(micros[i], u.micros), u
			growth[i] = append(growth[i], u.micros/micros[0][round])
			progress("postgres, %d nodes, %s: %.0f/s, %.0f µs of the database each", len(c.nodes), what, u.rate, u.micros)
		}
	}
	var out []cost
	for i, c := range clusters {
		u := &last[i]
		l := cost{Engine: "postgres", Micros: median(micros[i])}
		l.Name = fmt.Sprintf("the database, for a %s with %s (%.0f/s; processors: database %.1f, nodes %.1f; limit: %s)",
			what, plural(len(c.nodes)), u.rate, u.database, u.nodes, u.limit())
		if i == len(clusters)-1 {
			g := median(growth[i])
			l.Target, l.Verdict = fmt.Sprintf("≤ +%.0f %%", 100*(maxNodeGrowth-1)), verdict(g <= maxNodeGrowth)
			l.Name += fmt.Sprintf(", %+.0f %%", 100*(g-1))
		}
		out = append(out, l)
	}
	return out, nil
}
