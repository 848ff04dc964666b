// Package cli is the command line. It parses arguments, calls a server through sdk/client
// or opens a store through package app, and prints the result.
//
// target.go holds the one rule for what a command works on. Most commands work on a
// server. Those that create and list agents, users, services and keys also work on a store
// that --data or --database names, and those of the operator (serve, migrate, backup,
// restore, check, secrets, org, admin, agent release) on a store only. A file has the name of its command.
//
// The package knows no SQL and no routes. Text that is printed goes through clean, so that
// stored text cannot control a terminal.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/parley-dev/parley/sdk/client"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	// How a task ended that a command waited for.
	exitTaskFailed  = 3 // failed, rejected or canceled
	exitTaskWaiting = 4 // it needs input, or is not over yet
	exitInterrupted = 130
)

type root struct {
	Proposal proposalCmd `cmd:"" help:"Submit, list, vote on and decide proposals." group:"work"`
	Followup followupCmd `cmd:"" help:"Work on the follow-ups of approved proposals." group:"work"`
	Friction frictionCmd `cmd:"" help:"Report what gets in the way; enough reports file a proposal." group:"work"`
	Task     taskCmd     `cmd:"" help:"Send tasks to agents and follow them." group:"work"`
	Events   eventsCmd   `cmd:"" help:"Print what happens in the org, and follow it." group:"work"`

	Login  loginCmd  `cmd:"" help:"Sign in at a server, so that commands need no key." group:"login"`
	Logout logoutCmd `cmd:"" help:"End your login at a server." group:"login"`
	Whoami whoamiCmd `cmd:"" help:"Show which principal your key or login acts as, and what it may do." group:"login"`

	Agent   agentCmd   `cmd:"" help:"Register, list and change agents." group:"manage"`
	User    userCmd    `cmd:"" help:"Create, list, promote and demote users." group:"manage"`
	Service serviceCmd `cmd:"" help:"Create and list services: external systems that hold keys." group:"manage"`
	Key     keyCmd     `cmd:"" help:"Create, list, rotate and revoke API keys." group:"manage"`
	Member  memberCmd  `cmd:"" help:"List, disable, enable and erase users, agents and services." group:"manage"`
	Invite  inviteCmd  `cmd:"" help:"Invite people to an org." group:"manage"`
	Client  clientCmd  `cmd:"" help:"Register OAuth clients: programs that act for members." group:"manage"`
	Webhook webhookCmd `cmd:"" help:"Send the events of an org to URLs." group:"manage"`
	Audit   auditCmd   `cmd:"" help:"Show who did what to keys, members and agents." group:"manage"`

	Serve   serveCmd   `cmd:"" help:"Run the server." group:"operator"`
	Migrate migrateCmd `cmd:"" help:"Bring the store's schema up to date and stop." group:"operator"`
	Backup  backupCmd  `cmd:"" help:"Write all data of a store to a file, while servers use it." group:"operator"`
	Restore restoreCmd `cmd:"" help:"Fill an empty store from a back-up, also of the other engine." group:"operator"`
	Check   checkCmd   `cmd:"" help:"Look for damage in a store, while servers use it." group:"operator"`
	Compact compactCmd `cmd:"" help:"Give the space of deleted rows back, while servers use the store." group:"operator"`
	Secrets secretsCmd `cmd:"" help:"Encrypt the secrets in a store under a new key, and show what is encrypted." group:"operator"`
	Doctor  doctorCmd  `cmd:"" help:"Check the settings and the surroundings of a server, and say what to do." group:"operator"`
	Org     orgCmd     `cmd:"" help:"Create, list, move and delete orgs, the tenants of a store." group:"operator"`
	Admin   adminCmd   `cmd:"" help:"Make a link with which a user sets a password." group:"operator"`

	Health     healthCmd     `cmd:"" help:"Ask a server whether it is ready; exit code 1 if not." group:"more"`
	MCP        mcpCmd        `cmd:"" name:"mcp" help:"Offer the tools of a server to a local MCP client." group:"more"`
	Completion completionCmd `cmd:"" help:"Print a completion script for bash, zsh or fish." group:"more"`
	Explain    helpCmd       `cmd:"" name:"help" help:"Show the help of a command." group:"more"`
	Version    versionCmd    `cmd:"" help:"Print the version; also --version." group:"more"`
}

// Help is shown by parley --help.
func (root) Help() string {
	return "Commands work on a server: --server, PARLEY_SERVER, that of your latest login, or http://127.0.0.1:8080 " +
		"if you give a key or have no login. " +
		"These also work on a store, if --data or --database names one: agent create|list, user, service, " +
		"member erase, and key create|list|revoke.\n\n" +
		examples(
			"parley serve",
			"parley proposal submit --title 'Retry the deploy step' --category reliability "+
				"--problem 'It fails on a busy registry.' --fix 'Retry it three times.'",
			"parley proposal list",
			"parley task send echo 'Are you there?' --wait",
		) + "\n\nThe words that Parley uses: https://github.com/parley-dev/parley/blob/main/docs/glossary.md"
}

// env is what a command gets from the program it runs in.
type env struct {
	ctx     context.Context
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	kong    *kong.Context // the parsed command line
	retry   client.Retry  // how requests are repeated; the zero value is the default
	columns int           // width of the terminal in tests; 0: find out
	sending bool          // a task is being sent, and the server has not responded yet
	lost    error         // why the last request was repeated
}

// jsonFlag is part of every command.
type jsonFlag struct {
	JSON bool `help:"Print JSON." name:"json"`
}

// exit carries kong's request to end the program (after --help) to Main.
type exit int

// taskEnd is the exit code that tells a script how a task ended. The command has printed
// the rest.
type taskEnd int

func (t taskEnd) Error() string { return fmt.Sprintf("exit code %d", int(t)) }

// usageError is a mistake in how a command was called.
type usageError struct{ error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Main runs one command and returns the exit code: 0, 2 for a wrong call, 3 and 4 for a
// task that did not complete or is not over, 130 after Ctrl-C, 1 for any other failure.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case exit:
			code = int(r)
		default:
			panic(r)
		}
	}()
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "--version":
		args = append([]string{"version"}, args[1:]...)
	}
	k, err := newParser(stdout, stderr, only(args[0]))
	if err != nil {
		return report(stderr, err)
	}
	if args[0] == completeCommand {
		return report(stderr, complete(k.Model.Node, args[1:], stdout))
	}
	for _, arg := range args {
		if !utf8.ValidString(arg) {
			return report(stderr, usage("the argument %q is not valid UTF-8", arg))
		}
	}
	parsed, err := k.Parse(args)
	if err != nil {
		return report(stderr, err)
	}
	if err := checkEmpty(parsed); err != nil {
		return report(stderr, err)
	}
	e := &env{ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr, kong: parsed}
	err = parsed.Run(e)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		fmt.Fprintln(stderr, "parley: interrupted")
		return exitInterrupted
	}
	return report(stderr, err)
}

// checkEmpty refuses empty values that would silently mean something else, such as those of
// unset shell variables.
func checkEmpty(k *kong.Context) error {
	for _, p := range k.Path {
		switch {
		case p.Flag != nil && !p.Resolved && slices.Contains([]string{"server", "org", "data", "database"}, p.Flag.Name):
			if s, ok := k.FlagValue(p.Flag).(string); ok && s == "" {
				return usage("--%s must not be empty; leave it out, or name one", p.Flag.Name)
			}
		case p.Positional != nil && p.Positional.Name != "text":
			if p.Positional.Target.Kind() == reflect.String && p.Positional.Target.String() == "" {
				return usage("%s must not be empty", strings.ToUpper(p.Positional.Name))
			}
		}
	}
	return nil
}

// report prints an error, if there is one, and chooses the exit code.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	var parse *kong.ParseError
	var use usageError
	var end taskEnd
	if errors.As(err, &end) {
		return int(end)
	}
	code := exitFailed
	msg := err.Error()
	switch {
	case errors.As(err, &parse):
		code = exitUsage
		msg = explainParse(selected(parse.Context), msg)
	case errors.As(err, &use):
		code = exitUsage
	}
	fmt.Fprintln(stderr, "parley: "+clean(msg))
	return code
}

// explainParse says what is wrong with a command line, and where to read on.
func explainParse(n *kong.Node, msg string) string {
	if n == nil {
		return msg
	}
	if arg, ok := strings.CutPrefix(msg, "unexpected argument "); ok && !n.Leaf() {
		name, similar, found := strings.Cut(arg, ", did you mean ")
		path := strings.TrimSpace(n.Path() + " " + name)
		if found {
			return fmt.Sprintf("unknown command %q; did you mean %s", path, similar)
		}
		return fmt.Sprintf("unknown command %q; run %q", path, strings.TrimSpace("parley help "+n.Path()))
	}
	if why := otherTarget(n, msg); why != "" {
		msg = why
	}
	return msg + fmt.Sprintf("\nRun %q to see how it is used.", n.FullPath()+" --help")
}

// selected returns the command that was chosen before parsing failed.
func selected(ctx *kong.Context) *kong.Node {
	if ctx == nil {
		return nil
	}
	if n := ctx.Selected(); n != nil {
		return n
	}
	return ctx.Model.Node
}

// examples renders the end of a command's help. go/doc keeps indented lines as they are.
func examples(lines ...string) string {
	return "Examples:\n\n    " + strings.Join(lines, "\n    ")
}

// readText resolves a text argument: "@FILE" stands for the file's content, "@-" for
// stdin, and "@@" for a leading @.
func (e *env) readText(s string) (string, error) {
	rest, ok := strings.CutPrefix(s, "@")
	if !ok {
		return s, nil
	}
	if strings.HasPrefix(rest, "@") {
		return rest, nil
	}
	data, err := e.readInput(rest)
	return string(data), err
}

// textFlag is a flag whose value readText resolves in place.
type textFlag struct {
	name  string
	value *string
}

// readTexts resolves the values of text flags. Only one of them can read stdin.
func (e *env) readTexts(flags ...textFlag) error {
	stdin := ""
	for _, f := range flags {
		if *f.value == "@-" {
			if stdin != "" {
				return usage("stdin can be read only once; give one of %s and %s another way", stdin, f.name)
			}
			stdin = f.name
		}
	}
	for _, f := range flags {
		text, err := e.readText(*f.value)
		if err != nil {
			return err
		}
		*f.value = text
	}
	return nil
}

// notGiven lists the names of the flags that are empty.
func notGiven(flags ...textFlag) string {
	var names []string
	for _, f := range flags {
		if *f.value == "" {
			names = append(names, f.name)
		}
	}
	return strings.Join(names, ", ")
}

// maxInput is larger than any request may be, so that the server refuses what is too
// large. It keeps a wrong file from filling the memory.
const maxInput = 1 << 20

func (e *env) readInput(name string) ([]byte, error) {
	in := e.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, usageError{err}
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxInput {
		return nil, usage("%s is larger than %d bytes", name, maxInput)
	}
	return data, nil
}
