package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/parley-dev/parley/internal/app"
)

type helpCmd struct {
	jsonFlag `embed:""`
	Command  []string `arg:"" optional:"" help:"Command to explain; an overview if not given."`
}

// Help is shown by --help.
func (helpCmd) Help() string { return examples("parley help", "parley help proposal submit") }

func (c *helpCmd) Run(e *env) error {
	var text bytes.Buffer
	name := ""
	if len(c.Command) > 0 {
		name = c.Command[0]
	}
	k, err := newParser(&text, e.stderr, only(name))
	if err != nil {
		return err
	}
	node := k.Model.Node
	for _, name := range c.Command {
		if node = child(node, name); node == nil {
			return usage("unknown command %q; run \"parley help\"", strings.Join(c.Command, " "))
		}
	}
	if err := printHelp(k, c.Command); err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(object{"command", node.FullPath(), "help", text.String()})
	}
	_, err = e.stdout.Write(text.Bytes())
	return err
}

// printHelp has kong print the help of a command, after which kong wants to exit.
func printHelp(k *kong.Kong, command []string) (err error) {
	defer func() {
		if r := recover(); r != nil && r != exit(exitOK) {
			panic(r)
		}
	}()
	_, err = k.Parse(append(append([]string{}, command...), "--help"))
	return errors.Join(err, errors.New("the help was not printed"))
}

// child returns the subcommand with a name, or nil.
func child(n *kong.Node, name string) *kong.Node {
	for _, c := range n.Children {
		if c.Name == name && !c.Hidden {
			return c
		}
	}
	return nil
}

type versionCmd struct {
	jsonFlag `embed:""`
}

// Help is shown by --help.
func (versionCmd) Help() string {
	return examples("parley version", "parley --version", "parley version --json")
}

func (c *versionCmd) Run(e *env) error {
	if c.JSON {
		return e.printJSON(map[string]string{"version": app.Version()})
	}
	_, err := fmt.Fprintln(e.stdout, "parley "+app.Version())
	return err
}
