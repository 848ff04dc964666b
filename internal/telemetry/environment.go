package telemetry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
)

// settings are what this package reads itself. The exporters and the SDK read the other variables,
// and ignore values that they do not understand; so all values are checked here first.
type settings struct {
	on       bool
	grpc     bool // else http/protobuf
	endpoint bool // is set; else the default of the specification
	warnings []string
}

// The names of variables for all signals, before which those for traces alone take precedence.
const (
	forAll    = "OTEL_EXPORTER_OTLP_"
	forTraces = "OTEL_EXPORTER_OTLP_TRACES_"
)

// read checks the standard environment variables. An empty variable is not set. Traces are on if an
// endpoint is set, or if OTEL_TRACES_EXPORTER is otlp.
func read(getenv func(string) string) (s settings, err error) {
	disabled := getenv("OTEL_SDK_DISABLED")
	if strings.EqualFold(disabled, "true") {
		return s, nil
	}
	if disabled != "" && !strings.EqualFold(disabled, "false") {
		s.warn("OTEL_SDK_DISABLED must be true or false; %q counts as false", disabled)
	}
	switch exporter := getenv("OTEL_TRACES_EXPORTER"); exporter {
	case "none":
		return s, nil
	case "otlp":
		s.on = true
	case "":
		_, endpoint := otlp(getenv, "ENDPOINT")
		s.on = endpoint != ""
	default:
		return s, fmt.Errorf("OTEL_TRACES_EXPORTER must be otlp or none; it is %q", exporter)
	}
	if !s.on {
		return s, nil
	}
	_, endpoint := otlp(getenv, "ENDPOINT")
	s.endpoint = endpoint != ""
	switch name, protocol := otlp(getenv, "PROTOCOL"); protocol {
	case "", "http/protobuf":
	case "grpc":
		s.grpc = true
	default:
		return s, fmt.Errorf("%s must be http/protobuf or grpc; it is %q", name, protocol)
	}
	if p := getenv("OTEL_PROPAGATORS"); p != "" && !slices.Contains(strings.Split(p, ","), "tracecontext") {
		s.warn("OTEL_PROPAGATORS is ignored: Parley reads and sends traceparent and tracestate")
	}
	return s, errors.Join(checkExporter(getenv), checkFiles(getenv), checkSampler(getenv), checkNumbers(getenv),
		checkPairs("OTEL_RESOURCE_ATTRIBUTES", getenv("OTEL_RESOURCE_ATTRIBUTES")))
}

func (s *settings) warn(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}

// otlp returns the variable of the exporter that counts: its name and its value.
func otlp(getenv func(string) string, name string) (variable, value string) {
	if v := getenv(forTraces + name); v != "" {
		return forTraces + name, v
	}
	return forAll + name, getenv(forAll + name)
}

// Errors about these do not show the value, which may contain a secret.
func checkExporter(getenv func(string) string) error {
	name, endpoint := otlp(getenv, "ENDPOINT")
	if endpoint != "" {
		u, err := url.Parse(endpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("%s must be a URL, such as http://localhost:4318", name)
		}
	}
	if name, v := otlp(getenv, "COMPRESSION"); v != "" && v != "gzip" && v != "none" {
		return fmt.Errorf("%s must be gzip or none; it is %q", name, v)
	}
	if name, v := otlp(getenv, "TIMEOUT"); v != "" {
		if n, err := strconv.Atoi(v); err != nil || n <= 0 {
			return fmt.Errorf("%s must be a positive number of milliseconds; it is %q", name, v)
		}
	}
	name, headers := otlp(getenv, "HEADERS")
	return checkPairs(name, headers)
}

// checkPairs checks a list of key=value.
func checkPairs(name, list string) error {
	if list == "" {
		return nil
	}
	for pair := range strings.SplitSeq(list, ",") {
		key, value, ok := strings.Cut(pair, "=")
		_, err := url.PathUnescape(value)
		if !ok || strings.TrimSpace(key) == "" || err != nil {
			return fmt.Errorf("%s must be a list such as key1=value1,key2=value2, with percent-encoded values", name)
		}
	}
	return nil
}

// checkFiles loads the certificates once. The exporter would go on without those that it cannot load.
func checkFiles(getenv func(string) string) error {
	if name, file := otlp(getenv, "CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s: the file %s has no certificate in PEM form", name, file)
		}
	}
	name, certificate := otlp(getenv, "CLIENT_CERTIFICATE")
	keyName, key := otlp(getenv, "CLIENT_KEY")
	switch {
	case certificate == "" && key == "":
		return nil
	case certificate == "" || key == "":
		return fmt.Errorf("set both %s and %s, or neither", name, keyName)
	}
	if _, err := tls.LoadX509KeyPair(certificate, key); err != nil {
		return fmt.Errorf("%s and %s: %w", name, keyName, err)
	}
	return nil
}

var samplers = []string{
	"always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off",
	"parentbased_traceidratio",
}

func checkSampler(getenv func(string) string) error {
	sampler, arg := strings.ToLower(strings.TrimSpace(getenv("OTEL_TRACES_SAMPLER"))), getenv("OTEL_TRACES_SAMPLER_ARG")
	if sampler == "" {
		return nil
	}
	if !slices.Contains(samplers, sampler) {
		return fmt.Errorf("OTEL_TRACES_SAMPLER must be one of %s; it is %q", strings.Join(samplers, ", "), sampler)
	}
	if !strings.HasSuffix(sampler, "traceidratio") || arg == "" {
		return nil
	}
	if ratio, err := strconv.ParseFloat(arg, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
		return fmt.Errorf("OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1; it is %q", arg)
	}
	return nil
}

// numbers are the variables of the SDK for the queue of spans.
var numbers = []string{
	"OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_EXPORT_TIMEOUT", "OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
}

func checkNumbers(getenv func(string) string) error {
	for _, name := range numbers {
		if v := getenv(name); v != "" {
			if n, err := strconv.Atoi(v); err != nil || n <= 0 {
				return fmt.Errorf("%s must be a positive integer; it is %q", name, v)
			}
		}
	}
	return nil
}
