package authserver

import (
	"fmt"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

func TestOpenQuestionsAreBoundedByAddressAndInAll(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	q := newQuestions(func() time.Time { return now })
	n := 0
	ask := func(address string) (identity.Hash, error) {
		done, err := q.reserve(address)
		if err != nil {
			return identity.Hash{}, err
		}
		defer done()
		n++
		id := hashRequest(fmt.Sprint(n))
		q.put(id, address, now.Add(requestLifetime))
		q.put(id, address, now.Add(requestLifetime)) // shown again
		return id, nil
	}
	var last identity.Hash
	for i := range maxQuestionsPerAddress {
		id, err := ask("a")
		if err != nil {
			t.Fatalf("question %d: %v", i+1, err)
		}
		last = id
	}
	if _, err := ask("a"); errs.KindOf(err) != errs.RateLimited || errs.As(err).RetryAfter == 0 {
		t.Errorf("one more: %v", err)
	}
	if _, err := ask("b"); err != nil {
		t.Errorf("another address: %v", err)
	}
	q.end(last)
	if _, err := ask("a"); err != nil {
		t.Errorf("after an answer: %v", err)
	}
	for i := 0; q.all < maxQuestions; i++ {
		if _, err := ask(fmt.Sprint("host", i/maxQuestionsPerAddress)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ask("new"); err == nil {
		t.Error("there is no bound in all")
	}
	now = now.Add(requestLifetime)
	if _, err := ask("a"); err != nil {
		t.Errorf("after all have expired: %v", err)
	}
	if q.all != 1 || len(q.open) != 1 || len(q.count) != 1 {
		t.Errorf("%d questions are counted, %d kept; want 1", q.all, len(q.open))
	}
}
