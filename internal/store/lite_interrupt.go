package store

import "context"

// interruptAfter interrupts the statements of the connection when ctx ends. The caller must call
// calm before the next use of the connection.
//
// SetInterrupt starts and ends a goroutine, which costs more than a short query. So a connection
// keeps one channel, and gets a new one only after an interruption.
func (c *liteConn) interruptAfter(ctx context.Context) (calm func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	if c.stopped == nil {
		c.stopped = make(chan struct{})
		c.conn.SetInterrupt(c.stopped)
	}
	stopped := c.stopped
	stop := context.AfterFunc(ctx, func() { close(stopped) })
	return func() {
		if stop() {
			return
		}
		<-stopped // the function has started
		c.conn.SetInterrupt(nil)
		c.stopped = nil
	}
}
