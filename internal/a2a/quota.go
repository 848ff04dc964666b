package a2a

import (
	"time"

	"github.com/parley-dev/parley/internal/httpx"
)

// callsPolicy is the name of an agent's quota in the RateLimit header fields.
const callsPolicy = "calls"

// nameQuota tells the caller what is left of the agent's quota for its org, in the header of the
// response. Other calls cost no look-up. If the store cannot be read, the fields are missing: the
// result of the call is more important.
func (c *call) nameQuota() {
	u, ok, err := c.s.Tasks.Usage(c, c.to)
	if err != nil || !ok {
		return
	}
	httpx.SetRateLimit(c.w.Header(), callsPolicy, u.Quota.Tasks, u.Quota.Per.Length(), u.Left(), time.Until(u.Resets))
}
