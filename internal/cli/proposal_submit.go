package cli

import (
	"encoding/json"
	"net/http"
	"strings"
)

// onceFlag lets a script repeat a command without doing it twice. Without it each
// run of the command makes a key of its own, for its own retries.
type onceFlag struct {
	IdempotencyKey string `help:"Key under which a repeat of this command does nothing new, for 24 hours." placeholder:"KEY"`
}

func (o onceFlag) once() string {
	if o.IdempotencyKey != "" {
		return o.IdempotencyKey
	}
	return newOnce()
}

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

// draft is the body of submit and edit; what was not given is left out.
type draft struct {
	Title        *string `json:"title,omitempty"`
	Category     *string `json:"category,omitempty"`
	Problem      *string `json:"problem,omitempty"`
	SuggestedFix *string `json:"suggested_fix,omitempty"`
	Priority     *string `json:"priority,omitempty"`
	Status       *string `json:"status,omitempty"`
}

func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (c *proposalSubmitCmd) Run(e *env) error {
	body, err := c.body(e)
	if err != nil {
		return err
	}
	return c.recordOrID(e, call{method: http.MethodPost, path: "/proposals", body: body, once: c.once()}, c.Quiet)
}

func (c *proposalSubmitCmd) body(e *env) ([]byte, error) {
	if c.File != "" {
		if c.Title+c.Category+c.Problem+c.SuggestedFix+c.Priority != "" || c.Draft {
			return nil, usage("--file holds the whole proposal; leave out the flags for its fields")
		}
		return e.readObject(c.File)
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
		return nil, usage("missing %s; or give the proposal as JSON with --file", strings.Join(missing, ", "))
	}
	d := draft{Title: &c.Title, Category: &c.Category, Priority: given(c.Priority)}
	if c.Draft {
		d.Status = given("draft")
	}
	if err := d.texts(e, c.Problem, c.SuggestedFix); err != nil {
		return nil, err
	}
	return json.Marshal(d)
}

// texts sets the long fields, which may name files.
func (d *draft) texts(e *env, problem, fix string) error {
	if problem == "@-" && fix == "@-" {
		return usage("stdin can be read once only; give one of --problem and --suggested-fix another way")
	}
	for _, f := range []struct {
		value string
		into  **string
	}{{problem, &d.Problem}, {fix, &d.SuggestedFix}} {
		if f.value == "" {
			continue
		}
		text, err := e.readText(f.value)
		if err != nil {
			return err
		}
		*f.into = &text
	}
	return nil
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
	d := draft{Title: given(c.Title), Category: given(c.Category), Priority: given(c.Priority)}
	if err := d.texts(e, c.Problem, c.SuggestedFix); err != nil {
		return err
	}
	return c.record(e, call{method: http.MethodPatch, path: proposalPath(c.ID), send: d, once: c.once()})
}
