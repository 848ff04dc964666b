package rest

import (
	stdjson "encoding/json"
	"strconv"

	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/trace"
	"github.com/parley-dev/parley/internal/wire"
)

// Every submission, vote, send and result has an event, so proposals and tasks are encoded without
// reflection. FuzzRecords compares them with the documented types.

// Proposal encodes a proposal, without my_vote.
func (Records) Proposal(p *proposal.Proposal) stdjson.RawMessage {
	return appendProgress(appendDecision(make([]byte, 0, sizeOf(p)), p), p)
}

// sizeOf estimates the length of an encoded proposal.
func sizeOf(p *proposal.Proposal) int {
	const fixed = 750 // of the other members
	return fixed + len(p.Title) + len(p.Problem) + len(p.SuggestedFix) + len(p.ResolutionNote)
}

// appendDecision appends the members of a proposal before my_vote.
func appendDecision(b []byte, p *proposal.Proposal) []byte {
	b = appendText(b, `{"id":`, p.ID)
	b = appendText(b, `,"title":`, p.Title)
	b = appendText(b, `,"category":`, string(p.Category))
	b = appendText(b, `,"problem":`, p.Problem)
	b = appendText(b, `,"suggested_fix":`, p.SuggestedFix)
	b = appendText(b, `,"priority":`, string(p.Priority))
	b = appendText(b, `,"status":`, string(p.Status))
	b = appendText(b, `,"submitted_by":`, p.SubmittedBy)
	b = wire.AppendTime(append(b, `,"submitted_at":`...), p.SubmittedAt)
	b = wire.AppendTime(append(b, `,"updated_at":`...), p.UpdatedAt)
	b = appendTally(b, `,"votes_for":`, `,"votes_against":`, proposal.Tally{For: p.VotesFor, Against: p.VotesAgainst})
	b = appendTally(b, `,"votes_by":{"people":{"for":`, `,"against":`, p.People())
	b = appendTally(b, `},"agents":{"for":`, `,"against":`, p.Agents())
	b = appendText(b, `}},"resolution_note":`, p.ResolutionNote)
	return appendOrNull(b, `,"duplicate_of":`, p.DuplicateOf)
}

// appendProgress appends the members of a proposal after my_vote.
func appendProgress(b []byte, p *proposal.Proposal) []byte {
	b = append(b, `,"allowed_transitions":[`...)
	for i, s := range p.Status.Next() {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(b, string(s))
	}
	b = appendOrNull(b, `],"followup_id":`, p.FollowupID)
	b = appendOrNull(b, `,"followup_status":`, p.FollowupStatus)
	b = strconv.AppendBool(append(b, `,"resolvable":`...), p.Resolvable())
	b = appendOrNull(b, `,"fingerprint":`, p.Fingerprint)
	b = strconv.AppendInt(append(b, `,"evidence_count":`...), p.Evidence, 10)
	b = strconv.AppendInt(append(b, `,"text_version":`...), p.TextVersion, 10)
	return append(b, '}')
}

// Followup encodes a follow-up.
func (Records) Followup(f *followup.Followup) stdjson.RawMessage { return encodeRecord(followupOf(f)) }

// Friction encodes reported friction, without its evidence.
func (Records) Friction(f *friction.Friction) stdjson.RawMessage { return encodeRecord(frictionOf(f)) }

// Task encodes a task, without its messages and artifacts.
func (Records) Task(t *task.Task) stdjson.RawMessage {
	const fixed = 480
	b := make([]byte, 0, fixed+len(t.ID)+len(t.ContextID))
	b = appendText(b, `{"uid":`, t.UID)
	b = appendText(b, `,"id":`, t.ID)
	b = appendText(b, `,"agent":`, t.Agent)
	b = appendText(b, `,"sender":`, fullRef(t.Sender))
	b = appendText(b, `,"context_id":`, t.ContextID)
	b = appendText(b, `,"state":`, string(t.State))
	b = strconv.AppendInt(append(b, `,"attempt":`...), int64(t.Attempt()), 10)
	b = strconv.AppendInt(append(b, `,"max_attempts":`...), int64(t.Policy.Retries().Attempts), 10)
	if b = append(b, `,"deadline":`...); t.Policy.Deadline.IsZero() {
		b = append(b, "null"...)
	} else {
		b = wire.AppendTime(b, t.Policy.Deadline)
	}
	b = wire.AppendTime(append(b, `,"created_at":`...), t.CreatedAt)
	b = wire.AppendTime(append(b, `,"updated_at":`...), t.UpdatedAt)
	b = appendOrNull(b, `,"followup_id":`, t.FollowupID)
	if t.Trace != "" {
		b = appendText(b, `,"traceparent":`, trace.FromString(t.Trace).Parent)
	}
	return append(b, '}')
}

// appendText appends the name of a member, as JSON, and a string.
func appendText(b []byte, name, value string) []byte {
	return wire.AppendString(append(b, name...), value)
}

// appendOrNull is appendText with null for an empty string.
func appendOrNull(b []byte, name, value string) []byte {
	if b = append(b, name...); value == "" {
		return append(b, "null"...)
	}
	return wire.AppendString(b, value)
}

func appendTally(b []byte, votesFor, against string, t proposal.Tally) []byte {
	b = strconv.AppendInt(append(b, votesFor...), int64(t.For), 10)
	return strconv.AppendInt(append(b, against...), int64(t.Against), 10)
}
