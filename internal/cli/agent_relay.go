package cli

import (
	"strings"

	"github.com/parley-dev/parley/sdk/client"
)

// relayFlags make an agent a relay, or change where it relays to.
type relayFlags struct {
	Relay      string `help:"URL of the remote A2A agent that does the work, or of its card." placeholder:"URL"`
	Credential string `help:"${credential}." placeholder:"TYPE:…"`
}

const credentialHelp = "What the remote agent of a relay demands: bearer:TOKEN, header:NAME:VALUE, " +
	"oauth:TOKEN_URL,CLIENT_ID,SECRET[,SCOPE…], or none; @FILE reads it from a file, - from stdin"

// relays reports whether a flag is set.
func (f *relayFlags) relays() bool { return f.Relay != "" || f.Credential != "" }

// relay adds the flags to the body of a request.
func (f *relayFlags) relay(e *env, out map[string]any) error {
	if !f.relays() {
		return nil
	}
	relay := map[string]any{}
	if f.Relay != "" {
		relay["url"] = f.Relay
	}
	if f.Credential != "" {
		text := f.Credential
		if text == "-" {
			text = "@-"
		}
		text, err := e.readText(text)
		if err != nil {
			return err
		}
		if relay["credential"], err = parseCredential(strings.TrimSpace(text)); err != nil {
			return err
		}
	}
	out["relay"] = relay
	return nil
}

// parseCredential parses the value of --credential. It never repeats it, because it is a secret.
func parseCredential(s string) (any, error) {
	kind, rest, _ := strings.Cut(s, ":")
	switch kind {
	case "none":
		return nil, nil
	case "bearer":
		if rest != "" {
			return map[string]any{"type": kind, "token": rest}, nil
		}
	case "header":
		if name, value, ok := strings.Cut(rest, ":"); ok {
			return map[string]any{"type": kind, "name": name, "value": strings.TrimSpace(value)}, nil
		}
	case "oauth":
		if parts := strings.Split(rest, ","); len(parts) >= 3 {
			return map[string]any{
				"type": kind, "token_url": parts[0], "client_id": parts[1], "client_secret": parts[2], "scopes": parts[3:],
			}, nil
		}
	}
	return nil, usage("--credential must be bearer:TOKEN, header:NAME:VALUE, oauth:TOKEN_URL,CLIENT_ID,SECRET[,SCOPE…] or none")
}

// relay adds the remote agent to the printed record of an agent.
func (r *record) relay(a *client.Agent) {
	if a.Relay == nil {
		return
	}
	health := a.Relay.Health
	if a.Relay.Problem != "" {
		health += ": " + a.Relay.Problem
	}
	r.field("relay", cleanLine(a.Relay.URL))
	r.field("remote", cleanLine(a.Relay.Remote.Name+" "+a.Relay.Remote.Version+", A2A "+a.Relay.Remote.Protocol+" "+a.Relay.Remote.Binding))
	r.field("health", cleanLine(health))
	if c := a.Relay.Credential; c != nil {
		r.field("credential", cleanLine(c.Type)+", set "+when(c.SetAt)+" UTC")
	}
}

type agentRefreshCmd struct {
	oneAgent `embed:""`
}

// Help is shown by --help.
func (agentRefreshCmd) Help() string {
	return "The server reads the card every five minutes by itself. Needs the scope svc:admin:admin.\n\n" +
		examples("parley agent refresh tariffs")
}

func (c *agentRefreshCmd) Run(e *env) error {
	return c.agent(e, &c.ID, func(api *client.Client, raw client.Option) (*client.Agent, error) {
		return api.Agents.Refresh(e.ctx, c.ID, raw)
	})
}
