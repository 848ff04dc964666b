package app

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// memoryShare is the share of the machine's or container's memory that the soft memory limit
// allows. The rest is for memory that the Go runtime does not manage.
const memoryShare = 0.8

// limitMemory sets the soft memory limit from the memory of the container or the machine.
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
	// relaxed is the default of GOGC. A server has a small live heap and much short-lived
	// garbage, so a high value saves a sixth of the CPU time of a write.
	relaxed = 300
	// headroom bounds the growth of the heap in bytes: with a large live heap, relaxed
	// would take much memory and save little time.
	headroom = 128 << 20
	// strict is the minimum of GOGC: below it, the collector would run all the time.
	strict = 50
)

// gcPercent returns GOGC for a live heap of the given size.
func gcPercent(live uint64) int {
	if live == 0 {
		return relaxed
	}
	return int(min(relaxed, max(strict, headroom*100/live)))
}

// tuneCollector sets GOGC after each collection, depending on the size of the live heap. The
// environment variable GOGC turns it off.
func tuneCollector() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(relaxed)
	afterCollection(&tuner{percent: relaxed})
}

// tuner keeps the current GOGC, because setting it stops the program for a moment.
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

// afterCollection calls tune after each collection. It uses the finalizer of an unreachable
// object.
func afterCollection(t *tuner) {
	type sentinel struct{ t *tuner }
	runtime.SetFinalizer(&sentinel{t}, func(s *sentinel) {
		s.t.tune()
		afterCollection(s.t)
	})
}

const (
	stackLook   = 2 * time.Second
	stackGrowth = 64 << 20
)

// trimStacks returns memory to the system after many streams were opened. Their goroutines keep
// the stacks that they needed to start, and wait with much less. Only a collection shrinks them,
// and with GOGC at relaxed the next one may be far away.
func trimStacks(ctx context.Context) {
	tick := time.NewTicker(stackLook)
	defer tick.Stop()
	known := stackBytes()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := stackBytes(); now < known {
			known = now
		} else if now > known+stackGrowth {
			debug.FreeOSMemory()
			known = stackBytes()
		}
	}
}

// stackBytes returns the memory of all stacks.
func stackBytes() uint64 {
	sample := [1]metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(sample[:])
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
