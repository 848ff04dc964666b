package telemetry

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// Nothing is exported unless a variable asks for it, and a value that the SDK would ignore is an
// error at the start.
func TestRead(t *testing.T) {
	t.Parallel()
	const endpoint, traces = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	at := func(more ...string) []string { return append([]string{endpoint, "http://127.0.0.1:4318"}, more...) }
	for name, c := range map[string]struct {
		env  []string // names and values
		want settings
		fail string
	}{
		"nothing":              {},
		"only a service name":  {env: []string{"OTEL_SERVICE_NAME", "x"}},
		"only a protocol":      {env: []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "nonsense"}},
		"an endpoint":          {env: at(), want: settings{on: true}},
		"an endpoint, traces":  {env: []string{traces, "https://c/x"}, want: settings{on: true}},
		"otlp":                 {env: []string{"OTEL_TRACES_EXPORTER", "otlp"}, want: settings{on: true}},
		"none":                 {env: at("OTEL_TRACES_EXPORTER", "none")},
		"disabled":             {env: at("OTEL_SDK_DISABLED", "TRUE")},
		"not disabled":         {env: at("OTEL_SDK_DISABLED", "false"), want: settings{on: true}},
		"grpc":                 {env: at("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), want: settings{on: true, grpc: true}},
		"grpc for traces":      {env: at("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"), want: settings{on: true, grpc: true}},
		"a sampler":            {env: at("OTEL_TRACES_SAMPLER", "traceidratio", "OTEL_TRACES_SAMPLER_ARG", "0.25"), want: settings{on: true}},
		"zipkin":               {env: []string{"OTEL_TRACES_EXPORTER", "zipkin"}, fail: `OTEL_TRACES_EXPORTER must be otlp or none; it is "zipkin"`},
		"http/json":            {env: at("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"), fail: "OTEL_EXPORTER_OTLP_PROTOCOL must be"},
		"no URL":               {env: []string{endpoint, "collector:4318"}, fail: endpoint + " must be a URL"},
		"no URL for traces":    {env: at(traces, "ftp://x"), fail: traces + " must be a URL"},
		"a bad timeout":        {env: at("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"), fail: "OTEL_EXPORTER_OTLP_TIMEOUT must be"},
		"a bad compression":    {env: at("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"), fail: "must be gzip or none"},
		"bad headers":          {env: at("OTEL_EXPORTER_OTLP_HEADERS", "secret"), fail: "OTEL_EXPORTER_OTLP_HEADERS must be a list"},
		"bad attributes":       {env: at("OTEL_RESOURCE_ATTRIBUTES", "a=1,b"), fail: "OTEL_RESOURCE_ATTRIBUTES must be a list"},
		"an unknown sampler":   {env: at("OTEL_TRACES_SAMPLER", "jaeger_remote"), fail: "OTEL_TRACES_SAMPLER must be one of"},
		"a bad ratio":          {env: at("OTEL_TRACES_SAMPLER", "traceidratio", "OTEL_TRACES_SAMPLER_ARG", "2"), fail: "OTEL_TRACES_SAMPLER_ARG must be"},
		"a missing file":       {env: at("OTEL_EXPORTER_OTLP_CERTIFICATE", "/does/not/exist"), fail: "OTEL_EXPORTER_OTLP_CERTIFICATE: "},
		"a key alone":          {env: at("OTEL_EXPORTER_OTLP_CLIENT_KEY", "x"), fail: "or neither"},
		"a bad queue":          {env: at("OTEL_BSP_MAX_QUEUE_SIZE", "-1"), fail: "OTEL_BSP_MAX_QUEUE_SIZE must be a positive integer"},
		"a secret is not said": {env: []string{endpoint, "user:hunter2@collector"}, fail: "must be a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{}
			for i := 0; i < len(c.env); i += 2 {
				env[c.env[i]] = c.env[i+1]
			}
			got, err := read(func(name string) string { return env[name] })
			switch {
			case c.fail == "" && (err != nil || got.on != c.want.on || got.grpc != c.want.grpc || got.warnings != nil):
				t.Errorf("read = %+v, %v; want %+v", got, err, c.want)
			case c.fail != "" && (err == nil || !strings.Contains(err.Error(), c.fail)):
				t.Errorf("read = %v, want an error with %q", err, c.fail)
			case err != nil && strings.Contains(err.Error(), "hunter2"):
				t.Errorf("the error contains a secret: %v", err)
			}
		})
	}
}

func TestReadWarns(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"OTEL_SDK_DISABLED": "yes", "OTEL_PROPAGATORS": "b3", "OTEL_TRACES_EXPORTER": "otlp",
	}
	got, err := read(func(name string) string { return env[name] })
	if err != nil || !got.on || len(got.warnings) != 2 {
		t.Errorf("read = %+v, %v; want two warnings", got, err)
	}
}

// A collector that cannot be reached costs one line a minute.
func TestReporterLogsOneLineAMinute(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Unix(1_700_000_000, 0)
	r := &reporter{log: slog.New(slog.NewTextHandler(&out, nil)), now: func() time.Time { return now }}
	for range 120 { // two minutes
		r.Handle(errors.New("connection refused"))
		now = now.Add(time.Second)
	}
	if got := strings.Count(out.String(), "\n"); got != 2 {
		t.Errorf("%d lines, want 2:\n%s", got, out.String())
	}
	if !strings.Contains(out.String(), "errors_since_last_line=59") {
		t.Errorf("the second line does not count the errors:\n%s", out.String())
	}
}
