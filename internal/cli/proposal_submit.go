package cli

import (
	"encoding/json"
	"strings"

	"github.com/parley-dev/parley/sdk/client"
)

// onceFlag lets a script repeat a command without doing it twice. Without it each
// run of the command has a key of its own, for its own retries.
type onceFlag struct {
	IdempotencyKey string `help:"Key under which a repeat of this command does nothing new, for 24 hours." placeholder:"KEY"`
}

func (o onceFlag) once() client.Option { return client.WithIdempotencyKey(o.IdempotencyKey) }

type proposalSubmitCmd struct {
	serverFlags  `embed:""`
	onceFlag     `embed:""`
	quietFlag    `embed:""`
	Title        string `help:"One line that says what it is about." placeholder:"TEXT"`
	Category     string `help:"reliability, performance, security, process, feature or documentation." placeholder:"CATEGORY"`
	Problem      string `help:"What is wrong; @FILE reads a file, @- stdin." placeholder:"TEXT"`
	SuggestedFix string `help:"What to do about it; @FILE reads a file, @- stdin." aliases:"fix" placeholder:"TEXT"`
	Priority     string `help:"low, normal (default) or high." placeholder:"PRIORITY"`
	Draft        bool   `help:"Keep it as a draft, seen by you and by admins only."`
	File         string `help:"Read the proposal as a JSON object from a file, or from stdin with -, instead of the flags above." placeholder:"FILE"`
}

// Help is shown by --help.
func (proposalSubmitCmd) Help() string {
	return examples(
		"parley proposal submit --title 'Retry the deploy step' --category reliability --problem 'It fails on a busy registry.' --suggested-fix @fix.md",
		"echo '{\"title\":\"…\",\"category\":\"process\",\"problem\":\"…\",\"suggested_fix\":\"…\"}' | parley proposal submit --file -",
		"parley proposal submit --file proposal.json --idempotency-key friction-4711 --json",
	)
}

func given[T ~string](s T) *T {
	if s == "" {
		return nil
	}
	return &s
}

func (c *proposalSubmitCmd) Run(e *env) error {
	submission, opts, err := c.submission(e)
	if err != nil {
		return err
	}
	return c.record(e, c.Quiet, func(api *client.Client, raw client.Option) (*client.Proposal, error) {
		return api.Proposals.Submit(e.ctx, submission, append(opts, c.once(), raw)...)
	})
}

// submission is what the flags say, or an option that sends the file as it is.
func (c *proposalSubmitCmd) submission(e *env) (s client.ProposalSubmission, _ []client.Option, err error) {
	if c.File != "" {
		if c.Title+c.Category+c.Problem+c.SuggestedFix+c.Priority != "" || c.Draft {
			return s, nil, usage("--file holds the whole proposal; leave out the flags for its fields")
		}
		body, err := e.readObject(c.File)
		return s, []client.Option{client.WithBody(json.RawMessage(body))}, err
	}
	var missing []string
	for _, f := range []struct{ flag, value string }{
		{"--title", c.Title}, {"--category", c.Category}, {"--problem", c.Problem}, {"--suggested-fix", c.SuggestedFix},
	} {
		if f.value == "" {
			missing = append(missing, f.flag)
		}
	}
	if len(missing) > 0 {
		return s, nil, usage("missing %s; or give the proposal as JSON with --file", strings.Join(missing, ", "))
	}
	s = client.ProposalSubmission{Title: c.Title, Category: client.Category(c.Category), Priority: client.Priority(c.Priority)}
	if c.Draft {
		s.Status = client.ProposalDraft
	}
	s.Problem, s.SuggestedFix, err = e.texts(c.Problem, c.SuggestedFix)
	return s, nil, err
}

// texts reads the long fields, which may name files.
func (e *env) texts(problem, fix string) (string, string, error) {
	if problem == "@-" && fix == "@-" {
		return "", "", usage("stdin can be read once only; give one of --problem and --suggested-fix another way")
	}
	problem, err := e.readText(problem)
	if err != nil {
		return "", "", err
	}
	fix, err = e.readText(fix)
	return problem, fix, err
}

// readObject reads a JSON object that is sent as it is.
func (e *env) readObject(name string) ([]byte, error) {
	data, err := e.readInput(name)
	if err != nil {
		return nil, err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil || object == nil {
		return nil, usage("%s must hold one JSON object", name)
	}
	return data, nil
}

type proposalEditCmd struct {
	serverFlags  `embed:""`
	onceFlag     `embed:""`
	ID           string `arg:"" help:"Id of the proposal."`
	Title        string `help:"New title." placeholder:"TEXT"`
	Category     string `help:"New category." placeholder:"CATEGORY"`
	Problem      string `help:"New problem; @FILE reads a file, @- stdin." placeholder:"TEXT"`
	SuggestedFix string `help:"New suggested fix; @FILE reads a file, @- stdin." aliases:"fix" placeholder:"TEXT"`
	Priority     string `help:"New priority." placeholder:"PRIORITY"`
}

// Help is shown by --help.
func (proposalEditCmd) Help() string {
	return examples("parley proposal edit prop-01k… --priority high", "parley proposal edit prop-01k… --suggested-fix @fix.md")
}

func (c *proposalEditCmd) Run(e *env) error {
	if c.Title+c.Category+c.Problem+c.SuggestedFix+c.Priority == "" {
		return usage("nothing to change: give at least one of --title, --category, --problem, --suggested-fix, --priority")
	}
	problem, fix, err := e.texts(c.Problem, c.SuggestedFix)
	if err != nil {
		return err
	}
	change := client.ProposalPatch{Title: given(c.Title), Category: given(client.Category(c.Category)), Priority: given(client.Priority(c.Priority))}
	if c.Problem != "" {
		change.Problem = &problem
	}
	if c.SuggestedFix != "" {
		change.SuggestedFix = &fix
	}
	return c.record(e, false, func(api *client.Client, raw client.Option) (*client.Proposal, error) {
		return api.Proposals.Update(e.ctx, c.ID, change, c.once(), raw)
	})
}
