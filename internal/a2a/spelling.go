package a2a

import (
	"errors"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/policy"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/wire"
)

// badParams refuses params. Its fields have the names of the params; the fields of other errors
// have the names of the domain.
type badParams struct{ cause *errs.Error }

// Error implements error.
func (e *badParams) Error() string { return e.cause.Error() }

// Unwrap lets errs.As find the Error.
func (e *badParams) Unwrap() error { return e.cause }

// spelled returns a domain error with the names that its fields have in the params.
func spelled(e *errs.Error) *errs.Error {
	return e.Spelled(func(f errs.Field) errs.Field {
		if f.Path = spell(f.Path, "taskPushNotificationConfig"); f.Path.Head() == pageToken {
			f.Message = "is not a token of this list; use the nextPageToken of the page before"
		}
		return f
	})
}

const pageToken = "pageToken"

// spell returns the path in params. push is the member of a send that has the push configuration.
func spell(p errs.Path, push string) errs.Path {
	p = wire.Spell(p)
	out := make(errs.Path, 0, len(p)+2)
	for i, step := range p {
		switch {
		case step == "push" && i == 0:
			out = append(out, "configuration", push)
		case step == "policy" && i == 0:
			out = append(out, "metadata", policy.Key)
		case step == "output_modes":
			out = append(out, "configuration", "acceptedOutputModes")
		case step == "scheme", step == "credentials":
			out = append(out, "authentication", step)
		case step == "context_id":
			out = append(out, "contextId")
		case step == "state" && i == 0:
			out = append(out, "status")
		case step == "limit":
			out = append(out, "pageSize")
		case step == "cursor":
			out = append(out, pageToken)
		default:
			out = append(out, step)
		}
	}
	return out
}

// asSent renames the fields of a refused send to the names of its version.
func (p *officialSend) asSent(err error) error {
	var e *errs.Error
	if p.request.Push == nil || p.request.Push.Form != task.PushV03 || !errors.As(err, &e) || len(e.Fields) == 0 {
		return err
	}
	return &badParams{e.Spelled(func(f errs.Field) errs.Field {
		f.Path = spell(f.Path, "pushNotificationConfig")
		return f
	})}
}
