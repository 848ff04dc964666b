package task

import "testing"

type heard []string

func (h *heard) Publish(topic string) { *h = append(*h, topic) }

// A hint to other nodes wakes the workers of the agent that it is about and no others.
func TestHintsNameTheOrg(t *testing.T) {
	t.Parallel()
	var bus heard
	here, there := New(Options{Store: struct{ Store }{}, Bus: &bus}), New(Options{Store: struct{ Store }{}})
	bob, other := there.queues.wait(AgentKey{"acme", "bob"}), there.queues.wait(AgentKey{"other", "bob"})
	here.queueChanged(AgentKey{"acme", "bob"})
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
