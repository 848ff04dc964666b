package trace

import (
	"context"
	"strings"

	oteltrace "go.opentelemetry.io/otel/trace"
)

// Context identifies a span in W3C Trace Context: the values of the headers traceparent and
// tracestate. The zero Context is none.
type Context struct {
	Parent string // traceparent, of version 00
	State  string // tracestate; may be empty
}

const (
	parentLength = 55
	// MaxState limits a tracestate, in bytes. W3C asks for at least this much.
	MaxState = 512
)

// Parse reads the values of the two headers. An invalid traceparent is ignored, and an invalid
// tracestate is ignored alone. A long tracestate loses its last members.
func Parse(parent, state []string) Context {
	if len(parent) != 1 {
		return Context{}
	}
	c := Context{Parent: normalize(parent[0])}
	if c.Parent != "" && len(state) > 0 {
		c.State = parseState(state)
	}
	return c
}

// normalize returns a valid traceparent in version 00, or "". Later versions may have more fields,
// which are dropped.
func normalize(s string) string {
	if len(s) < parentLength || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return ""
	}
	version, id, span, flags := s[:2], s[3:35], s[36:52], s[53:55]
	if !lowerHex(version) || !lowerHex(id) || !lowerHex(span) || !lowerHex(flags) || version == "ff" ||
		strings.Trim(id, "0") == "" || strings.Trim(span, "0") == "" {
		return ""
	}
	switch {
	case version == "00":
		if len(s) != parentLength {
			return ""
		}
		return s
	case len(s) > parentLength && s[parentLength] != '-':
		return ""
	}
	sampled := "-00"
	if strings.IndexByte("13579bdf", flags[1]) >= 0 { // the only flag that later versions must keep
		sampled = "-01"
	}
	return "00" + s[2:52] + sampled
}

func lowerHex(s string) bool {
	for i := range len(s) {
		if (s[i] < '0' || s[i] > '9') && (s[i] < 'a' || s[i] > 'f') {
			return false
		}
	}
	return true
}

// parseState returns a valid tracestate of at most MaxState bytes, or "".
func parseState(lines []string) string {
	s := lines[0]
	if len(lines) > 1 {
		s = strings.Join(lines, ",")
	}
	for len(s) > MaxState {
		i := strings.LastIndexByte(s[:MaxState+1], ',')
		if i < 0 {
			return ""
		}
		s = s[:i]
	}
	state, err := oteltrace.ParseTraceState(s)
	if err != nil {
		return ""
	}
	if s = state.String(); len(s) > MaxState {
		return ""
	}
	return s
}

// String returns the form in which a Context is stored; see FromString.
func (c Context) String() string {
	if c.State == "" {
		return c.Parent
	}
	return c.Parent + " " + c.State
}

// FromString reverses String.
func FromString(s string) Context {
	parent, state, _ := strings.Cut(s, " ")
	return Context{parent, state}
}

// Key is the key under which a context.Context keeps the *Context that a request came with.
type Key struct{}

// From returns the span of ctx or, if this server exports no spans, the one that the request came
// with.
func From(ctx context.Context) Context {
	if sc := oteltrace.SpanContextFromContext(ctx); sc.IsValid() {
		return contextOf(sc)
	}
	if c, _ := ctx.Value(Key{}).(*Context); c != nil {
		return *c
	}
	return Context{}
}

func contextOf(sc oteltrace.SpanContext) Context {
	if !sc.IsValid() {
		return Context{}
	}
	flags := "-00"
	if sc.IsSampled() {
		flags = "-01"
	}
	c := Context{Parent: "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + flags}
	if sc.TraceState().Len() > 0 {
		c.State = sc.TraceState().String()
	}
	return c
}

// remote returns the span as the parent of another.
func (c Context) remote() oteltrace.SpanContext {
	if normalize(c.Parent) == "" {
		return oteltrace.SpanContext{}
	}
	var o oteltrace.SpanContextConfig
	o.TraceID, _ = oteltrace.TraceIDFromHex(c.Parent[3:35]) // normalize has checked them
	o.SpanID, _ = oteltrace.SpanIDFromHex(c.Parent[36:52])
	if strings.IndexByte("13579bdf", c.Parent[54]) >= 0 {
		o.TraceFlags = oteltrace.FlagsSampled
	}
	o.TraceState, _ = oteltrace.ParseTraceState(c.State)
	o.Remote = true
	return oteltrace.NewSpanContext(o)
}
