package dispatch

import (
	"testing"

	"github.com/parley-dev/parley/internal/task"
)

type heard []string

func (h *heard) Publish(topic string) { *h = append(*h, topic) }

// A hint wakes the workers of its agent on other nodes, and no others.
func TestHintsNameTheOrg(t *testing.T) {
	t.Parallel()
	var bus heard
	here, there := New(Options{Stores: noStores, Bus: &bus}), New(Options{Stores: noStores})
	bob := there.board.queues.wait(task.AgentKey{Org: "acme", ID: "bob"})
	other := there.board.queues.wait(task.AgentKey{Org: "other", ID: "bob"})
	here.board.queueChanged(task.AgentKey{Org: "acme", ID: "bob"})
	for _, topic := range bus {
		there.Hint(t.Context(), topic)
	}
	select {
	case <-bob:
	default:
		t.Errorf("%v did not reach the agent", bus)
	}
	select {
	case <-other:
		t.Errorf("%v reached an agent of another org", bus)
	default:
	}
}
