package policy

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-dev/parley/internal/metadata"
)

// Members of the metadata of a request, which the task keeps.
const (
	Key      = "parley.dev/policy"   // the policy of a new task
	RerunKey = "parley.dev/rerun_of" // the id of the task that a task repeats
)

// IsRerun reports whether raw, which is a JSON object or empty, is the metadata of a task that repeats
// another one.
func IsRerun(raw []byte) bool {
	id, err := metadata.Member(raw, RerunKey)
	return err == nil && id != nil
}

// Rerun returns the metadata of a task that repeats another one: that of the other task, with its
// id. A deadline in it becomes the time that the other task had.
func Rerun(raw []byte, id string, timeout time.Duration) ([]byte, error) {
	var out metadata.Writer
	err := metadata.Each(raw, func(name string, value jsontext.Value) error {
		switch name {
		case RerunKey:
			return nil
		case Key:
			again, err := relative(value, timeout)
			if err != nil {
				return err
			}
			value = again
		}
		return out.Add(name, value)
	})
	if err != nil {
		return nil, err
	}
	quoted, err := jsontext.AppendQuote(nil, id)
	if err != nil {
		return nil, err
	}
	if err := out.Add(RerunKey, quoted); err != nil {
		return nil, err
	}
	return out.End()
}

// relative returns a policy with a timeout in the place of its deadline.
func relative(policy []byte, timeout time.Duration) (jsontext.Value, error) {
	var out metadata.Writer
	err := metadata.Each(policy, func(name string, value jsontext.Value) error {
		if name != "deadline" {
			return out.Add(name, value)
		}
		seconds := (timeout + time.Second - 1) / time.Second
		return out.Add("timeout_seconds", jsontext.Value(jsontext.Int(int64(seconds)).String()))
	})
	if err != nil {
		return nil, err
	}
	return out.End()
}
