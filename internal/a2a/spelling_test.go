package a2a

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/task"
)

func TestFieldsHaveTheNamesOfTheParams(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]errs.Path{
		"":                            nil,
		"/id":                         errs.At("id"),
		"/contextId":                  errs.At("context_id"),
		"/message/contextId":          errs.At("message", "context_id"),
		"/message/messageId":          errs.At("message", "id"),
		"/message/referenceTaskIds/1": errs.At("message", "references", 1),
		"/message/extensions/0":       errs.At("message", "extensions", 0),
		"/message/parts/2/mediaType":  errs.At("message", "parts", 2, "media_type"),
		"/message/parts/2/metadata":   errs.At("message", "parts", 2, "metadata"),
		"/metadata":                   errs.At("metadata"),
		"/url":                        errs.At("url"),
		"/authentication/scheme":      errs.At("scheme"),
		"/authentication/credentials": errs.At("credentials"),
		"/status":                     errs.At("state"),
		"/pageSize":                   errs.At("limit"),
		"/pageToken":                  errs.At("cursor"),
		"/configuration/x/id":         errs.At("push", "id"),
		"/configuration/x/token":      errs.At("push", "token"),
		"/configuration/x/url":        errs.At("push", "url"),
		"/configuration/x/authentication/credentials": errs.At("push", "credentials"),
		"/configuration/acceptedOutputModes/3":        errs.At("output_modes", 3),
		"/metadata/parley.dev~1policy/deadline":       errs.At("policy", "deadline"),
	} {
		if got := httpx.Pointer(spell(p, "x")); got != want {
			t.Errorf("%v: got %q, want %q", p, got, want)
		}
	}
}

func TestErrorsOfTheDomainAreSpelledOnce(t *testing.T) {
	t.Parallel()
	refused := errs.InvalidFields(
		errs.Field{Path: errs.At("push", "url"), Message: "is bad"},
		errs.Field{Path: errs.At("context_id"), Message: "too"})
	send := func(form task.PushForm) error {
		p := officialSend{request: dispatch.SendRequest{Push: &task.PushConfig{Form: form}}}
		return p.asSent(refused)
	}
	for name, c := range map[string]struct {
		err  error
		want []string
		says string
	}{
		"1.0": {
			send(task.PushV1),
			[]string{"/configuration/taskPushNotificationConfig/url", "/contextId"},
			"configuration.taskPushNotificationConfig.url is bad; contextId too",
		},
		"0.3": {
			send(task.PushV03),
			[]string{"/configuration/pushNotificationConfig/url", "/contextId"},
			"configuration.pushNotificationConfig.url is bad; contextId too",
		},
		"a page": {
			errs.InvalidFields(errs.Field{Path: errs.At("cursor"), Message: "is not a cursor of this list"}),
			[]string{"/pageToken"},
			"pageToken is not a token of this list; use the nextPageToken of the page before",
		},
		"params": {
			invalid([]errs.Field{mistake("must be a string", "context_id")}),
			[]string{"/context_id"},
			"context_id must be a string",
		},
	} {
		e := errorOf(context.Background(), c.err)
		var got []string
		for _, f := range e.fields {
			got = append(got, httpx.Pointer(f.Path))
		}
		if diff := cmp.Diff(c.want, got); diff != "" || e.message != c.says || e.code != codeInvalidParams {
			t.Errorf("%s: got %d %q, want %d %q\n%s", name, e.code, e.message, codeInvalidParams, c.says, diff)
		}
	}
}
