package store

import (
	"context"
	"errors"
	"sync/atomic"
)

// litePool is a fixed number of read connections.
type litePool struct {
	conns chan *liteConn
	size  int
	waits atomic.Int64 // how often a query had to wait for a connection
}

func newLitePool(size int) *litePool {
	return &litePool{conns: make(chan *liteConn, size), size: size}
}

func (p *litePool) open(path string) error {
	for range p.size {
		c, err := openLite(path, "query_only=1", "cache_size=-32768", "temp_store=MEMORY")
		if err != nil {
			return err
		}
		p.conns <- c
	}
	return nil
}

// query runs on a connection that is held until the rows are closed.
func (p *litePool) query(ctx context.Context, sql string, args ...any) (rows, error) {
	c, err := p.take(ctx)
	if err != nil {
		return nil, err
	}
	calm := c.interruptAfter(ctx)
	done := func() {
		calm()
		p.conns <- c
	}
	rs, err := c.read(sql, args, done)
	if err != nil {
		done()
		return nil, translate(err)
	}
	return rs, nil
}

func (p *litePool) take(ctx context.Context) (*liteConn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case c := <-p.conns:
		return c, nil
	default:
	}
	p.waits.Add(1)
	select {
	case c := <-p.conns:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// close closes the connections as they are returned.
func (p *litePool) close() (err error) {
	for range p.size {
		err = errors.Join(err, (<-p.conns).close())
	}
	return err
}

// closeIdle closes the connections that a failed open has left.
func (p *litePool) closeIdle() (err error) {
	for range len(p.conns) {
		err = errors.Join(err, (<-p.conns).close())
	}
	return err
}
