package a2a

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/parley-dev/parley/internal/httpx"
)

// codesByStatus maps HTTP statuses to gRPC codes, for errors that A2A has no name for.
var codesByStatus = map[int]codes.Code{
	http.StatusBadRequest:            codes.InvalidArgument,
	http.StatusUnauthorized:          codes.Unauthenticated,
	http.StatusForbidden:             codes.PermissionDenied,
	http.StatusNotFound:              codes.NotFound,
	http.StatusConflict:              codes.FailedPrecondition,
	http.StatusPreconditionFailed:    codes.FailedPrecondition,
	http.StatusRequestEntityTooLarge: codes.InvalidArgument,
	http.StatusUnsupportedMediaType:  codes.InvalidArgument,
	http.StatusUnprocessableEntity:   codes.InvalidArgument,
	http.StatusTooManyRequests:       codes.ResourceExhausted,
	statusClosed:                     codes.Canceled,
	http.StatusServiceUnavailable:    codes.Unavailable,
	http.StatusInternalServerError:   codes.Internal,
}

// statusClosed is the status of a problem whose client is gone.
const statusClosed = 499

// grpcStatus returns an error as a gRPC status. Its details are those of rpcError.details.
func grpcStatus(e *rpcError) *status.Status {
	st := status.New(grpcCode(e), strings.ToValidUTF8(e.message, "�"))
	detailed, err := st.WithDetails(grpcDetails(e)...)
	if err != nil { // invalid UTF-8, which errors do not have
		return st
	}
	return detailed
}

func grpcCode(e *rpcError) (code codes.Code) {
	k := e.kind()
	if k.reason == "" && e.code != codeInvalidParams && e.problem != nil {
		if code, ok := codesByStatus[e.problem.Status]; ok {
			return code
		}
	}
	if code.UnmarshalJSON([]byte(strconv.Quote(k.status))) != nil {
		return codes.Internal
	}
	return code
}

func grpcDetails(e *rpcError) (out []protoadapt.MessageV1) {
	add := func(m proto.Message) { out = append(out, protoadapt.MessageV1Of(m)) }
	if reason, domain := e.reason(); reason != "" {
		info := &errdetails.ErrorInfo{Reason: reason, Domain: domain}
		if e.problem != nil && e.problem.Code != "" {
			info.Metadata = map[string]string{"code": e.problem.Code}
			if e.problem.Scope != "" {
				info.Metadata["scope"] = e.problem.Scope
			}
		}
		add(info)
	}
	if len(e.fields) > 0 {
		bad := &errdetails.BadRequest{}
		for _, f := range e.fields {
			bad.FieldViolations = append(bad.FieldViolations, &errdetails.BadRequest_FieldViolation{
				Field: fieldPath(f.Path), Description: f.Message,
			})
		}
		add(bad)
	}
	if e.problem == nil {
		return out
	}
	if seconds, err := strconv.Atoi(e.problem.GetHeaders().Get("Retry-After")); err == nil {
		add(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Duration(seconds) * time.Second)})
	}
	if e.problem.RequestID != "" {
		add(&errdetails.RequestInfo{RequestId: e.problem.RequestID})
	}
	return out
}

// refuseGRPC responds to a request that is refused before the message is read.
func refuseGRPC(w http.ResponseWriter, r *http.Request, err error) {
	if !isGRPC(r) {
		httpx.WriteError(w, r, err)
		return
	}
	writeStatus(w, grpcStatus(refusal(httpx.Explain(w, r, err))))
}

// writeStatus writes a response that is only a status, which gRPC sends in the headers.
func writeStatus(w http.ResponseWriter, st *status.Status) {
	h := w.Header()
	h["Content-Type"] = []string{"application/grpc"}
	h["Grpc-Status"] = []string{strconv.Itoa(int(st.Code()))}
	h["Grpc-Message"] = []string{escapeMessage(st.Message())}
	if details, err := proto.Marshal(st.Proto()); err == nil && len(st.Proto().GetDetails()) > 0 {
		h["Grpc-Status-Details-Bin"] = []string{base64.RawStdEncoding.EncodeToString(details)}
	}
	w.WriteHeader(http.StatusOK)
}

// escapeMessage escapes a message for a gRPC header.
func escapeMessage(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '%' {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
