package task

import "time"

// Attempt is the work of one worker on a task: from the start of its lease to its end.
type Attempt struct {
	Number     int // lost and failed attempts increase it, others do not
	Worker     string
	QueuedAt   time.Time // since when the task waited for it; zero: unknown
	StartedAt  time.Time
	EndedAt    time.Time // zero: the attempt is not over
	Ended      LeaseEnd
	State      State  // that the end of the attempt set
	Text       string // of the message with that state
	Heartbeats int    // how often the worker extended its lease; known at the end
	Reports    int    // writes of the worker before the end
	LastReport time.Time

	lease string
}

// Over reports whether the attempt has ended.
func (a *Attempt) Over() bool { return !a.EndedAt.IsZero() }

// Attempts derives the attempts from a task's log. Events of the log that neither start nor end a
// lease count as reports of the worker that holds it, unless the sender wrote them.
func Attempts(log []Event) []Attempt {
	var out []Attempt
	var queued time.Time // zero: the task is leased, over, or waits for its sender
	for i := range log {
		e := &log[i]
		last := len(out) - 1
		running := last >= 0 && !out[last].Over()
		switch {
		case e.Lease != "" && e.Ended == "":
			out = append(out, Attempt{
				Number: e.Attempt, Worker: e.Worker, QueuedAt: queued, StartedAt: e.At, lease: e.Lease,
			})
			queued = time.Time{}
		case e.Ended != "":
			if running && out[last].lease == e.Lease {
				out[last].end(e)
			}
			if queued = (time.Time{}); !e.State.Rests() { // another attempt follows
				queued = e.At
			}
		case e.Kind == TurnEvent:
			if !running && queued.IsZero() { // the first message, or the response to a question
				queued = e.At
			}
		case running && e.Lease == "":
			out[last].Reports++
			out[last].LastReport = e.At
		}
	}
	return out
}

func (a *Attempt) end(e *Event) {
	a.EndedAt, a.Ended, a.State, a.Heartbeats = e.At, e.Ended, e.State, e.Beats
	if m := e.Message.reported(e.Ended); m != nil {
		a.Text = m.Text()
	}
}

// Text returns the first text of the message.
func (m *Message) Text() string {
	for i := range m.Parts {
		if m.Parts[i].Kind == TextPart && m.Parts[i].Text != "" {
			return m.Parts[i].Text
		}
	}
	return ""
}
