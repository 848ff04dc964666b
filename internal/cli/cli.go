// Package cli is the command line: it reads arguments, calls package app or a
// running server, and prints what came back.
//
// Two sorts of commands exist. Those of the operator (serve, migrate, org, user,
// service, key, admin, agent create and list) open the store itself; those of a member
// (proposal, followup, task, login, the other agent commands) and of an admin (member,
// invite, client, audit, and key if a server is named) speak HTTP and know no more than any
// other client. What people read goes through clean, so that stored text
// cannot steer a terminal.
//
// A file has the name of its command. Where a command works both on the store and on a
// running server, the latter is in <command>_remote.go. remote.go is how all of them call a
// server, store_or_remote.go how a command chooses.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/parley-dev/parley/sdk/client"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	// How a task ended that somebody waited for.
	exitTaskFailed  = 3 // failed, rejected or canceled
	exitTaskWaiting = 4 // it needs input, or is not over yet
)

type root struct {
	Serve   serveCmd   `cmd:"" help:"Run the server."`
	Migrate migrateCmd `cmd:"" help:"Bring the store's schema up to date and stop."`
	Version versionCmd `cmd:"" help:"Print the version."`

	Org     orgCmd     `cmd:"" help:"Manage orgs, the tenants (works on the store; the server may be running)." group:"operator"`
	User    userCmd    `cmd:"" help:"Manage the people of an org." group:"operator"`
	Service serviceCmd `cmd:"" help:"Manage external systems that an org gives keys to." group:"operator"`
	Agent   agentCmd   `cmd:"" help:"Manage the agents of an org." group:"operator"`
	Key     keyCmd     `cmd:"" help:"Manage API keys, on the store or on a running server." group:"operator"`
	Admin   adminCmd   `cmd:"" help:"Let people sign in who have no password." group:"operator"`

	Member memberCmd `cmd:"" help:"List, create, disable and enable the principals of your org, on a running server." group:"admin"`
	Invite inviteCmd `cmd:"" help:"Invite people to your org, on a running server." group:"admin"`
	Client clientCmd `cmd:"" help:"Register programs that members of your org may allow to act for them, on a running server." group:"admin"`
	Audit  auditCmd  `cmd:"" help:"Read who did what to keys, members and agents, on a running server." group:"admin"`

	Task     taskCmd     `cmd:"" help:"Send tasks to agents and follow them, on a running server." group:"member"`
	Proposal proposalCmd `cmd:"" help:"List, submit, vote on and resolve proposals on a running server." group:"member"`
	Followup followupCmd `cmd:"" help:"Work on the tasks that approved proposals led to, on a running server." group:"member"`
	Friction frictionCmd `cmd:"" help:"Report what gets in the way, and see what was reported, on a running server." group:"member"`
	Login    loginCmd    `cmd:"" help:"Sign in at a running server, so that commands need no key." group:"member"`
	Logout   logoutCmd   `cmd:"" help:"End your login at a server." group:"member"`
	Whoami   whoamiCmd   `cmd:"" help:"Print whom your key or your login speaks for, and what it may do." group:"member"`
	MCP      mcpCmd      `cmd:"" name:"mcp" help:"Offer the tools of a running server to a local MCP client." group:"member"`
}

// Help is shown by parley --help.
func (root) Help() string {
	return examples(
		"parley serve",
		"parley proposal submit --title 'Retry the deploy step' --category reliability --problem 'It fails on a busy registry.' --fix 'Retry it three times.'",
		"parley proposal list",
		"parley task send echo 'Are you there?' --wait",
	)
}

// env is what a command gets from the program it runs in.
type env struct {
	ctx    context.Context
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	retry  client.Retry // how requests are repeated; the zero value is the usual way
}

// jsonFlag is part of every command.
type jsonFlag struct {
	JSON bool `help:"Print JSON." name:"json"`
}

// exit is how kong's wish to end the program (after --help) reaches Main.
type exit int

// taskEnd is the exit code that tells a script how a task ended. What there is to
// say has been printed.
type taskEnd int

func (t taskEnd) Error() string { return fmt.Sprintf("exit code %d", int(t)) }

// usageError is a mistake in how a command was called.
type usageError struct{ error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Main runs one command and returns the exit code: 0, 2 for a wrong call, 3 and 4
// for a task that did not end well or not yet, 1 for anything else that failed.
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
	k, err := newParser(stdout, stderr)
	if err != nil {
		return report(stderr, err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := k.Parse(args)
	if err != nil {
		return report(stderr, err)
	}
	e := &env{ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr}
	return report(stderr, parsed.Run(e))
}

func newParser(stdout, stderr io.Writer) (*kong.Kong, error) {
	return kong.New(&root{},
		kong.Name("parley"),
		kong.Description("Parley is where the agents and people of an organization propose improvements to their own work, vote on them and decide."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { panic(exit(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.ExplicitGroups([]kong.Group{
			{Key: "operator", Title: "Commands for the operator:"},
			{Key: "admin", Title: "Commands for admins of an org, against a running server:"},
			{Key: "member", Title: "Commands for members, against a running server:"},
			{Key: "store", Title: "Where the data is:"},
			{Key: "server", Title: "Which server:"},
			{Key: "quotas", Title: "Quotas, per org or per principal:"},
		}),
	)
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
		if hint := commandPath(parse.Context); hint != "" {
			msg += "\nRun \"" + hint + " --help\" to see how it is used."
		}
	case errors.As(err, &use):
		code = exitUsage
	}
	fmt.Fprintln(stderr, "parley: "+clean(msg))
	return code
}

func commandPath(ctx *kong.Context) string {
	if ctx == nil {
		return ""
	}
	if n := ctx.Selected(); n != nil {
		return n.FullPath()
	}
	return "parley"
}

// examples renders the end of a command's help. go/doc keeps indented lines as they are.
func examples(lines ...string) string {
	return "Examples:\n\n    " + strings.Join(lines, "\n    ")
}

// readText resolves a text argument: "@FILE" stands for the file's content, "@-"
// for stdin, and "@@" for a leading @.
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

// maxInput is more than any request may have, so that the server is the one that
// says what is too large, while a wrong file does not fill the memory.
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
