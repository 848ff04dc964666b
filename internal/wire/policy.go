package wire

import (
	"bytes"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/policy"
)

// ReadPolicy reads the policy from the metadata of a request, which is a JSON object or empty. The
// paths of mistakes begin with the member of the metadata.
func ReadPolicy(metadata []byte) (p policy.Policy, fields []errs.Field) {
	if !mayHave(metadata, "parley.dev") {
		return p, nil
	}
	fields = Read(metadata, false, func(r *Reader) {
		r.Object(func(name []byte) bool {
			if string(name) != policy.Key {
				return false
			}
			r.Strict = true // a misspelled name must not leave a task without its deadline
			r.Policy(&p)
			r.Strict = false
			return true
		})
	})
	if len(fields) == 0 {
		fields = errs.Under(p.Check(), policy.Key)
	}
	return p, fields
}

// mayHave reports whether JSON may contain a text, which may be written with escapes.
func mayHave(text []byte, part string) bool {
	return bytes.Contains(text, []byte(part)) || bytes.Contains(text, []byte(`\u`))
}

// Policy reads a policy.
func (r *Reader) Policy(p *policy.Policy) bool {
	timeout := 0
	ok := r.Object(func(name []byte) bool {
		switch string(name) {
		case "deadline":
			r.time(&p.Deadline)
		case "timeout_seconds":
			r.Int(&timeout, 1, int(policy.MaxTimeout/time.Second))
		case "retry":
			r.retry(&p.Retry)
		default:
			return false
		}
		return true
	})
	if p.Timeout = time.Duration(timeout) * time.Second; timeout > 0 && !p.Deadline.IsZero() {
		r.failAt("has the same purpose as deadline; give only one of them", "timeout_seconds")
	}
	return ok
}

// retry reads a retry policy. Without "on" every attempt that ends without a result is retried.
func (r *Reader) retry(to *policy.Retry) {
	to.Attempts, to.Lost, to.Failed = policy.DefaultAttempts, true, true
	r.Object(func(name []byte) bool {
		switch string(name) {
		case "max_attempts":
			r.Int(&to.Attempts, 1, policy.MaxAttempts)
		case "backoff_seconds":
			seconds := 0
			r.Int(&seconds, 0, int(policy.MaxBackoff/time.Second))
			to.Backoff = time.Duration(seconds) * time.Second
		case "on":
			to.Lost, to.Failed = false, false
			r.Array(2, func(int) {
				var cause string
				if !r.String(&cause) {
					return
				}
				switch cause {
				case "lost":
					to.Lost = true
				case "failed":
					to.Failed = true
				default:
					r.Fail(`must be "lost" or "failed"`)
				}
			})
		default:
			return false
		}
		return true
	})
}

func (r *Reader) time(to *time.Time) {
	var s string
	if !r.String(&s) {
		return
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || t.IsZero() {
		r.Fail("must be a time, such as 2026-03-02T10:00:00Z")
		return
	}
	*to = t
}
