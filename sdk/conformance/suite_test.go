package conformance

import "testing"

// scenario is one behaviour that every SDK must show.
type scenario struct {
	name string
	run  func(t *testing.T, s *scene)
	// kills means that the scenario kills the server, and so needs its own.
	kills bool
}

// scenarios are sorted by time, longest first, so that they end together.
var scenarios = []scenario{
	{name: "many tasks", run: manyTasks, kills: true},
	{name: "server restart", run: serverRestart, kills: true},
	{name: "lease hangs", run: leaseHangs},
	{name: "lease unreachable", run: leaseUnreachable},
	{name: "report hangs", run: reportHangs},
	{name: "refused report", run: refusedReport},
	{name: "question again", run: questionAgain},
	{name: "busy server", run: busyServer},
	{name: "worker killed", run: workerKilled},
	{name: "lost heartbeats", run: lostHeartbeats},
	{name: "lost claim", run: lostClaim},
	{name: "cancel", run: cancel},
	{name: "late cancel", run: lateCancel},
	{name: "lost results", run: lostResults},
	{name: "lost chunks", run: lostChunks},
	{name: "lost friction", run: lostFriction},
	{name: "slow line", run: slowLine},
	{name: "closing connections", run: closingConnections},
	{name: "hand back", run: handBack},
	{name: "grace", run: grace},
	{name: "question across workers", run: questionAcrossWorkers},
	{name: "files", run: files},
	{name: "commands", run: commands},
	{name: "direct message", run: directMessage},
	{name: "wrong key", run: wrongKey},
}

// conform runs all scenarios for a driver on both engines.
func conform(t *testing.T, p program) {
	t.Helper()
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			shared := newSite(t, engine)
			for _, sc := range scenarios {
				t.Run(sc.name, func(t *testing.T) {
					t.Parallel()
					place := shared
					if sc.kills {
						place = newSite(t, engine)
					}
					s := newScene(t, place, p, sc.name)
					sc.run(t, s)
					s.finish(t)
				})
			}
		})
	}
}
