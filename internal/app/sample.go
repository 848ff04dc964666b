package app

import (
	"context"
	"log/slog"
	"time"
)

// sample updates gauges from the store, at once and then regularly, until ctx ends. A scrape only
// reads them, so that it does not wait for the store.
func sample(ctx context.Context, log *slog.Logger, what string, every time.Duration, look func(context.Context) error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var logged time.Time
	for {
		limited, cancel := context.WithTimeout(ctx, 3*time.Second)
		err := look(limited)
		cancel()
		if err != nil && ctx.Err() == nil && time.Since(logged) > quiet {
			logged = time.Now()
			log.Warn("could not count "+what, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
