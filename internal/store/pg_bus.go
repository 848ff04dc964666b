package store

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"
)

// Bus carries hints between the nodes that share a PostgreSQL database. A hint is sent after
// the commit that it announces, outside of any transaction, because NOTIFY inside a
// transaction makes commits wait for each other. Hints are sent in batches. They may be lost,
// so receivers must work without them.
type Bus struct {
	eng  *pg
	node string

	mu      sync.Mutex
	pending map[string]struct{}
	wake    chan struct{} // buffered
}

const (
	channel = "parley"
	// coalesce is how long hints are collected. It limits the rate of NOTIFY, which takes a
	// lock across the database.
	coalesce = 5 * time.Millisecond
	// maxPayload is below PostgreSQL's limit of 8000 bytes.
	maxPayload = 7000
	// maxPending limits the hints that wait while the database does not respond.
	maxPending = 100_000
)

// Bus returns the carrier of hints, or nil if no other node can exist. node identifies this
// process.
func (s *Store) Bus(node string) *Bus {
	eng, ok := s.eng.(*pg)
	if !ok {
		return nil
	}
	return &Bus{eng: eng, node: node, pending: map[string]struct{}{}, wake: make(chan struct{}, 1)}
}

// Publish queues a hint for the other nodes.
func (b *Bus) Publish(topic string) {
	b.mu.Lock()
	if len(b.pending) < maxPending {
		b.pending[topic] = struct{}{}
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Run sends and receives hints until ctx ends. It calls receive with every topic that another
// node published, and lost whenever hints may have been lost.
func (b *Bus) Run(ctx context.Context, receive func(topic string), lost func(), onError func(error)) {
	var wg sync.WaitGroup
	wg.Go(func() { b.send(ctx, onError) })
	for ctx.Err() == nil {
		if err := b.listen(ctx, receive, lost); err != nil && ctx.Err() == nil {
			onError(err)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	}
	wg.Wait()
}

func (b *Bus) send(ctx context.Context, onError func(error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
		}
		select {
		case <-time.After(coalesce):
		case <-ctx.Done():
		}
		for _, payload := range b.payloads() {
			if err := b.notify(ctx, payload); err != nil && ctx.Err() == nil {
				onError(err)
			}
		}
	}
}

// payloads moves the pending hints into as few payloads as possible. Each payload starts with
// the id of the sending node.
func (b *Bus) payloads() []string {
	b.mu.Lock()
	topics := b.pending
	b.pending = map[string]struct{}{}
	b.mu.Unlock()
	var out []string
	var cur strings.Builder
	for topic := range topics {
		if cur.Len()+len(topic) > maxPayload {
			out = append(out, cur.String())
			cur.Reset()
		}
		if cur.Len() == 0 {
			cur.WriteString(b.node)
		}
		cur.WriteByte('\n')
		cur.WriteString(topic)
	}
	if cur.Len() > 0 {
		out = append(out, cur.String())
	}
	return out
}

func (b *Bus) notify(ctx context.Context, payload string) error {
	rs, err := b.eng.query(ctx, `SELECT pg_notify($1, $2)::text`, channel, payload)
	if err != nil {
		return err
	}
	rs.Close()
	return rs.Err()
}

func (b *Bus) listen(ctx context.Context, receive func(string), lost func()) error {
	if b.eng.pooled { // a pooler gives the session to other clients
		<-ctx.Done()
		return ctx.Err()
	}
	// The wait has no limit, but ends if the database does not respond.
	ctx, cancel, err := b.eng.pulse.bind(ctx, 0)
	if err != nil {
		return err
	}
	defer cancel()
	c, err := b.eng.probe.connect(ctx)
	if err != nil {
		return err
	}
	defer closeSoon(c)
	if _, err := c.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	lost()
	for {
		n, err := c.WaitForNotification(ctx)
		if err != nil {
			return errors.Join(errors.New("connection for hints from other nodes lost"), err)
		}
		from, topics, ok := strings.Cut(n.Payload, "\n")
		if !ok || from == b.node {
			continue
		}
		for topic := range strings.SplitSeq(topics, "\n") {
			receive(topic)
		}
	}
}
