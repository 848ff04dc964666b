package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/proposal"
)

// voting is a store with proposals to decide on.
type voting struct {
	*testing.T
	store *Store
	svc   *proposal.Proposals
	ids   []string
}

// newVoting opens a store with n proposals. Stores that are used alike have the same ids and times.
func newVoting(t *testing.T, o Options, n int) *voting {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	o.Now = func() time.Time { return at }
	s := openFor(t, o)
	var last atomic.Int64
	newID := func(prefix string) string { return fmt.Sprintf("%s%026d", prefix, last.Add(1)) }
	v := &voting{T: t, store: s, svc: proposal.New(s.Proposals(), o.Now, newID)}
	for i := range n {
		p, err := v.svc.Submit(t.Context(), v.as("root", identity.SubmitProposal), proposal.Submission{
			Title: fmt.Sprint("Title ", i), Category: proposal.Process, Problem: "p", SuggestedFix: "f",
		})
		if err != nil {
			t.Fatal(err)
		}
		v.ids = append(v.ids, p.Proposal.ID)
	}
	return v
}

func (v *voting) as(user string, action identity.Action) identity.Access {
	v.Helper()
	caller := &identity.Caller{
		Principal: identity.Principal{Org: "acme", Kind: identity.User, ID: user}, Scopes: identity.AllScopes,
	}
	a, err := identity.Authorize(caller, "acme", action)
	if err != nil {
		v.Fatal(err)
	}
	return a
}

func (v *voting) vote(ctx context.Context, user, id string, choice proposal.Choice, once string) (proposal.Outcome, error) {
	b := proposal.Ballot{Choice: choice, Comment: "by " + user}
	if once != "" {
		b.Once, _ = idempotency.New("vote "+id, once, []byte(choice))
	}
	return v.svc.Vote(ctx, v.as(user, identity.VoteOnProposal), id, b)
}

func (v *voting) resolve(id string, r proposal.Resolution) (proposal.Outcome, error) {
	return v.svc.Resolve(v.Context(), v.as("root", identity.ResolveProposal), id, r)
}

func (v *voting) get(id string) proposal.Current {
	v.Helper()
	cur, err := v.svc.Get(v.Context(), v.as("ann", identity.ReadProposal), id)
	if err != nil {
		v.Fatal(err)
	}
	return cur
}

// collectedChanges is an engine that keeps changes for a batch that the test runs.
type collectedChanges struct {
	engine
	batch []*request
}

func (c *collectedChanges) change(_ context.Context, ch *change) error {
	c.batch = append(c.batch, &request{change: ch, answered: make(chan struct{})})
	return nil
}

// batch returns the changes that the commands make.
func (v *voting) batch(commands []command) []*request {
	c := &collectedChanges{engine: v.store.eng}
	v.store.eng = c
	defer func() { v.store.eng = c.engine }()
	for _, do := range commands {
		_, _ = do(v) // the result is known after the batch
	}
	return c.batch
}

type command func(*voting) (proposal.Outcome, error)

func voteBy(user string, at int, choice proposal.Choice, once string) command {
	return func(v *voting) (proposal.Outcome, error) { return v.vote(v.Context(), user, v.ids[at], choice, once) }
}

func resolved(at int, to proposal.Status) command {
	return func(v *voting) (proposal.Outcome, error) {
		return v.resolve(v.ids[at], proposal.Resolution{Status: to, Note: "because"})
	}
}

func edited(at int, title string) command {
	return func(v *voting) (proposal.Outcome, error) {
		e := proposal.Edit{Title: &title}
		return v.svc.Edit(v.Context(), v.as("root", identity.ChangeProposal), v.ids[at], e)
	}
}

func withdrawn(user string, at int) command {
	return func(v *voting) (proposal.Outcome, error) {
		return v.svc.WithdrawVote(v.Context(), v.as(user, identity.VoteOnProposal), v.ids[at])
	}
}

// mixedCommands depend on each other in many ways, and some of them fail.
var mixedCommands = []command{
	voteBy("ann", 0, proposal.For, ""),
	voteBy("bob", 0, proposal.Against, ""),
	voteBy("ann", 0, proposal.Against, "key"),
	voteBy("ann", 0, proposal.Against, "key"), // replayed
	voteBy("ann", 0, proposal.For, "key"),     // the key of another command
	func(v *voting) (proposal.Outcome, error) {
		return v.vote(v.Context(), "ann", "prop-"+strings.Repeat("9", 26), proposal.For, "")
	},
	voteBy("ann", 1, proposal.For, ""),
	withdrawn("ann", 1),
	withdrawn("ann", 1), // there is none left
	voteBy("bob", 1, proposal.For, ""),
	withdrawn("bob", 1),
	voteBy("bob", 1, proposal.Against, ""),
	resolved(1, proposal.Approved),
	resolved(1, proposal.Approved), // it is
	voteBy("ann", 1, proposal.For, "late"),
	voteBy("ann", 1, proposal.For, "late"), // a refusal is not kept
	edited(2, "First"),
	edited(2, "Second"),
	func(v *voting) (proposal.Outcome, error) {
		return v.resolve(v.ids[3], proposal.Resolution{Status: proposal.Rejected, DuplicateOf: v.ids[2], Note: "the same"})
	},
	func(v *voting) (proposal.Outcome, error) { // the original is a duplicate itself
		return v.resolve(v.ids[2], proposal.Resolution{Status: proposal.Rejected, DuplicateOf: v.ids[3], Note: "the same"})
	},
	func(v *voting) (proposal.Outcome, error) {
		e := proposal.Edit{Priority: new(proposal.High), Category: new(proposal.Security)}
		return v.svc.Edit(v.Context(), v.as("root", identity.ChangeProposal), v.ids[4], e)
	},
	voteBy("ann", 4, proposal.For, ""), // the edit is kept
}

// outcome is the result of a command, comparable between stores.
type outcome struct {
	Out proposal.Outcome
	Err string
}

func outcomeOf(out proposal.Outcome, err error) outcome {
	if err != nil {
		return outcome{Err: err.Error()}
	}
	return outcome{Out: out}
}

// state reads all that the commands can change.
func (v *voting) state() (all []any) {
	v.Helper()
	for _, id := range v.ids {
		votes, n, err := v.svc.Votes(v.Context(), v.as("ann", identity.ReadProposal), id, &proposal.Paging{Limit: 100})
		if err != nil {
			v.Fatal(err)
		}
		history, entries, err := v.svc.History(v.Context(), v.as("ann", identity.ReadProposal), id,
			&proposal.Paging{Limit: 100})
		if err != nil {
			v.Fatal(err)
		}
		all = append(all, v.get(id), votes, n, history, entries)
	}
	counts, err := v.svc.Counts(v.Context(), v.as("ann", identity.ListProposals), proposal.Query{})
	if err != nil {
		v.Fatal(err)
	}
	events, err := strs(v.Context(), v.store.eng, `SELECT data FROM events_new UNION ALL SELECT data FROM events`)
	if v.store.d == &postgresDialect && (err != nil || strings.Count(strings.Join(events, ""), "\n") == 0) {
		v.Errorf("%d packs of events, error %v, want some", len(events), err)
	}
	return append(all, counts)
}

// A batch does what SQLite does with the same commands one after the other.
func TestABatchOfChangesEqualsOneChangeAfterTheOther(t *testing.T) {
	t.Parallel()
	one, many := newVoting(t, Options{Dir: t.TempDir()}, 5), newVoting(t, Options{URL: pgtest.URL(t)}, 5)
	var want []outcome
	for _, do := range mixedCommands {
		want = append(want, outcomeOf(do(one)))
	}
	batch := many.batch(mixedCommands)
	if len(batch) != len(mixedCommands) {
		t.Fatalf("%d changes in the batch, want %d", len(batch), len(mixedCommands))
	}
	// Without an error no change was tried alone.
	if err := many.store.eng.(*pg).updater.runAll(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	var got []outcome
	for _, r := range batch {
		got = append(got, outcomeOf(r.change.out, r.err))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-one by one +batch):\n%s", diff)
	}
	failed := slices.DeleteFunc(got, func(o outcome) bool { return o.Err == "" })
	if len(failed) != 7 {
		t.Errorf("%d changes failed, want 7", len(failed))
	}
	if diff := cmp.Diff(one.state(), many.state()); diff != "" {
		t.Errorf("rows (-one by one +batch):\n%s", diff)
	}
}

// A panic is an error of one change.
func TestAPanicInAChangeFailsNoOther(t *testing.T) {
	t.Parallel()
	v := newVoting(t, Options{URL: pgtest.URL(t)}, 2)
	batch := v.batch([]command{voteBy("ann", 0, proposal.For, ""), voteBy("ann", 1, proposal.For, "")})
	batch[0].change.decide = func(proposal.Current) (proposal.Change, error) { panic("a bug") }
	v.store.eng.(*pg).updater.commit(batch)
	if err := batch[0].err; err == nil || !strings.Contains(err.Error(), "a bug") {
		t.Errorf("error = %v, want the panic", err)
	}
	if err := batch[1].err; err != nil || v.get(v.ids[1]).Proposal.VotesFor != 1 {
		t.Errorf("the other change failed: %v", err)
	}
}

// Nodes whose batches contain the same proposals in different orders wait for each other.
func TestConcurrentChangesOnTwoNodes(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	first, second := newVoting(t, Options{URL: url}, 6), newVoting(t, Options{URL: url}, 0)
	second.ids = first.ids
	const voters, turns = 10, 6
	var wg sync.WaitGroup
	for i := range voters {
		for node, v := range []*voting{first, second} {
			wg.Go(func() {
				for n := range turns * len(v.ids) {
					at := n % len(v.ids)
					if node == 1 {
						at = len(v.ids) - 1 - at
					}
					choice := proposal.Choices[(n+i)%2]
					if _, err := v.vote(t.Context(), fmt.Sprint("voter", i), v.ids[at], choice, ""); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	for _, id := range first.ids {
		p := first.get(id).Proposal
		votes, total, err := first.svc.Votes(t.Context(), first.as("ann", identity.ReadProposal), id,
			&proposal.Paging{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		inFavour := 0
		for _, v := range votes {
			if v.Choice == proposal.For {
				inFavour++
			}
		}
		if total != voters || p.VotesFor != inFavour || p.VotesFor+p.VotesAgainst != voters {
			t.Errorf("%s has %d votes, %d for and %d against, want %d votes, %d for", id, total, p.VotesFor,
				p.VotesAgainst, voters, inFavour)
		}
		if want := int64(1 + 2*voters*turns); p.Version != want {
			t.Errorf("version = %d, want %d: every vote counts once", p.Version, want)
		}
	}
}

// A proposal that another transaction has locked delays only its own changes. A caller that leaves
// takes nothing from the others.
func TestALockedProposalDelaysNoOtherChange(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	v := newVoting(t, Options{URL: url, LockTimeout: long}, 2)
	conn := connect(t, url)
	mustExec(t, conn, `BEGIN`)
	mustExec(t, conn, `SELECT 1 FROM proposals WHERE id = '`+v.ids[0]+`' FOR UPDATE`)
	ctx, leave := context.WithCancel(t.Context())
	waiting := make(chan error, 1)
	go func() {
		_, err := v.vote(ctx, "ann", v.ids[0], proposal.For, "")
		waiting <- err
	}()
	for i := range 20 {
		if _, err := v.vote(t.Context(), fmt.Sprint("voter", i), v.ids[1], proposal.For, ""); err != nil {
			t.Error(err)
		}
	}
	leave()
	select {
	case err := <-waiting:
		t.Errorf("the change of a locked proposal returned %v, want it to wait", err)
	default:
	}
	mustExec(t, conn, `COMMIT`)
	if err := <-waiting; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want none", err)
	}
	if p := v.get(v.ids[1]).Proposal; p.VotesFor != 20 {
		t.Errorf("%d votes, want 20", p.VotesFor)
	}
}

// Decisions are made while their proposals are locked.
func TestABatchLocksItsProposals(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	v := newVoting(t, Options{URL: url}, 3)
	conn := connect(t, url)
	batch := v.batch([]command{voteBy("ann", 1, proposal.For, ""), voteBy("ann", 0, proposal.For, "")})
	decide := batch[0].change.decide
	var free []string
	batch[0].change.decide = func(cur proposal.Current) (proposal.Change, error) {
		found, err := conn.Query(t.Context(), `SELECT id FROM proposals FOR UPDATE SKIP LOCKED`)
		if err == nil {
			free, err = pgx.CollectRows(found, pgx.RowTo[string])
		}
		if err != nil {
			t.Error(err)
		}
		return decide(cur)
	}
	v.store.eng.(*pg).updater.commit(batch)
	if want := v.ids[2:]; !slices.Equal(free, want) {
		t.Errorf("proposals without a lock: %v, want %v", free, want)
	}
}

// The statements of a batch find each row by its key, in tables of any size and without statistics.
func TestChangesUseIndexes(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	v := newVoting(t, Options{URL: url}, 3)
	v.store.eng.(*pg).stats.close()
	conn := connect(t, url)
	batch := v.batch([]command{
		voteBy("ann", 0, proposal.For, "key"), voteBy("ann", 1, proposal.For, ""), voteBy("bob", 2, proposal.For, ""),
	})
	k := newKnown(batch)
	whole := newTx(nil, v.store.d, v.store.hooks)
	for i, id := range v.ids {
		cur := v.get(id)
		k.records[batch[i].change.proposalKey()] = &cur.Proposal
		if err := batch[i].change.run(t.Context(), whole, k); err != nil {
			t.Fatal(err)
		}
	}
	statements := combine(whole.statements)
	for _, q := range k.queries() {
		statements = append(statements, q.statement)
	}
	for _, size := range []string{"small", "large", "analyzed"} {
		switch size {
		case "large":
			mustExec(t, conn, `INSERT INTO proposals (org_id, id, status, category, priority, submitted_by, submitted_at,
					updated_at, votes_for, votes_against, score, version, followup_id, title, problem, suggested_fix,
					resolution_note, submitted_as, by_person, fingerprint, evidence)
				SELECT 'acme', 'prop-more' || n, 'open', 'process', 1, 'user:ann', 1, 1, 0, 0, 0, 1, '', '', '', '',
					'', 'open', 1, '', 0 FROM generate_series(1, 20000) n`)
			mustExec(t, conn, `INSERT INTO votes (org_id, proposal_id, voter, choice, comment, voted_at)
				SELECT 'acme', 'prop-more' || n, 'user:ann', 'for', '', 1 FROM generate_series(1, 20000) n`)
		case "analyzed":
			mustExec(t, conn, `ANALYZE proposals, votes`)
		}
		for _, s := range statements {
			if plan := planOf(t, v.store, s); strings.Contains(plan, "Seq Scan") {
				t.Errorf("%s: a plan scans a table:\n%s\n%s", size, s.sql, plan)
			}
		}
	}
}

// If the connection is lost between the reads and the commit, all changes of the batch fail, and
// none is written.
func TestALostConnectionFailsABatchOfChanges(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	proxy := pgtest.NewProxy(t, url)
	v := newVoting(t, Options{URL: proxy.URL(t, url)}, 2)
	batch := v.batch([]command{
		voteBy("ann", 0, proposal.For, "key"), voteBy("bob", 1, proposal.For, ""), voteBy("ann", 1, proposal.For, ""),
	})
	decide := batch[2].change.decide
	batch[2].change.decide = func(cur proposal.Current) (proposal.Change, error) {
		proxy.Cut()
		return decide(cur)
	}
	v.store.eng.(*pg).updater.commit(batch)
	for _, r := range batch {
		wantUnavailable(t, r.err, faultUnreachable)
	}
	var out proposal.Outcome
	until(t, "a vote succeeds on a new connection", func() (ok bool) {
		var err error
		out, err = v.vote(t.Context(), "ann", v.ids[0], proposal.For, "key")
		return err == nil
	})
	if out.Replayed || v.get(v.ids[0]).Proposal.VotesFor != 1 || v.get(v.ids[1]).Proposal.VotesFor != 0 {
		t.Errorf("the lost batch was written: %+v", out)
	}
}

// A program that does not support the schema any more changes nothing.
func TestChangesAreRefusedAfterAnIncompatibleMigration(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	v := newVoting(t, Options{URL: url}, 1)
	mustExec(t, connect(t, url), `INSERT INTO schema_migrations (number, name, compatible, applied_at)
		VALUES (9999, 'future', 0, 0)`)
	_, err := v.vote(t.Context(), "ann", v.ids[0], proposal.For, "")
	if e := errs.As(err); e.Code != CodeMigrated {
		t.Errorf("error = %v, want code %s", err, CodeMigrated)
	}
}

func TestLatestKeepsTheLastStatementOfARow(t *testing.T) {
	t.Parallel()
	a, b := rowKey{"o", "a", ""}, rowKey{"o", "b", ""}
	var texts []string
	for _, s := range latest([]statement{
		{sql: "a1", sets: a}, {sql: "x"}, {sql: "b1", sets: b}, {sql: "a2", sets: a}, {sql: "x"},
	}) {
		texts = append(texts, s.sql)
	}
	if want := []string{"x", "b1", "a2", "x"}; !slices.Equal(texts, want) {
		t.Errorf("got %v, want %v", texts, want)
	}
}
