package a2a

import (
	"encoding/json"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2apb/v0/pbjson"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/task"
)

var pushes = []task.PushConfig{
	{ID: "p", TaskID: "t", URL: "https://x.example/?a=b&c"},
	{ID: "p", TaskID: "t", URL: "https://x.example", Token: "tok", Scheme: "Bearer", Credentials: "c"},
	{ID: "p", TaskID: "t", URL: "https://x.example", Scheme: "Basic"},
}

// The official SDK's encoder of this form is the reference.
func TestV03ProtoPushIsWhatTheSDKWrites(t *testing.T) {
	t.Parallel()
	for _, p := range pushes {
		sdk := &a2a.PushConfig{ID: p.ID, TaskID: a2a.TaskID(p.TaskID), URL: p.URL, Token: p.Token}
		if p.Scheme != "" {
			sdk.Auth = &a2a.PushAuthInfo{Scheme: p.Scheme, Credentials: p.Credentials}
		}
		text, err := pbjson.ToProtoPushConfigResponse(sdk)
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(appendJSON(nil, v03ProtoPushOf(&p)), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestTheFormsOfPushConfigurations(t *testing.T) {
	t.Parallel()
	want := []string{
		`{"configs":[{"id":"p","taskId":"t","url":"https://x.example/?a=b&c"},` +
			`{"id":"p","taskId":"t","url":"https://x.example","token":"tok",` +
			`"authentication":{"scheme":"Bearer","credentials":"c"}},` +
			`{"id":"p","taskId":"t","url":"https://x.example",` +
			`"authentication":{"scheme":"Basic","credentials":""}}],"nextPageToken":""}`,
		`[{"taskId":"t","pushNotificationConfig":{"id":"p","url":"https://x.example/?a=b&c"}},` +
			`{"taskId":"t","pushNotificationConfig":{"id":"p","url":"https://x.example","token":"tok",` +
			`"authentication":{"schemes":["Bearer"],"credentials":"c"}}},` +
			`{"taskId":"t","pushNotificationConfig":{"id":"p","url":"https://x.example",` +
			`"authentication":{"schemes":["Basic"],"credentials":""}}}]`,
		`{"configs":[]}`,
	}
	for i, v := range []any{
		v1PushList{Configs: each(pushes, v1PushOf)}, each(pushes, v03PushOf), v03ProtoPushList{each(nil, v03ProtoPushOf)},
	} {
		if diff := cmp.Diff(want[i], string(appendJSON(nil, v))); diff != "" {
			t.Error(diff)
		}
	}
}
