package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"reflect"
	"strconv"
	"time"
)

// Page is one page of a list.
type Page[T any] struct {
	Items []T
	// Next is the cursor of the next page; empty if this is the last, or if the list has page
	// numbers instead of cursors.
	Next string
	// Total counts the items of all pages, if the list reports it.
	Total int64
	// Number is the number of the page, if the list has page numbers.
	Number int
	// More reports that a search has more matches than Total.
	More bool
	// Incomplete reports that a search did not cover all items, because the server is building its index.
	Incomplete bool
}

// paging is how a list is divided into pages.
type paging int

const (
	byCursor paging = iota
	byNumber
	onePage
)

// listing is a list of the API.
type listing[T any] struct {
	c      *Client
	call   call
	member string // member of the response with the items
	paging paging
}

// fullPage is the page size of iterators.
const fullPage = 100

func (l listing[T]) page(ctx context.Context, opts []Option) (*Page[T], error) {
	var raw map[string]json.RawMessage
	if err := l.c.do(ctx, l.call, &raw, opts); err != nil {
		return nil, err
	}
	out := &Page[T]{}
	exact, complete := true, true
	for member, into := range map[string]any{
		l.member: &out.Items, "next_cursor": &out.Next, "total": &out.Total, "page": &out.Number,
		"total_exact": &exact, "index_complete": &complete,
	} {
		if raw[member] == nil {
			continue
		}
		if err := l.c.decode(raw[member], into); err != nil {
			return nil, err
		}
	}
	out.More, out.Incomplete = !exact, !complete
	return out, nil
}

// all iterates over the items of all pages. An error is the last value.
func (l listing[T]) all(ctx context.Context, opts []Option) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		query := url.Values{}
		for name, values := range l.call.query {
			query[name] = values
		}
		if l.paging != onePage && !query.Has("limit") {
			query.Set("limit", strconv.Itoa(fullPage))
		}
		l.call.query = query
		var seen int64
		for {
			p, err := l.page(ctx, opts)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, item := range p.Items {
				if !yield(item, nil) {
					return
				}
			}
			seen += int64(len(p.Items))
			switch {
			case l.paging == onePage, len(p.Items) == 0 && l.paging == byNumber:
				return
			case l.paging == byNumber && seen < p.Total:
				query.Set("page", strconv.Itoa(p.Number+1))
			case l.paging == byCursor && p.Next != "":
				query.Del("page")
				query.Set("cursor", p.Next)
			default:
				return
			}
		}
	}
}

// values encodes the parameters of a list: non-zero fields with the tag url.
func values(params any) url.Values {
	out := url.Values{}
	v := reflect.ValueOf(params)
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Tag.Get("url"), v.Field(i)
		if f.IsZero() {
			continue
		}
		if t, ok := f.Interface().(time.Time); ok {
			out.Set(name, t.UTC().Format(time.RFC3339Nano))
			continue
		}
		out.Set(name, fmt.Sprint(f.Interface()))
	}
	return out
}
