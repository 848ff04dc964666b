package store

import (
	"log/slog"
	"sync"
	"time"
)

const (
	// checkpointFrames is how many pages of the WAL wait before the checkpointer copies
	// them into the database file.
	checkpointFrames = 8000
	// writerFrames is from how many pages on the writer makes a checkpoint itself. Only
	// the writer can begin the WAL anew, and by then little is left to copy.
	writerFrames = 2 * checkpointFrames
	// checkpointEvery is how often the checkpointer looks, at most.
	checkpointEvery = 100 * time.Millisecond
)

// checkpointer copies committed pages from the WAL into the database file, on a
// connection of its own. If the writer did all of it, one caller's large writes would
// make the next write of every other caller wait for the copy.
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

// committed tells the checkpointer that the WAL has grown.
func (c *checkpointer) committed() {
	select {
	case c.wake <- struct{}{}:
	default: // it knows already
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
			c.log.Warn("a checkpoint failed; the next write tries again", "error", err)
		}
		select {
		case <-c.stop:
			return
		case <-pace.C:
		}
	}
}

// copy makes a checkpoint if enough pages wait. A passive checkpoint waits for nobody,
// and nobody waits for it.
func (c *checkpointer) copy() error {
	waiting, err := c.frames("NOOP")
	if err == nil && waiting >= checkpointFrames {
		_, err = c.frames("PASSIVE")
	}
	return err
}

// frames makes a checkpoint of the given mode and returns how many pages of the WAL are
// not in the database file.
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
