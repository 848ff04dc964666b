package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
)

// TestJudge: what may pass is tried again, and what the remote refuses is not.
func TestJudge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want verdict
	}{
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, transient},
		{io.ErrUnexpectedEOF, transient},
		{context.DeadlineExceeded, transient},
		{errSilent, transient},
		{errDropped, transient},
		{&statusError{code: 401}, transient}, // an admin may replace the credential
		{&statusError{code: 403}, transient},
		{&statusError{code: 408}, transient},
		{&statusError{code: 429}, transient},
		{&statusError{code: 500}, faulty},
		{&statusError{code: 502}, transient},
		{errGarbled, faulty},
		{errNoTask, faulty},
		{errors.New("unknown event type: [surprise]"), faulty},
		{&statusError{code: 503}, transient},
		{&statusError{code: 302, target: "https://elsewhere.example"}, refused},
		{&statusError{code: 400}, refused},
		{&statusError{code: 404}, refused},
		{a2a.ErrUnauthenticated, transient},
		{a2a.ErrUnauthorized, transient},
		{a2a.ErrTaskNotFound, forgotten},
		{a2a.ErrUnsupportedOperation, unable},
		{a2a.ErrMethodNotFound, unable},
		{errTooLarge, tooLarge},
		{&busyError{"unavailable"}, transient},
		{a2a.NewError(a2a.ErrInvalidParams, "no such city"), refused},
	} {
		for _, err := range []error{c.err, fmt.Errorf("call: %w", c.err)} {
			if got := judge(err); got != c.want {
				t.Errorf("judge(%v) = %d, want %d", err, got, c.want)
			}
		}
	}
}
