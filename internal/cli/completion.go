package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completeCommand is what the completion scripts call with the words of the command line;
// the last one is to be completed. It prints one candidate a line.
const completeCommand = "__complete"

type completionCmd struct {
	jsonFlag `embed:""`
	Shell    string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is shown by --help.
func (completionCmd) Help() string {
	return "Load the script in the startup file of your shell.\n\n" + examples(
		`echo 'source <(parley completion bash)' >> ~/.bashrc`,
		`parley completion zsh > "${fpath[1]}/_parley"`,
		"parley completion fish > ~/.config/fish/completions/parley.fish",
	)
}

func (c *completionCmd) Run(e *env) error {
	script := completionScripts[c.Shell]
	if c.JSON {
		return e.printJSON(object{"shell", c.Shell, "script", script})
	}
	_, err := io.WriteString(e.stdout, script)
	return err
}

var completionScripts = map[string]string{
	"bash": `_parley() {
  local IFS=$'\n'
  COMPREPLY=($("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _parley parley
`,
	"zsh": `#compdef parley
_parley() {
  local -a candidates
  candidates=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  compadd -- $candidates
}
compdef _parley parley
# In a folder of $fpath, the first use loads this file as the function.
if [ "$funcstack[1]" = _parley ]; then _parley "$@"; fi
`,
	"fish": `complete -c parley -f -a '(parley __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`,
}

// complete prints what the last word may become.
func complete(root *kong.Node, words []string, w io.Writer) error {
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	node, flag := walk(root, words[:len(words)-1])
	var found []string
	switch {
	case flag != nil:
		found = values(flag.Value)
	case strings.HasPrefix(last, "-"):
		found = flagsOf(node)
	default:
		for _, c := range node.Children {
			if !c.Hidden {
				found = append(found, c.Name)
			}
		}
		for _, p := range node.Positional {
			found = append(found, values(p)...)
		}
	}
	for _, s := range found {
		if strings.HasPrefix(s, last) {
			if _, err := fmt.Fprintln(w, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// walk follows complete words to the command they name. It returns the flag too if the
// last of them is one that still needs its value.
func walk(root *kong.Node, words []string) (node *kong.Node, pending *kong.Flag) {
	node = root
	for _, word := range words {
		switch {
		case pending != nil: // the word is its value
			pending = nil
		case strings.HasPrefix(word, "-"):
			pending = takesValue(node, word)
		case node == root && word == "help": // complete the commands after it
		default:
			if c := child(node, word); c != nil {
				node = c
			}
		}
	}
	return node, pending
}

// takesValue returns the flag if the next word is its value.
func takesValue(n *kong.Node, word string) *kong.Flag {
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			if (word == "--"+f.Name || word == "-"+string(f.Short)) && !f.IsBool() {
				return f
			}
		}
	}
	return nil
}

func flagsOf(n *kong.Node) (out []string) {
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			out = append(out, "--"+f.Name)
		}
	}
	slices.Sort(out)
	return out
}

// values lists what a flag or an argument accepts, if that is a short list.
func values(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return strings.Split(v.Enum, ",")
}
