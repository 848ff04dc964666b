package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"
)

// line is one measured comparison.
type line struct {
	Engine    string  `json:"engine"`
	Rows      int     `json:"rows"`
	Name      string  `json:"name"`
	Callers   int     `json:"callers"`
	Rate      float64 `json:"rate"`
	LimitRate float64 `json:"limit_rate"`
	Ratio     float64 `json:"ratio"`
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	// Behind is the share of its rate that the job in the background reached; 0 if there was none.
	Behind  float64 `json:"behind,omitempty"`
	Target  string  `json:"target,omitempty"`
	Verdict string  `json:"verdict,omitempty"` // ok or MISS
	Note    string  `json:"note,omitempty"`    // about the measurement
}

type report struct {
	Lines []line `json:"lines,omitempty"`
	Costs []cost `json:"costs,omitempty"`
}

// slack is how much more a list may cost when it is deep or the org is large.
const slack = 1.5

// targets are the least ratios that are promised, by engine. An in-memory store says little about
// PostgreSQL: its tasks are compared with bare loops and pgbench, too.
var targets = map[string]map[string]float64{
	"sqlite": {
		listName: 0.5, freshName: 0.3, manyName: 0.5, pageQueryName: 0.5, deepName: 1 / slack, pageName: 0.25,
		getName: 0.55, voteName: 0.25, subName: 0.25, floodName: 0.4, feedName: 1,
		taskSends: 4, taskFew: 3, taskV1: 2, taskStream: 3, taskGets: 0.4, lifeName: 0.7,
		oldSends: leastOld, oldWork: leastOld,
	},
	"postgres": {
		listName: 0.6, freshName: 0.35, pageQueryName: 0.5, deepName: 1 / slack, pageName: 0.25,
		getName: 0.35, voteName: 0.12, rowsName: 0.5, feedName: 1,
		taskSends: 1.5, taskGets: 0.4, lifeName: 0.5,
		oldSends: leastOld, oldWork: leastOld,
	},
}

// leastOld is the least ratio of tasks among old ones. It would be 1 without noise.
const leastOld = 0.9

// rateTargets are rates per second that are promised, by engine.
var rateTargets = map[string]map[string]float64{"sqlite": {taskWork: 6000}}

// leastBehind is the least share of its rate that a job in the background must reach. With less, what
// it slows down looks faster than it is.
const leastBehind = 0.95

// judge adds the targets and the lines that compare sizes.
func (r *report) judge() {
	for i := range r.Lines {
		l := &r.Lines[i]
		if l.Name == rawName {
			r.compareRaw(l)
		}
		if want := targets[l.Engine][l.Name]; want > 0 {
			l.Target, l.Verdict = fmt.Sprintf("≥ %.2f", want), verdict(l.Ratio >= want)
		}
		if want := rateTargets[l.Engine][l.Name]; want > 0 {
			l.Target, l.Verdict = fmt.Sprintf("≥ %.0f/s", want), verdict(l.Rate >= want)
		}
		if l.Behind > 0 && l.Behind < leastBehind {
			l.Note = fmt.Sprintf(" (only %.0f %% of the writes in the background)", 100*l.Behind)
			l.Verdict = verdict(false)
		}
	}
	r.Lines = append(r.Lines, r.growth(listName)...)
	r.Lines = append(r.Lines, r.growth(coldName)...)
}

// addUnmeasured adds a line for each target that the report lacks, so that a part that is not
// measured any more does not go unnoticed.
func (r *report) addUnmeasured(engines []string) {
	for _, engine := range engines {
		measured := map[string]bool{}
		for _, l := range r.Lines {
			measured[l.Name] = measured[l.Name] || l.Engine == engine
		}
		promised := slices.Concat(slices.Collect(maps.Keys(targets[engine])), slices.Collect(maps.Keys(rateTargets[engine])))
		for _, name := range slices.Sorted(slices.Values(promised)) {
			if !measured[name] {
				r.Lines = append(r.Lines, line{Engine: engine, Name: name + " (not measured)", Verdict: verdict(false)})
			}
		}
	}
}

func verdict(ok bool) string {
	if ok {
		return "ok"
	}
	return "MISS"
}

// compareRaw adds Parley's submit at the smallest size to the line of the bare inserts.
func (r *report) compareRaw(raw *line) {
	for _, l := range r.Lines {
		if l.Engine == raw.Engine && l.Name == subName {
			raw.Rows, raw.Rate, raw.Ratio = l.Rows, l.Rate, l.Rate/raw.LimitRate
			raw.P50, raw.P99 = l.P50, l.P99
			return
		}
	}
}

// growth compares the largest org with the smallest. Each was measured at the same time as the bare
// server, so their ratios compare better than their rates.
func (r *report) growth(name string) []line {
	var out []line
	first := map[string]line{}
	last := map[string]line{}
	var engines []string
	for _, l := range r.Lines {
		if l.Name != name {
			continue
		}
		if _, ok := first[l.Engine]; !ok {
			first[l.Engine] = l
			engines = append(engines, l.Engine)
		}
		last[l.Engine] = l
	}
	for _, e := range engines {
		f, l := first[e], last[e]
		if f.Rows == l.Rows {
			continue
		}
		out = append(out, line{
			Engine: e, Rows: l.Rows, Name: fmt.Sprintf("%s (limit: at %d rows)", name, f.Rows), Callers: l.Callers,
			Rate: l.Rate, LimitRate: f.Rate, Ratio: l.Ratio / f.Ratio, P50: l.P50, P99: l.P99,
			Target: fmt.Sprintf("≥ %.2f", 1/slack), Verdict: verdict(l.Ratio/f.Ratio >= 1/slack),
		})
	}
	return out
}

func (r *report) print(out io.Writer) error {
	if len(r.Costs) > 0 {
		tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(tw, "engine\tµs\ttarget\t\t  what it costs")
		for _, c := range r.Costs {
			fmt.Fprintf(tw, "%s\t%.2f\t%s\t%s\t  %s\n", c.Engine, c.Micros, c.Target, c.Verdict, c.Name)
		}
		if err := tw.Flush(); err != nil || len(r.Lines) == 0 {
			return err
		}
		fmt.Fprintln(out)
	}
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "engine\trows\tcallers\tparley/s\tlimit/s\tratio\tp50 µs\tp99 µs\ttarget\t\t  what")
	for _, l := range r.Lines {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t  %s\n",
			l.Engine, number(float64(l.Rows), 0), number(float64(l.Callers), 0), number(l.Rate, 0), number(l.LimitRate, 0),
			number(l.Ratio, 2), number(l.P50, 0), number(l.P99, 0), l.Target, l.Verdict, l.Name+l.Note)
	}
	return tw.Flush()
}

// number is empty for 0, which stands for "does not apply".
func number(v float64, decimals int) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}
