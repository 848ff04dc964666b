package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A stand-in until the real file is merged.

type OrgEvent struct {
	Seq     int64           `json:"seq"`
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Time    time.Time       `json:"time"`
	Subject string          `json:"subject"`
	Actor   string          `json:"actor"`
	Version int             `json:"version"`
	Data    json.RawMessage `json:"data"`
}

type EventsOptions struct {
	After   *int64
	Types   []string
	Subject string
	Limit   int
	Wait    time.Duration
}

type EventPage struct {
	Events  []OrgEvent `json:"events"`
	LastSeq int64      `json:"last_seq"`
	Reset   bool       `json:"reset"`
}

var ErrEventsReset = errors.New("some events are no longer kept")

func (o EventsOptions) call() call {
	r := read("events")
	r.query = url.Values{}
	if o.After != nil {
		r.query.Set("after", strconv.FormatInt(*o.After, 10))
	}
	if len(o.Types) > 0 {
		r.query.Set("types", strings.Join(o.Types, ","))
	}
	if o.Limit > 0 {
		r.query.Set("limit", strconv.Itoa(o.Limit))
	}
	return r
}

func (c *Client) Events(ctx context.Context, o EventsOptions, opts ...Option) (page EventPage, _ error) {
	err := c.do(ctx, o.call(), &page, opts)
	return page, err
}

// FollowEvents polls.
func (c *Client) FollowEvents(ctx context.Context, o EventsOptions, opts ...Option) iter.Seq2[OrgEvent, error] {
	return func(yield func(OrgEvent, error) bool) {
		for {
			page, err := c.Events(ctx, o, opts...)
			if err != nil {
				yield(OrgEvent{}, err)
				return
			}
			if page.Reset && !yield(OrgEvent{}, ErrEventsReset) {
				return
			}
			for i := range page.Events {
				if !yield(page.Events[i], nil) {
					return
				}
			}
			o.After = &page.LastSeq
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				yield(OrgEvent{}, ctx.Err())
				return
			}
		}
	}
}
