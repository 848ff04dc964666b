package app

import (
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// memoryShare is the part of the machine's or container's memory that the heap may
// fill before the collector works harder; the rest is for what it does not know of.
const memoryShare = 0.8

// limitMemory sets a soft memory limit from what the container or the machine has.
// GOMEMLIMIT overrides it.
func limitMemory(log *slog.Logger) {
	limit, err := memlimit.Set(
		memlimit.WithRatio(memoryShare),
		memlimit.WithProvider(memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)),
	)
	switch {
	case err != nil:
		log.Warn("no memory limit was set: it is unknown how much memory there is; set GOMEMLIMIT", "error", err)
	case limit > 0:
		log.Debug("set the soft memory limit", "bytes", limit)
	}
}

const (
	// relaxed is how much the heap may grow, in percent of what is live, before it is
	// collected. A server keeps little alive and makes much short-lived garbage, so this
	// saves a sixth of the processor time of a write.
	relaxed = 300
	// headroom bounds that growth in bytes: with much alive, four times as much would be
	// a lot of memory for little time.
	headroom = 128 << 20
	// strict is the least growth: with less, the collector would run all the time.
	strict = 50
)

// gcPercent is GOGC for a heap of which so many bytes are live.
func gcPercent(live uint64) int {
	if live == 0 {
		return relaxed
	}
	return int(min(relaxed, max(strict, headroom*100/live)))
}

// tuneCollector sets GOGC after each collection, by what it left alive. An explicit
// GOGC turns this off.
func tuneCollector() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(relaxed)
	afterCollection(&tuner{percent: relaxed})
}

// tuner remembers what was set: setting it stops the program for a moment.
type tuner struct{ percent int }

func (t *tuner) tune() {
	sample := [1]metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample[:])
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return
	}
	if want := gcPercent(sample[0].Value.Uint64()); want < t.percent*9/10 || want > t.percent*11/10 {
		t.percent = want
		debug.SetGCPercent(want)
	}
}

// afterCollection tunes after each collection: the finalizer of an object that nobody
// refers to runs then.
func afterCollection(t *tuner) {
	type sentinel struct{ t *tuner }
	runtime.SetFinalizer(&sentinel{t}, func(s *sentinel) {
		s.t.tune()
		afterCollection(s.t)
	})
}
