package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
)

// leastRatio is the share of the base's rate that a hot path must keep.
const leastRatio = 0.95

// comparison compares one hot path of this revision with another revision. Each round measures
// both, one after the other, and the one that goes first alternates: other load on the machine
// affects both alike.
type comparison struct {
	Engine  string  `json:"engine"`
	Name    string  `json:"name"`
	Base    float64 `json:"base_rate"`
	Rate    float64 `json:"rate"`
	Ratio   float64 `json:"ratio"` // median of the rounds' ratios
	Q1      float64 `json:"ratio_q1"`
	Q3      float64 `json:"ratio_q3"`
	CPU     float64 `json:"cpu_ratio,omitempty"` // processor time per request: the base's divided by this one's
	Rounds  int     `json:"rounds"`
	Verdict string  `json:"verdict"` // ok, MISS, MISS? if the rounds differ too much to tell, or "base fails"
}

// runVersus compares this revision, or set.head, with set.base.
func runVersus(ctx context.Context, set settings) error {
	base, baseKeys, cleanupBase, err := buildRevision(ctx, set.base)
	if err != nil {
		return err
	}
	defer cleanupBase()
	var program, keys string
	var cleanup func()
	if set.head == "" {
		program, cleanup, err = buildParley(ctx)
	} else {
		program, keys, cleanup, err = buildRevision(ctx, set.head)
	}
	if err != nil {
		return err
	}
	defer cleanup()
	var all []comparison
	if (set.only == "" || set.only == "auth") && baseKeys != "" && (keys != "" || set.head == "") {
		// A known key is not looked up, so the engine does not matter.
		found, err := versus(ctx, set, "-", []hotPath{keyPath(baseKeys)}, []hotPath{keyPath(keys)}, func() error { return nil })
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	for _, engine := range set.engines {
		if set.only == "auth" {
			break
		}
		found, err := versusEngine(ctx, set, engine, base, program)
		if err != nil {
			// The other engine took many minutes: do not lose its result.
			return errors.Join(fmt.Errorf("%s: %w", engine, err), reportVersus(set, all))
		}
		all = append(all, found...)
	}
	return reportVersus(set, all)
}

func reportVersus(set settings, all []comparison) error {
	if set.json {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(all)
	}
	return printVersus(os.Stdout, all)
}

// versusEngine runs both servers, each on its own store with the same rows.
func versusEngine(ctx context.Context, set settings, engine, base, program string) ([]comparison, error) {
	var (
		sides  [2][]hotPath
		worlds [2]*taskWorld
	)
	for i, p := range []string{base, program} {
		data, cleanup, err := newData(ctx, engine)
		if err != nil {
			return nil, err
		}
		defer cleanup()
		profiles.side = [2]string{"base", ""}[i]
		w, err := newTaskWorld(ctx, engine, p, data)
		if err != nil {
			return nil, err
		}
		defer w.close()
		if set.only != "a2a" {
			if err := w.seed(ctx, set.rows[len(set.rows)-1]); err != nil {
				return nil, err
			}
			if err := w.settle(ctx); err != nil {
				return nil, err
			}
		}
		if err := w.addOld(ctx, set.tasks); err != nil {
			return nil, err
		}
		if sides[i], err = w.hotPaths(set); err != nil {
			return nil, err
		}
		worlds[i] = w
	}
	renew := func() error {
		for _, w := range worlds {
			if err := w.restart(ctx); err != nil {
				return err
			}
			if err := w.settle(ctx); err != nil {
				return err
			}
		}
		for _, w := range worlds { // what a server does when it has started is not measured
			idle(ctx, w.Cmd.Process.Pid)
		}
		return nil
	}
	return versus(ctx, set, engine, sides[0], sides[1], renew)
}

// versus measures every path of both sides in turn, round by round. Before each further round it calls
// renew for new servers, because two processes of one program differ by up to a tenth for as long as
// they run. A round in which the base fails does not count for that path: an older revision may refuse
// what this one can do.
func versus(ctx context.Context, set settings, engine string, base, now []hotPath, renew func() error) ([]comparison, error) {
	rates, costs := make([][2][]float64, len(now)), make([][2][]float64, len(now))
	for round := range set.rounds {
		progress("%s: round %d of %d", engine, round+1, set.rounds)
		if round > 0 {
			if err := renew(); err != nil {
				return nil, err
			}
		}
		for i := range now {
			var rate, cost [2]float64
			var failed [2]error
			for turn := range 2 {
				side := (round + i + turn) % 2
				rate[side], cost[side], failed[side] = measure(ctx, set, [2][]hotPath{base, now}[side][i])
			}
			if err := cmp.Or(failed[1], ctx.Err()); err != nil {
				return nil, fmt.Errorf("%s of this revision: %w", now[i].name, err)
			}
			if failed[0] != nil {
				progress("%s: %s of the base, which does not count: %v", engine, now[i].name, failed[0])
				continue
			}
			for side := range 2 {
				rates[i][side] = append(rates[i][side], rate[side])
				costs[i][side] = append(costs[i][side], cost[side])
			}
		}
	}
	out := make([]comparison, len(now))
	for i, r := range rates {
		c := comparison{Verdict: "base fails"}
		if len(r[1]) > 0 {
			c = compareRounds(r[0], r[1])
			if cost := median(costs[i][1]); cost > 0 {
				c.CPU = median(costs[i][0]) / cost
			}
		}
		c.Engine, c.Name = engine, now[i].name
		out[i] = c
	}
	return out, nil
}

// measure returns the rate of a path and the processor time per request. What a server does later, such as
// to merge parts of the text index, belongs to the cost of this path and not to the next measurement.
func measure(ctx context.Context, set settings, path hotPath) (rate, cost float64, err error) {
	spent := cpuTicks(path.pid())
	rate, err = path.rate(ctx, set)
	idle(ctx, path.pid())
	spent = cpuTicks(path.pid()) - spent
	if err == nil && rate <= 0 {
		err = fmt.Errorf("nothing was done in %s", set.duration)
	}
	return rate, spent / rate, err
}

// compareRounds compares two sides round by round.
func compareRounds(base, now []float64) comparison {
	ratios := make([]float64, len(now))
	for i := range now {
		ratios[i] = now[i] / base[i]
	}
	c := comparison{
		Base: median(base), Rate: median(now),
		Ratio: median(ratios), Q1: quantile(ratios, 0.25), Q3: quantile(ratios, 0.75),
		Rounds: len(now),
	}
	if c.Verdict = verdict(c.Ratio >= leastRatio); c.Ratio < leastRatio && c.Q3 >= leastRatio {
		c.Verdict += "?"
	}
	return c
}

// quantile interpolates between the two nearest values.
func quantile(v []float64, p float64) float64 {
	s := slices.Sorted(slices.Values(v))
	at := p * float64(len(s)-1)
	i := int(at)
	if i+1 >= len(s) {
		return s[len(s)-1]
	}
	return s[i] + (at-float64(i))*(s[i+1]-s[i])
}

func printVersus(out io.Writer, all []comparison) error {
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "engine\tbase/s\tnow/s\tratio\tquartiles\tcpu\trounds\ttarget\t\t  hot path")
	for _, c := range all {
		cpu := "-"
		if c.CPU > 0 {
			cpu = fmt.Sprintf("%.2f", c.CPU)
		}
		fmt.Fprintf(tw, "%s\t%.0f\t%.0f\t%.3f\t%.2f–%.2f\t%s\t%d\t≥ %.2f\t%s\t  %s\n",
			c.Engine, c.Base, c.Rate, c.Ratio, c.Q1, c.Q3, cpu, c.Rounds, leastRatio, c.Verdict, c.Name)
	}
	return tw.Flush()
}
