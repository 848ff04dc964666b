package store

import (
	"errors"
	"testing"
)

// A small write is committed after at most one wide write, however many wide writes wait.
func TestASmallWriteWaitsForOneWideWriteAtMost(t *testing.T) {
	t.Parallel()
	small := errors.New("small")
	for range 20 { // if both are ready, either may be taken
		q := newQueue(newMetrics(), nil)
		began, goOn := make(chan struct{}), make(chan struct{})
		var order []string
		q.serve(maxBatch, func(batch []*request) {
			if len(order) == 0 {
				close(began)
				<-goOn // while the others arrive
			}
			for _, r := range batch {
				if errors.Is(r.fn(nil), small) {
					order = append(order, "small")
				} else {
					order = append(order, "wide")
				}
			}
		})
		put := func(in chan *request, err error) chan struct{} {
			r := &request{fn: func(*tx) error { return err }, answered: make(chan struct{})}
			if err := q.put(t.Context(), in, r); err != nil {
				t.Fatal(err)
			}
			return r.answered
		}
		put(q.wide, nil)
		<-began
		for range 5 {
			put(q.wide, nil)
		}
		answered := put(q.waiting, small)
		close(goOn)
		<-answered
		q.close()
		if len(order) != 7 || order[1] != "small" && order[2] != "small" {
			t.Fatalf("order of commits = %v, want small after at most one wide write", order)
		}
	}
}
