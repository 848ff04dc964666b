package task

import "time"

// Quotas limit what is stored for senders and orgs. 0 means no limit.
type Quotas struct {
	LiveTasks    int64 // tasks of one sender that are not over
	StoredTasks  int64 // tasks of the agents of one org
	SenderPushes int64 // active push configurations of one sender
	OrgPushes    int64 // active push configurations of all senders of one org
	Workers      int   // names of workers of one agent
}

// Error codes of quotas.
const (
	CodeLiveTasks   = "quota.live_tasks"
	CodeStoredTasks = "quota.stored_tasks"
	CodePushConfigs = "quota.push_configs"
	CodeWorkers     = "quota.workers"
	CodeCalls       = "quota.calls"
)

// Charge counts a new task against the quota that its agent has for the sender's org.
type Charge struct {
	Limit   int64     // tasks in one window
	Per     string    // the length of the windows; if it changes, counting starts again
	Window  time.Time // when the current window began
	Refusal error     // if the quota is used up
}
