package httpx

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// maxWait is the longest wait of a request, in seconds.
const maxWait = 60

// PreferredWait reads `Prefer: wait=N` (RFC 7240). As the RFC requires, the first one counts and
// invalid ones are ignored.
func PreferredWait(lines []string) time.Duration {
	for _, line := range lines {
		for pref := range strings.SplitSeq(line, ",") {
			pref, _, _ = strings.Cut(pref, ";") // drop parameters
			name, value, _ := strings.Cut(pref, "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			n, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 64)
			if err != nil && !errors.Is(err, strconv.ErrRange) { // out of range: n is the largest number
				return 0
			}
			return time.Duration(min(n, maxWait)) * time.Second
		}
	}
	return 0
}

// WaitApplied returns the value of Preference-Applied for a wait.
func WaitApplied(wait time.Duration) string { return "wait=" + strconv.Itoa(int(wait/time.Second)) }
