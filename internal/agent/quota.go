package agent

import (
	"fmt"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// Quota is how many tasks each org other than the agent's may send to the agent in one period. The
// zero value means no limit.
type Quota struct {
	Tasks int64
	Per   Period
}

// Period is the length of the windows in which tasks are counted.
type Period string

// The periods. Windows begin with the minute, the hour or the day in UTC.
const (
	Minute Period = "minute"
	Hour   Period = "hour"
	Day    Period = "day"
)

// Periods lists every value.
var Periods = []Period{Minute, Hour, Day}

// MaxQuota is the largest quota.
const MaxQuota = 1_000_000_000

// Length returns the length of a window.
func (p Period) Length() time.Duration {
	switch p {
	case Minute:
		return time.Minute
	case Hour:
		return time.Hour
	}
	return 24 * time.Hour
}

// Window returns the beginning and the end of the window at a time.
func (p Period) Window(at time.Time) (start, end time.Time) {
	start = at.UTC().Truncate(p.Length())
	return start, start.Add(p.Length())
}

func (c *checks) quota(q Quota) {
	if q == (Quota{}) {
		return
	}
	if q.Tasks < 1 || q.Tasks > MaxQuota {
		c.add(errs.At("quota", "tasks"), fmt.Sprintf("must be between 1 and %d", MaxQuota))
	}
	if !slices.Contains(Periods, q.Per) {
		c.add(errs.At("quota", "per"), fmt.Sprintf("must be one of %v", Periods))
	}
}

// Counted is what the store has counted of the tasks that an org sent to an agent.
type Counted struct {
	Per    Period
	Window time.Time // when the window began
	Used   int64
}

// Usage is what a calling org has used of the quota of an agent.
type Usage struct {
	Agent  string
	Org    string // of the agent
	Caller string // the calling org
	Quota  Quota
	Used   int64
	Resets time.Time // when the window ends
}

// Left returns how many tasks may still be sent in this window.
func (u Usage) Left() int64 { return max(0, u.Quota.Tasks-u.Used) }

// Usage returns the usage at a time. What was counted in an earlier window, or in windows of another
// length, does not count. A later window is that of a node whose clock is ahead.
func (c Counted) Usage(a *Agent, caller string, now time.Time) Usage {
	start, end := a.Quota.Per.Window(now)
	u := Usage{Agent: a.ID, Org: a.Org, Caller: caller, Quota: a.Quota, Resets: end}
	if c.Per == a.Quota.Per && !c.Window.Before(start) {
		u.Used, u.Resets = c.Used, c.Window.Add(a.Quota.Per.Length())
	}
	return u
}
