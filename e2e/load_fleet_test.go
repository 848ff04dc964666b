package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fleet is many concurrent clients of one server, with a ledger of what the server acknowledged.
type fleet struct {
	org    string
	admin  string   // a key with every scope
	voters []string // refs
	keys   []string // of the voters
	http   *http.Client
	base   string // changes when the server restarts
	ledger ledger
	acks   atomic.Int64
}

// newFleet creates an org with the given number of voters, each with a key.
func newFleet(t *testing.T, s *server, voters int) *fleet {
	t.Helper()
	f := &fleet{org: "fleet", base: s.base, http: &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 256},
	}}
	s.cli(t, "org", "create", f.org)
	s.cli(t, "user", "create", "boss", "--org", f.org, "--admin")
	f.admin = s.newKey(t, f.org, "user:boss", "svc:tasks:read", "svc:tasks:write", "svc:admin:admin")
	for i := range voters {
		id := fmt.Sprintf("voter%d", i)
		s.cli(t, "user", "create", id, "--org", f.org)
		f.voters = append(f.voters, "user:"+id)
		f.keys = append(f.keys, s.newKey(t, f.org, "user:"+id, "svc:tasks:read", "svc:tasks:write"))
	}
	return f
}

// ledger records what the clients know to be true.
type ledger struct {
	mu        sync.Mutex
	proposals []*fact
}

// fact is what is known of one proposal. A request without a response may or may not have
// happened.
type fact struct {
	id       string
	owner    int // which voter submitted it
	category string

	mu            sync.Mutex
	titles        []string // the acknowledged one, then those requested since
	votes         map[int]*ballot
	approvals     int // acknowledged
	maybeApproved bool
}

type ballot struct {
	acked string   // the last acknowledged choice, or empty
	maybe []string // choices requested since
}

// pick returns one of the latest proposals, so that clients collide.
func (l *ledger) pick(rng *rand.Rand, among int) *fact {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.proposals) == 0 {
		return nil
	}
	n := min(among, len(l.proposals))
	return l.proposals[len(l.proposals)-1-rng.IntN(n)]
}

func (l *ledger) all() []*fact {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*fact(nil), l.proposals...)
}

// work sends random writes as one voter until ctx ends or a response is missing.
func (f *fleet) work(ctx context.Context, voter int, rng *rand.Rand) error {
	for ctx.Err() == nil {
		var err error
		switch n := rng.IntN(100); {
		case n < 40:
			err = f.submit(voter, rng)
		case n < 85:
			err = f.vote(voter, rng)
		case n < 92:
			err = f.approve(rng)
		case n < 97:
			err = f.edit(voter, rng)
		default:
			_, err = f.call(f.keys[voter], "GET", "/proposals", nil, 200)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var someCategories = []string{"reliability", "performance", "security", "process", "feature", "documentation"}

func (f *fleet) submit(voter int, rng *rand.Rand) error {
	title := fmt.Sprintf("Proposal %d of voter %d", rng.Uint32(), voter)
	category := someCategories[rng.IntN(len(someCategories))]
	body, err := f.call(f.keys[voter], "POST", "/proposals", map[string]string{
		"title": title, "category": category, "problem": "It fails.", "suggested_fix": "Repair it.",
	}, 201)
	if err != nil {
		return err
	}
	fa := &fact{
		id: answer{body: body}.str("id"), owner: voter, category: category, titles: []string{title},
		votes: map[int]*ballot{},
	}
	f.ledger.mu.Lock()
	f.ledger.proposals = append(f.ledger.proposals, fa)
	f.ledger.mu.Unlock()
	if rng.IntN(10) == 0 {
		return f.seesOwn(voter, fa)
	}
	return nil
}

// seesOwn checks that a list read after an acknowledged submit shows it. It is nearly always on
// the first page, but other clients of the voter submit meanwhile.
func (f *fleet) seesOwn(voter int, fa *fact) error {
	query := "/proposals?status=all&sort=newest&limit=100&submitted_by=" + url.QueryEscape(f.voters[voter])
	for cursor := ""; ; {
		body, err := f.call(f.keys[voter], "GET", query+cursor, nil, 200)
		if err != nil || bytes.Contains(body, []byte(fa.id)) {
			return err
		}
		next := answer{body: body}.str("next_cursor")
		if next == "" {
			return unexpected{"a list does not show " + fa.id + ", which was acknowledged before: " + string(body)}
		}
		cursor = "&cursor=" + next
	}
}

func (f *fleet) vote(voter int, rng *rand.Rand) error {
	fa := f.ledger.pick(rng, 200)
	if fa == nil {
		return nil
	}
	choice := []string{"for", "against"}[rng.IntN(2)]
	fa.mu.Lock()
	b := fa.votes[voter]
	if b == nil {
		b = &ballot{}
		fa.votes[voter] = b
	}
	b.maybe = append(b.maybe, choice)
	fa.mu.Unlock()
	body, err := f.call(f.keys[voter], "POST", "/proposals/"+fa.id+"/vote", map[string]string{"vote": choice}, 200, 409)
	if err != nil {
		return err
	}
	fa.mu.Lock()
	defer fa.mu.Unlock()
	if (answer{body: body}).str("vote") == choice { // else 409: decided meanwhile
		b.acked, b.maybe = choice, nil
	} else if len(b.maybe) > 0 {
		b.maybe = b.maybe[:len(b.maybe)-1]
	}
	return nil
}

func (f *fleet) approve(rng *rand.Rand) error {
	fa := f.ledger.pick(rng, 300)
	if fa == nil {
		return nil
	}
	body, err := f.call(f.admin, "PATCH", "/proposals/"+fa.id, map[string]string{"status": "approved"}, 200, 409)
	fa.mu.Lock()
	defer fa.mu.Unlock()
	if err != nil {
		fa.maybeApproved = true
		return err
	}
	if (answer{body: body}).str("id") == fa.id { // else 409: another client was first
		fa.approvals++
	}
	return nil
}

// edit changes a title. Only the owner's client does so, one edit at a time, so that the ledger
// knows the last one.
func (f *fleet) edit(voter int, rng *rand.Rand) error {
	fa := f.ledger.pick(rng, 200)
	if fa == nil || fa.owner != voter {
		return nil
	}
	fa.mu.Lock()
	defer fa.mu.Unlock()
	title := fmt.Sprintf("Edited %d", rng.Uint32())
	before := fa.titles
	fa.titles = append(fa.titles, title)
	body, err := f.call(f.keys[voter], "PATCH", "/proposals/"+fa.id, map[string]string{"title": title}, 200, 409)
	if err != nil {
		return err
	}
	if (answer{body: body}).str("title") == title {
		fa.titles = []string{title}
	} else {
		fa.titles = before
	}
	return nil
}

// unexpected is a response that the server should not have sent; any other error of a call is a
// lost connection.
type unexpected struct{ msg string }

func (u unexpected) Error() string { return u.msg }

// call makes one request; an unexpected status is an error.
func (f *fleet) call(key, method, path string, body any, expected ...int) ([]byte, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, f.base+"/api/v1/orgs/"+f.org+path, r)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := f.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	for _, status := range expected {
		if res.StatusCode == status {
			f.acks.Add(1)
			return b, nil
		}
	}
	return nil, unexpected{fmt.Sprintf("%s %s: %d %s", method, path, res.StatusCode, b)}
}
