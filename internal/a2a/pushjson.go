package a2a

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-dev/parley/internal/task"
)

// appendJSON appends a value of one of this package's types, which can always be encoded. Invalid
// UTF-8 is written with replacement characters.
func appendJSON(b []byte, v any) []byte {
	text, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("a2a: " + err.Error()) // a programming error
	}
	return append(b, text...)
}

// v1Push is a push configuration in version 1.0.
type v1Push struct {
	ID             string      `json:"id"`
	TaskID         string      `json:"taskId"`
	URL            string      `json:"url"`
	Token          string      `json:"token,omitzero"`
	Authentication *v1PushAuth `json:"authentication,omitzero"`
}

type v1PushAuth struct {
	Scheme      string `json:"scheme"`
	Credentials string `json:"credentials"`
}

func v1PushOf(p *task.PushConfig) v1Push {
	out := v1Push{ID: p.ID, TaskID: p.TaskID, URL: p.URL, Token: p.Token}
	if p.Scheme != "" {
		out.Authentication = &v1PushAuth{p.Scheme, p.Credentials}
	}
	return out
}

// v1PushList is the only page of a task's configurations.
type v1PushList struct {
	Configs       []v1Push `json:"configs"`
	NextPageToken string   `json:"nextPageToken"`
}

// v03Push is a push configuration in version 0.3: with its task in JSON-RPC, and with the name of
// the resource in HTTP+JSON.
type v03Push struct {
	Name   string        `json:"name,omitzero"`
	TaskID string        `json:"taskId,omitzero"`
	Config v03PushConfig `json:"pushNotificationConfig"`
}

type v03PushConfig struct {
	ID             string       `json:"id"`
	URL            string       `json:"url"`
	Token          string       `json:"token,omitzero"`
	Authentication *v03PushAuth `json:"authentication,omitzero"`
}

type v03PushAuth struct {
	Schemes     []string `json:"schemes"`
	Credentials *string  `json:"credentials,omitzero"`
}

func v03PushOf(p *task.PushConfig) v03Push {
	return v03Push{TaskID: p.TaskID, Config: v03ConfigOf(p)}
}

func v03ProtoPushOf(p *task.PushConfig) v03Push {
	out := v03Push{Name: "tasks/" + p.TaskID + "/pushNotificationConfigs/" + p.ID, Config: v03ConfigOf(p)}
	if auth := out.Config.Authentication; auth != nil && p.Credentials == "" {
		auth.Credentials = nil // ProtoJSON omits empty values
	}
	return out
}

func v03ConfigOf(p *task.PushConfig) v03PushConfig {
	out := v03PushConfig{ID: p.ID, URL: p.URL, Token: p.Token}
	if p.Scheme != "" {
		out.Authentication = &v03PushAuth{[]string{p.Scheme}, &p.Credentials}
	}
	return out
}

// v03ProtoPushList is a list in HTTP+JSON.
type v03ProtoPushList struct {
	Configs []v03Push `json:"configs"`
}

// each converts a list. An empty list stays a list.
func each[T any](list []task.PushConfig, of func(*task.PushConfig) T) []T {
	out := make([]T, len(list))
	for i := range list {
		out[i] = of(&list[i])
	}
	return out
}
