package cli

import (
	"encoding/json"

	"github.com/parley-dev/parley/sdk/client"
)

// onceFlag lets a script repeat a command without carrying it out twice. Without it each
// run of the command has its own key, for its own retries.
type onceFlag struct {
	IdempotencyKey string `help:"Repeats of the command with this key do nothing new, for 24 hours." placeholder:"KEY"`
}

func (o onceFlag) once() client.Option { return client.WithIdempotencyKey(o.IdempotencyKey) }

type proposalSubmitCmd struct {
	serverFlags  `embed:""`
	onceFlag     `embed:""`
	quietFlag    `embed:""`
	Title        string `help:"What it is about, in one line." placeholder:"TEXT"`
	Category     string `help:"reliability, performance, security, process, feature or documentation." placeholder:"CATEGORY"`
	Problem      string `help:"What is wrong; @FILE reads a file, @- stdin." placeholder:"TEXT"`
	SuggestedFix string `help:"What to do about it; @FILE reads a file, @- stdin." aliases:"fix" placeholder:"TEXT"`
	Priority     string `help:"low, normal (default) or high." placeholder:"PRIORITY"`
	Draft        bool   `help:"Keep it as a draft, which only you and admins can see."`
	File         string `help:"JSON file with the whole proposal, instead of the flags above; - reads stdin." placeholder:"FILE"`
}

// Help is shown by --help.
func (proposalSubmitCmd) Help() string {
	return examples(
		"parley proposal submit --title 'Retry the deploy step' --category reliability "+
			"--problem 'It fails on a busy registry.' --suggested-fix @fix.md",
		`echo '{"title":"…","category":"process","problem":"…","suggested_fix":"…"}' | parley proposal submit --file -`,
		"parley proposal submit --file proposal.json --idempotency-key friction-4711 --json",
	)
}

// given returns nil for a flag that was not given.
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
	return c.record(e, c.Quiet, aboutOrg, func(api *client.Client, raw client.Option) (*client.Proposal, error) {
		return api.Proposals.Submit(e.ctx, submission, append(opts, c.once(), raw)...)
	})
}

// submission returns the proposal of the flags, or an option that sends the file as it is.
func (c *proposalSubmitCmd) submission(e *env) (s client.ProposalSubmission, _ []client.Option, err error) {
	if c.File != "" {
		if c.Title+c.Category+c.Problem+c.SuggestedFix+c.Priority != "" || c.Draft {
			return s, nil, usage("--file holds the whole proposal; leave out the flags for its fields")
		}
		body, err := e.readObject(c.File)
		return s, []client.Option{client.WithBody(json.RawMessage(body))}, err
	}
	missing := notGiven(textFlag{"--title", &c.Title}, textFlag{"--category", &c.Category},
		textFlag{"--problem", &c.Problem}, textFlag{"--suggested-fix", &c.SuggestedFix})
	if missing != "" {
		return s, nil, usage("missing %s; or give the proposal as JSON with --file", missing)
	}
	s = client.ProposalSubmission{
		Title: c.Title, Category: client.Category(c.Category), Priority: client.Priority(c.Priority),
	}
	if c.Draft {
		s.Status = client.ProposalDraft
	}
	s.Problem, s.SuggestedFix = c.Problem, c.SuggestedFix
	return s, nil, e.readTexts(textFlag{"--problem", &s.Problem}, textFlag{"--suggested-fix", &s.SuggestedFix})
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
	oneProposal  `embed:""`
	onceFlag     `embed:""`
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
		return usage("nothing to change; give at least one of --title, --category, --problem, --suggested-fix, --priority")
	}
	problem, fix := c.Problem, c.SuggestedFix
	if err := e.readTexts(textFlag{"--problem", &problem}, textFlag{"--suggested-fix", &fix}); err != nil {
		return err
	}
	change := client.ProposalPatch{
		Title: given(c.Title), Category: given(client.Category(c.Category)), Priority: given(client.Priority(c.Priority)),
	}
	if c.Problem != "" {
		change.Problem = &problem
	}
	if c.SuggestedFix != "" {
		change.SuggestedFix = &fix
	}
	return c.record(e, false, c.about(), func(api *client.Client, raw client.Option) (*client.Proposal, error) {
		return api.Proposals.Update(e.ctx, c.ID, change, c.once(), raw)
	})
}
