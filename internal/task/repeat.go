package task

import (
	"bytes"
	"encoding/json"
)

// EndsLease reports whether the report ends the lease of its task.
func (r *Report) EndsLease() bool { return r.State != "" && r.State != Working && r.State != Canceled }

// EndIn looks in consecutive events of a task's log for those that this report has written to end
// the lease. It returns the number of the last one, and false if the lease ended in another way or
// with another content.
func (r *Report) EndIn(log []Event, token string) (int64, bool) {
	for i := range log {
		if e := &log[i]; e.Lease == token && e.Ended != "" {
			first := i - len(r.Artifacts)
			// The artifacts of one report have the time of its end.
			more := first > 0 && log[first-1].Kind == ArtifactEvent && log[first-1].At.Equal(e.At)
			return e.Seq, first >= 0 && !more && e.Ended == r.ends(e) && r.wrote(log[first:i+1])
		}
	}
	return 0, false
}

// ends returns how the report ends its lease with an event.
func (r *Report) ends(e *Event) LeaseEnd {
	if r.State == Failed && e.State == Working {
		return LeaseFailed
	}
	return LeaseDone
}

// wrote reports whether the events, the last of which ends a lease, have the content of the report.
func (r *Report) wrote(events []Event) bool {
	end := &events[len(events)-1]
	state := r.State
	if end.Ended == LeaseFailed {
		state = Working
	}
	if end.State != state || end.Reply != r.Reply || !sameMessage(r.Message, end.Message.reported(end.Ended)) {
		return false
	}
	for i := range r.Artifacts {
		u, e := &r.Artifacts[i], &events[i]
		if e.Kind != ArtifactEvent || e.Append != u.Append || e.LastChunk != r.lastChunk(i) ||
			!sameArtifact(u.Artifact, *e.Artifact) {
			return false
		}
	}
	return true
}

// sameMessage ignores an id that the platform has assigned.
func sameMessage(sent, stored *Message) bool {
	if sent == nil || stored == nil {
		return sent == stored
	}
	m := *stored
	if sent.ID == "" {
		m.ID = ""
	}
	return sameJSON(sent, &m)
}

// sameArtifact ignores an id that the platform has assigned.
func sameArtifact(sent, stored Artifact) bool {
	if sent.ID == "" {
		stored.ID = ""
	}
	return sameJSON(&sent, &stored)
}

// sameJSON compares the encodings, because an empty list that was stored is nil afterwards.
func sameJSON(a, b any) bool {
	x, err := json.Marshal(a)
	if err != nil {
		return false
	}
	y, err := json.Marshal(b)
	return err == nil && bytes.Equal(x, y)
}
