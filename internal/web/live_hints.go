package web

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/parley-dev/parley/internal/event"
)

// maxHintSubjects is how many records one hint names.
const maxHintSubjects = 50

// every stands for all types or all subjects.
const every = "*"

// hints collects what changed since the last message of a stream, so that a burst of events costs
// the browser few messages.
type hints struct {
	ready chan struct{} // has a value when there is something to take

	mu sync.Mutex
	hint
}

// hint says what changed.
type hint struct {
	seq      int64 // of the last event; 0: none
	types    map[event.Type]bool
	subjects map[string]bool
	all      bool // more subjects than a hint names
	task     bool // the followed task changed
}

func newHints() *hints { return &hints{ready: make(chan struct{}, 1)} }

// add notes an event.
func (h *hints) add(e *event.Event) {
	h.change(func() {
		h.seq = e.Seq
		if h.types == nil {
			h.types, h.subjects = map[event.Type]bool{}, map[string]bool{}
		}
		h.types[e.Type] = true
		if !h.all {
			h.subjects[e.Subject] = true
		}
		h.all = h.all || len(h.subjects) > maxHintSubjects
	})
}

// addAll notes that anything may have changed up to the number.
func (h *hints) addAll(seq int64) {
	h.change(func() {
		h.seq, h.all = max(seq, 1), true
		h.types, h.subjects = map[event.Type]bool{every: true}, map[string]bool{}
	})
}

// addTask notes a change of the followed task.
func (h *hints) addTask() { h.change(func() { h.task = true }) }

func (h *hints) change(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	select {
	case h.ready <- struct{}{}:
	default:
	}
}

// take returns what was collected, and starts anew.
func (h *hints) take() hint {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.hint
	h.hint = hint{}
	return out
}

// encode returns the data of a message.
func (h *hint) encode() []byte {
	out := struct {
		Seq      int64        `json:"seq"`
		Types    []event.Type `json:"types"`
		Subjects []string     `json:"subjects"`
	}{h.seq, slices.Sorted(maps.Keys(h.types)), slices.Sorted(maps.Keys(h.subjects))}
	if h.all {
		out.Subjects = []string{every}
	}
	b, _ := json.Marshal(out) // strings and a number always encode
	return b
}

// anyHint returns the data of a message that anything may have changed.
func anyHint() []byte {
	h := hint{types: map[event.Type]bool{every: true}, all: true}
	return h.encode()
}

// taskHint returns the data of a message about the followed task.
func taskHint(name string) []byte {
	b, _ := json.Marshal(map[string]string{"task": name})
	return b
}
