package store

import (
	"log/slog"
	"sync"
	"time"
)

const (
	// checkpointFrames is the number of WAL pages from which the checkpointer copies them
	// into the database file.
	checkpointFrames = 8000
	// writerFrames is the number of WAL pages from which the writer makes a checkpoint
	// itself. Only the writer can restart the WAL, and by then little is left to copy.
	writerFrames = 2 * checkpointFrames
	// checkpointEvery is the minimum time between two checks.
	checkpointEvery = 100 * time.Millisecond
)

// checkpointer copies committed pages from the WAL into the database file on its own
// connection. If the writer copied all of them, one caller's large writes would delay the
// next write of every other caller.
type checkpointer struct {
	conn *liteConn
	log  *slog.Logger

	wake chan struct{}
	stop chan struct{}
	done sync.WaitGroup
}

func startCheckpointer(path string, log *slog.Logger) (*checkpointer, error) {
	conn, err := openLite(path, "synchronous=FULL", "wal_autocheckpoint=0")
	if err != nil {
		return nil, err
	}
	c := &checkpointer{conn: conn, log: log, wake: make(chan struct{}, 1), stop: make(chan struct{})}
	c.done.Go(c.run)
	return c, nil
}

// committed notifies the checkpointer that the WAL has grown.
func (c *checkpointer) committed() {
	select {
	case c.wake <- struct{}{}:
	default: // already notified
	}
}

func (c *checkpointer) run() {
	pace := time.NewTicker(checkpointEvery)
	defer pace.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-c.wake:
		}
		if err := c.copy(); err != nil {
			c.log.Warn("SQLite checkpoint failed; the next write retries it", "error", err)
		}
		select {
		case <-c.stop:
			return
		case <-pace.C:
		}
	}
}

// copy makes a checkpoint if enough pages wait. A passive checkpoint neither waits for other
// connections nor blocks them.
func (c *checkpointer) copy() error {
	waiting, err := c.frames("NOOP")
	if err == nil && waiting >= checkpointFrames {
		_, err = c.frames("PASSIVE")
	}
	return err
}

// frames makes a checkpoint of the given mode and returns how many WAL pages are not in the
// database file yet.
func (c *checkpointer) frames(mode string) (int, error) {
	var busy, all, copied int
	rs, err := c.conn.read("PRAGMA wal_checkpoint("+mode+")", nil, func() {})
	if err != nil {
		return 0, err
	}
	defer rs.Close()
	if !rs.Next() {
		return 0, rs.Err()
	}
	err = rs.Scan(&busy, &all, &copied)
	return all - copied, err
}

func (c *checkpointer) close() error {
	close(c.stop)
	c.done.Wait()
	return c.conn.close()
}
