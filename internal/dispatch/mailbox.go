package dispatch

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// Limits of direct messages.
const (
	MaxMessage   = 256 << 10 // bytes of one message as JSON
	KeepMessages = 24 * time.Hour
)

// MailboxLimits limit how many direct messages wait for one agent.
type MailboxLimits struct {
	Places    int // in total
	PerOrg    int // from one org other than the agent's own
	PerSender int // from one principal
}

// DefaultMailbox keeps a single sender or org from filling the mailbox.
var DefaultMailbox = MailboxLimits{Places: 10_000, PerOrg: 2_500, PerSender: 1_000}

// Error codes of the mailbox.
const (
	CodeMailboxFull     = "message.mailbox_full"
	CodeOrgShare        = "message.org_share"
	CodeSenderShare     = "message.sender_share"
	CodeMessageTooLarge = "message.too_large"
)

// DirectMessage is a fire-and-forget message that waits for a worker.
type DirectMessage struct {
	ID      string
	Org     string
	Agent   string
	From    identity.Principal
	Message task.Message
	At      time.Time
}

// Share is a part of a mailbox that has its own limit.
type Share struct {
	SenderOrg string // empty for all orgs
	Sender    string // empty for all senders of the org
	Most      int
	code      string
	what      string
}

// Shares lists the shares that the message counts in. The narrowest comes first, because it is
// the cheapest to count.
func (b MailboxLimits) Shares(m *DirectMessage) []Share {
	out := []Share{{
		SenderOrg: m.From.Org, Sender: m.From.Ref(), Most: b.PerSender, code: CodeSenderShare,
		what: "messages of this sender",
	}}
	if m.From.Org != m.Org {
		out = append(out, Share{
			SenderOrg: m.From.Org, Most: b.PerOrg, code: CodeOrgShare, what: "messages of this sender's org",
		})
	}
	return append(out, Share{Most: b.Places, code: CodeMailboxFull, what: "messages"})
}

// Full returns the refusal of a message whose share is used up.
func (s Share) Full() error {
	e := errs.New(errs.RateLimited, s.code,
		"%d %s wait for this agent, which is the limit; try again when it has read some", s.Most, s.what)
	e.RetryAfter = time.Minute
	return e
}

// Message sends a direct message. It is stored until a worker receives it, and not tracked.
func (s *Tasks) Message(ctx context.Context, c Call, m task.Message) (DirectMessage, error) {
	if err := c.check(); err != nil {
		return DirectMessage{}, err
	}
	if f := m.Check(); len(f) > 0 {
		return DirectMessage{}, errs.InvalidFields(errs.Under(f, "message")...)
	}
	if n := encodedSize(&m); n > MaxMessage {
		return DirectMessage{}, errs.New(errs.TooLarge, CodeMessageTooLarge,
			"the message has %d bytes; a direct message has at most %d: send a task instead", n, MaxMessage)
	}
	d := DirectMessage{
		ID: s.board.newID("msg-"), Org: c.target.Org, Agent: c.target.ID, From: c.sender(), Message: m, At: s.board.now(),
	}
	if err := s.mailbox.Put(ctx, d, DefaultMailbox); err != nil {
		return DirectMessage{}, err
	}
	s.board.queueChanged(c.target.Key())
	return d, nil
}

// encodedSize returns the size of the message in the store.
func encodedSize(m *task.Message) int {
	b, err := json.Marshal(m)
	if err != nil {
		return MaxMessage + 1
	}
	return len(b)
}
