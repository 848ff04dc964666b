package task

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
)
