package task

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

var uidPattern = regexp.MustCompile(`^[0-9a-z]{1,64}$`)

// uidLength is the length of the ids that are made here.
const uidLength = 26

// ValidUID reports whether s can be our own id of a task.
func ValidUID(s string) bool { return uidPattern.MatchString(s) }

// Bounds of a list of tasks.
const (
	MaxLimit     = 100
	DefaultLimit = 20
)

// Validate refuses a filter that cannot match.
func (f *Filter) Validate() error {
	var out []errs.Field
	wrong := func(name, msg string) {
		out = append(out, field(name, msg))
	}
	if f.Agent != "" && !identity.ValidAgentID(f.Agent) {
		wrong("agent", "is not the id of an agent")
	}
	if f.State != "" && !slices.Contains(States, f.State) {
		wrong("state", fmt.Sprintf("must be one of %v", States))
	}
	if badID(f.ContextID) {
		wrong("context_id", idRule)
	}
	if f.Before != "" && (len(f.Before) != uidLength || !ValidUID(f.Before)) {
		wrong("cursor", "is not a cursor of this list")
	}
	if len(out) > 0 {
		return errs.InvalidFields(out...)
	}
	return nil
}

// MaxAck bounds how many messages one claim acknowledges: a claim delivers no
// more than MaxClaim.
const MaxAck = 1000

// Validate refuses a claim that asks for what nobody gets.
func (r *ClaimRequest) Validate() error {
	var out []errs.Field
	within := func(name string, n, low, high int64) {
		if n < low || n > high {
			out = append(out, field(name, fmt.Sprintf("must be an integer from %d to %d", low, high)))
		}
	}
	within("max", int64(r.Max), 0, MaxClaim)
	within("wait_seconds", int64(r.Wait/time.Second), 0, int64(MaxWait/time.Second))
	within("lease_seconds", int64(r.Lease/time.Second), int64(MinLease/time.Second), int64(MaxLease/time.Second))
	within("capacity", int64(r.Capacity), 1, MaxCapacity)
	if len(r.Worker) > MaxWorker || badID(r.Worker) {
		out = append(out, field("worker", fmt.Sprintf("must have at most %d bytes and no control characters", MaxWorker)))
	}
	if len(r.Ack) > MaxAck {
		out = append(out, field("ack", fmt.Sprintf("must have at most %d entries", MaxAck)))
	}
	for i, id := range r.Ack {
		if badID(id) {
			out = append(out, errs.Field{Path: errs.At("ack", i), Message: idRule})
		}
	}
	if len(out) > 0 {
		return errs.InvalidFields(out...)
	}
	return nil
}

// MaxWorker bounds the name of a worker, in bytes.
const MaxWorker = 128

// Validate refuses a report that cannot be kept.
func (r *Report) Validate() error {
	var out []errs.Field
	if r.State != "" && !slices.Contains(ReportableStates, r.State) {
		out = append(out, field("status", fmt.Sprintf("must be one of %v", ReportableStates)))
	}
	if r.Message != nil {
		out = append(out, errs.Under(r.Message.Check(), "message")...)
	}
	if r.Reply && (r.State != Completed || r.Message == nil || len(r.Artifacts) > 0) {
		out = append(out, field("reply", "goes with the status completed and a message, and without artifacts"))
	}
	for i := range r.Artifacts {
		u := &r.Artifacts[i]
		out = append(out, errs.Under(u.Artifact.Check(), "artifacts", i)...)
		if u.Append && u.Artifact.ID == "" {
			out = append(out, errs.Field{Path: errs.At("artifacts", i, "id"), Message: "is required to append to an artifact"})
		}
	}
	if r.Extend < 0 || r.Extend > MaxLease || r.Extend > 0 && r.Extend < MinLease {
		out = append(out, field("extend_seconds", fmt.Sprintf("must be an integer from %d to %d", MinLease/time.Second, MaxLease/time.Second)))
	}
	if len(out) > 0 {
		return errs.InvalidFields(out...)
	}
	return nil
}

// named gives artifacts without an id one of ours: without, two of them would be
// taken for one.
func (s *Tasks) named(list []ArtifactUpdate) []ArtifactUpdate {
	if !slices.ContainsFunc(list, func(u ArtifactUpdate) bool { return u.Artifact.ID == "" }) {
		return list
	}
	list = slices.Clone(list)
	for i := range list {
		if list[i].Artifact.ID == "" {
			list[i].Artifact.ID = s.NewID("artifact-")
		}
	}
	return list
}
