package dispatch

import (
	"context"

	"github.com/parley-dev/parley/internal/task"
)

// Echo is a built-in agent that returns the message that it was sent. It serves for trying
// out and benchmarking the platform.
type Echo struct{}

// Run implements Runner.
func (Echo) Run(ctx context.Context, a Assignment, w *Work) error {
	var parts []task.Part
	for i := len(a.Task.History) - 1; i >= 0 && parts == nil; i-- {
		if a.Task.History[i].Role == task.RoleUser {
			parts = a.Task.History[i].Parts
		}
	}
	_, err := w.Report(ctx, task.Report{
		State: task.Completed,
		Artifacts: []task.ArtifactUpdate{{
			Artifact: task.Artifact{ID: "echo", Type: "text", Name: "echo", Parts: parts}, LastChunk: true,
		}},
	})
	return err
}
