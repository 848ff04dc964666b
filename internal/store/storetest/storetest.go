// Package storetest is the conformance suite that every engine of the store must pass. It tests
// each method, the isolation between orgs, and the races that the domain leaves to the store.
//
// It calls the domain's services over the store instead of the store alone where a rule of the
// domain is part of the guarantee.
package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/store"
)

// Run runs the suite. open returns a new, empty store of the engine under test. If there are
// words, only tests whose names contain one of them run.
func Run(t *testing.T, open func(*testing.T, store.Options) *store.Store, words ...string) {
	for _, c := range []struct {
		name string
		test func(*world)
	}{
		{"orgs and members", testOrgsAndMembers},
		{"agents", testAgents},
		{"agent ids are unique within an org", testAgentIDs},
		{"a new agent is usable at once", testNewAgentIsThere},
		{"the public names of an org are limited", testPublicNameQuota},
		{"a public name has one holder", testPublicNameRace},
		{"agents of the same id share nothing", testSameIDInTwoOrgs},
		{"an own agent hides a public one", testHiddenAgent},
		{"the catalogue finds agents by words, skill and presence", testCatalogue},
		{"the catalogue has what callers reach", testCatalogueAgainstModel},
		{"the catalogue is complete while it grows", testCatalogueWhileItGrows},
		{"a quota of calls is shared exactly", testCallQuota},
		{"a quota of calls has windows", testCallQuotaWindow},
		{"keys", testKeys},
		{"bootstrap happens once", testBootstrap},
		{"a proposal reads back as it was submitted", testSubmitAndGet},
		{"filters, sorts and totals agree with a scan", testListAgainstModel},
		{"pages and cursors walk every row once", testWalk},
		{"search finds what it should", testSearch},
		{"search in a large org finds what it should", testSearchLarge},
		{"drafts are seen by their submitter and admins", testDrafts},
		{"votes replace, withdraw and count", testVotes},
		{"votes of people and agents are counted apart", testVotesApart},
		{"a decision is made on the text", testTextVersion},
		{"proposals from friction show their evidence", testEvidenceOfProposals},
		{"filters for triage and counts agree with a scan", testTriageAgainstModel},
		{"excerpts", testExcerpts},
		{"a proposal is rejected as a duplicate", testDuplicates},
		{"two proposals are not duplicates of each other", testRacingDuplicates},
		{"proposals are decided together", testDecideTogether},
		{"groups of proposals", testGroups},
		{"likely duplicates are found by search", testSimilar},
		{"likely duplicates in a large org are found by search", testSimilarLarge},
		{"saved notes", testSavedNotes},
		{"history has every change", testHistory},
		{"the status table is kept and approval makes one follow-up", testStatusTable},
		{"decisions are found by their time", testDecisions},
		{"follow-ups", testFollowups},
		{"idempotency keys", testIdempotency},
		{"an idempotency key expires and is swept", testIdempotencyExpiry},
		{"a second org sees and changes nothing", testIsolation},
		{"two concurrent approvals make one follow-up", testRacingApprovals},
		{"two concurrent votes of one voter are one vote", testRacingVotes},
		{"racing submits with one idempotency key make one proposal", testRacingKeys},
		{"concurrent submits are all there and counted", testConcurrentSubmits},
		{"one bad write does not harm its neighbours", testBadNeighbour},
		{"the data version changes with every commit", testDataVersion},
		{"a canceled caller leaves no partial write", testCancelled},
		{"a task lives from submitted to completed", testTaskLife},
		{"sending again is a retry, a turn or refused", testResend},
		{"tasks belong to their sender", testTaskOwnership},
		{"tasks changed since a time", testTasksSince},
		{"cancel ends a task and its lease", testCancel},
		{"a stale lease changes nothing", testFencing},
		{"a lost worker costs an attempt and the third fails the task", testLostWorker},
		{"a task fails at its deadline", testDeadlines},
		{"a deadline in the past is refused", testOverdueSend},
		{"failed attempts are retried as the policy of the task says", testRetryPolicy},
		{"a retry policy applies to agents in this process", testRetryInProcess},
		{"a task is sent again", testRerun},
		{"racing reruns make one task for each key", testRacingReruns},
		{"a clock that is set back freezes no lease", testClockSetBack},
		{"two claims never get one task", testRacingClaims},
		{"a waiting worker gets the task inside the send", testWaitingWorker},
		{"no more of a task is read than was asked for", testTaskContent},
		{"a log is read in small pages", testLogPages},
		{"a claim is bounded by bytes", testClaimBytes},
		{"an exchange reports and claims", testExchange},
		{"a faulty write of an exchange does not harm the others", testExchangeFault},
		{"racing exchanges complete each task once", testRacingExchanges},
		{"a page of tasks is bounded by bytes", testOwnPages},
		{"a message sent during a claim or a report is delivered once", testTurnsOnce},
		{"a message that a worker has not seen is delivered again", testTurnsAgain},
		{"messages without memory for them stay undelivered", testTurnsWithoutMemory},
		{"an authorization is requested like input", testAuthRequired},
		{"a worker gets the request of the sender", testClaimShowsTheRequest},
		{"a worker gets the trace of the sender", testClaimShowsTheTrace},
		{"a report is repeated once", testReportOnce},
		{"a repeated report undoes nothing", testReportOnceWithoutMemory},
		{"a result is written only on the row that it was decided on", testFinish},
		{"an agent in this process responds", testEcho},
		{"agents in this process come and go", testHosts},
		{"an agent in this process hands back or loses a task", testHostsEnd},
		{"a lost node costs an agent in it no attempt", testHostLost},
		{"an agent in this process learns of messages", testHostNews},
		{"relays are stored with their agents", testRelays},
		{"what a remote has got is stored once", testRelayLinks},
		{"remotes' tasks of ended tasks are found", testDueLinks},
		{"a server takes over the tasks of a killed one", testTakeOver},
		{"a stream can be resumed on any node", testResume},
		{"direct messages are delivered until acknowledged", testDirectMessages},
		{"presence follows the workers", testPresence},
		{"tasks that ask are found by their sender", testAsking},
		{"an admin's own questions come first", testAskingOfAdmins},
		{"agents with waiting tasks", testQueued},
		{"tasks that ended long ago are swept", testSweepTasks},
		{"the timeline of a task has every attempt", testAttempts},
		{"failed tasks are grouped by message", testFailures},
		{"workers and queues are counted", testCrews},
		{"a follow-up mirrors its task", testMirror},
		{"push configurations", testPushConfigs},
		{"events are pushed once and in order", testPushOrder},
		{"a lost node loses no push", testPushLost},
		{"a failed push is repeated later", testPushRetry},
		{"a push is given up and retried", testPushDead},
		{"nodes share the pushes", testPushNodes},
		{"a slow receiver delays no other", testPushSlow},
		{"stalling receivers delay their own org only", testPushOrgs},
		{"pushes of a busy org do not hide those of another", testPushClaims},
		{"pushes that fail have their own lane", testPushLanes},
		{"large tasks are pushed a few at a time", testPushBytes},
		{"replays are limited", testPushReplays},
		{"an org has limits on agents, keys and invitations", testAdminQuotas},
		{"tasks have quotas", testTaskQuotas},
		{"push configurations have quotas", testPushQuotas},
		{"the workers of an agent are limited", testWorkerQuota},
		{"a mailbox is shared by its senders", testMailbox},
		{"results of agents in this process are pushed", testPushInProcess},
		{"secrets", testSecrets},
		{"kept secrets", testKeptSecrets},
		{"admins manage keys", testManageKeys},
		{"administration is repeated once", testManageOnce},
		{"administration is repeated once, also in a race", testRacingManageOnce},
		{"a key is rotated", testRotate},
		{"a disabled principal is refused", testDisable},
		{"the last admin cannot be removed", testLastAdmin},
		{"an erased user is named nowhere", testErase},
		{"a demoted admin keeps no right of an admin", testDemotion},
		{"no key survives a racing demotion", testRacingDemotion},
		{"a revocation takes effect at once on its own node", testRevokedAtOnce},
		{"an invitation is accepted once", testInvitations},
		{"an action and its audit entry are one write", testAuditTogether},
		{"the audit log", testAuditLog},
		{"changes of members are events", testMemberEvents},
		{"people who join or sign in are events", testArrivalEvents},
		{"changes of keys are events", testKeyEvents},
		{"bootstrap is in the log of events", testBootstrapEvents},
		{"changes of clients are events", testClientEvents},
		{"changes of agents are events", testAgentEvents},
		{"the presence of an agent is reported once", testPresenceEvents},
		{"the third report of a friction files a proposal", testFriction},
		{"one occurrence counts once", testFrictionOccurrences},
		{"evidence is kept up to a limit", testFrictionEvidence},
		{"each org has its own friction threshold", testFrictionThreshold},
		{"concurrent friction reports file one proposal", testRacingFriction},
		{"passwords and links", testPasswords},
		{"a link is used once", testRacingLinks},
		{"sessions and requests", testSessions},
		{"a session that ended is not stored again", testSessionStaysEnded},
		{"people sign in with an external provider", testArrivals},
		{"external identities are connected and disconnected", testConnections},
		{"racing sign-ins with a provider", testRacingArrivals},
		{"memberships are linked to one account", testLinkedAccounts},
		{"an invitation is accepted as a linked account", testJoinLinked},
		{"a provider is the way into its linked memberships", testLinkedProvider},
		{"accounts of several memberships are merged", testLinkedAccountsMerge},
		{"racing account links", testRacingAccountLinks},
		{"an admin makes a link for a member", testResetLink},
		{"own keys", testOwnKeys},
		{"views of keys", testKeyViews},
		{"why an agent has no worker", testConnection},
		{"a code and a refresh token are used once", testRacingGrants},
		{"reuse of a refresh token ends its grant", testRefreshFamily},
		{"a token works as long as its principal may have it", testTokens},
		{"expired rows are swept", testSweepLogins},
		{"the audit log is kept for a time", testAuditRetention},
		{"friction is kept for a time", testFrictionRetention},
		{"ended sessions are kept for a time", testSessionRetention},
		{"the audit log says what was deleted by age", testDeletionsAreSaid},
		{"racing sweeps count each row once", testRacingSweeps},
		{"clients of an org", testOrgClients},
		{"OAuth Client ID Metadata Documents", testDescribedClient},
		{"clients of an org are edited", testEditClients},
		{"secrets of clients are rotated", testRotateClients},
		{"a token works as long as its client may have it", testNarrowClients},
		{"a user ends the grants of programs", testPrograms},
		{"the clients of an org are limited", testFewClients},
		{"events have numbers without gaps", testEventOrder},
		{"events read back as they were written", testEventData},
		{"pages of events agree with a scan", testEventPages},
		{"events are seen by those who may", testEventsSeen},
		{"a reader of events knows what it missed", testEventsMissed},
		{"a page of events reads a part of the log", testEventScans},
		{"old events are deleted", testEventsExpire},
		{"events belong to an org", testEventOrgs},
		{"events are read backwards", testEventsBack},
		{"events are deleted beside readers", testEventsExpireBesideReaders},
		{"changes of proposals have events", testProposalEvents},
		{"changes of follow-ups have events", testFollowupEvents},
		{"reports of friction have events", testFrictionEvents},
		{"changes of tasks have events", testTaskEvents},
		{"a task changes its follow-up with events", testMirrorEvents},
		{"webhooks", testWebhooks},
		{"webhooks of an org are limited", testWebhookQuota},
		{"webhooks are created and rotated once", testWebhookOnce},
		{"secrets of webhooks are rotated", testWebhookRotation},
		{"webhooks get events once and in order", testWebhookOrder},
		{"the last deliveries of webhooks are kept", testWebhookLog},
		{"webhooks are given up and activated", testWebhookFails},
		{"a lost node loses no event of webhooks", testWebhookLost},
		{"webhooks are paused and resumed", testWebhookPause},
		{"claims of webhooks", testWebhookClaims},
		{"webhooks that fail have their own lane", testWebhookLanes},
		{"events are redelivered to webhooks", testRedelivery},
	} {
		if len(words) > 0 && !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(c.name, word) }) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := &world{T: t, clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
			// A real clock has a higher precision than the store.
			w.store = open(t, store.Options{Now: func() time.Time { return w.now().Add(7) }})
			w.operator = identity.NewOperator(w.store.IdentityStores(), w.now, w.newID)
			w.agents = newAgents(w.store.Agents(), agent.Quotas{}, w.now)
			w.proposals = proposals{proposal.New(w.store.Proposals(), w.now, w.newID)}
			w.followups = followups{followup.New(w.store.Followups(), w.store.Identity(), w.now, w.newID, nil)}
			w.frictions = frictions{friction.New(w.store.Friction(), w.now, w.newID, proposal.Check)}
			w.tasks = w.newTasks()
			c.test(w)
		})
	}
}

// world is one new store with the services over it, and a clock that only the test moves.
type world struct {
	*testing.T
	store     *store.Store
	operator  *identity.Operator
	agents    *registry
	proposals proposals
	followups followups
	frictions frictions
	tasks     *dispatch.Service

	clock  time.Time
	offset atomic.Int64 // microseconds; each reading of the clock adds one
	ids    atomic.Int64
}

func (w *world) now() time.Time {
	return w.clock.Add(time.Duration(w.offset.Add(1)) * time.Microsecond)
}

func (w *world) advance(d time.Duration) { w.offset.Add(d.Microseconds()) }

func (w *world) newID(prefix string) string { return fmt.Sprintf("%s%026d", prefix, w.ids.Add(1)) }

// access returns a principal with the scopes, or with all scopes if none is given. Services
// authorize it for the action of each call; see as.
func (w *world) access(org, ref string, scopes ...identity.Scope) identity.Access {
	w.Helper()
	p, err := identity.ParseRef(org, ref)
	w.must(err)
	if len(scopes) == 0 {
		scopes = identity.AllScopes
	}
	caller := &identity.Caller{Principal: p, KeyID: "key-" + ref, Scopes: scopes}
	a, err := identity.Authorize(caller, org, identity.ReadSelf)
	w.must(err)
	return a
}

// as authorizes a caller for an action, like a transport.
func (w *world) as(a identity.Access, action identity.Action) identity.Access {
	w.Helper()
	a, err := a.As(action)
	w.must(err)
	return a
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// want fails the test unless err has the kind.
func (w *world) want(err error, kind errs.Kind) {
	w.Helper()
	if err == nil {
		w.Fatalf("no error, want %s", kind)
	}
	if got := errs.KindOf(err); got != kind {
		w.Fatalf("error %q is %s, want %s", err, got, kind)
	}
}

func (w *world) submit(a identity.Access, edit func(*proposal.Submission)) proposal.Proposal {
	w.Helper()
	s := proposal.Submission{
		Title: "Retry the upload", Category: proposal.Reliability, Problem: "Uploads fail when the link drops.",
		SuggestedFix: "Retry with back-off.",
	}
	if edit != nil {
		edit(&s)
	}
	out, err := w.proposals.Submit(w.Context(), a, s)
	w.must(err)
	return out.Proposal
}

// memberScopes are the scopes of an ordinary agent.
var memberScopes = []identity.Scope{identity.TasksRead, identity.TasksWrite}
