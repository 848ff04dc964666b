package a2a

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"

	v03pb "github.com/a2aproject/a2a-go/a2apb"
	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec
	"google.golang.org/grpc/status"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

// The gRPC bindings of versions 1.0 and 0.3 share the port: their requests are HTTP/2 posts through
// the same router, with the same request ids, metrics, credentials and rate limits as every other
// request. The tenant of the request names the agent. Version 0.3 has no tenant; there the scope of
// the key selects the agent.

// mountGRPC adds the methods of the services to the router.
func (s *server) mountGRPC() {
	srv := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxBody),
		grpc.ForceServerCodecV2(countingCodec{encoding.GetCodecV2("proto")}),
		grpc.UnaryInterceptor(func(
			ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler,
		) (out any, err error) {
			err = rpcOf(ctx).run(func() error {
				ctx, span := s.startGRPC(ctx, info.FullMethod)
				out, err = next(ctx, req)
				endGRPC(span, err)
				return err
			})
			return out, err
		}),
		grpc.StreamInterceptor(func(
			srv any, st grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler,
		) error {
			return rpcOf(st.Context()).run(func() error {
				if s.Tracer == nil {
					return next(srv, st)
				}
				ctx, span := s.startGRPC(st.Context(), info.FullMethod)
				err := next(srv, tracedStream{st, ctx})
				endGRPC(span, err)
				return err
			})
		}),
	)
	mount := func(d grpc.ServiceDesc, service any, version string) {
		srv.RegisterService(decoding(d), service)
		s.router.HandleRoute("POST /"+d.ServiceName+"/{method}", httpx.Route{Refuse: refuseGRPC},
			http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serveGRPC(srv, version, w, r) }))
	}
	mount(a2apb.A2AService_ServiceDesc, &grpcService{s: s}, version1)
	mount(v03pb.A2AService_ServiceDesc, &grpcV03Service{s: s}, version03)
}

var errNotGRPC = errs.New(errs.Unsupported, "request.not_grpc",
	"this path accepts only gRPC (HTTP/2 with the content type application/grpc); for JSON use /a2a/<agent_id>")

// isGRPC reports whether the client understands a gRPC response.
func isGRPC(r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.Header.Get("Content-Type"), "application/grpc")
	return ok && r.ProtoMajor == 2 && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

// framing is the size of the prefix of a gRPC message.
const framing = 5

// serveGRPC serves one request to the service of a version. The caller is authorized before the
// message is read.
func serveGRPC(srv *grpc.Server, version string, w http.ResponseWriter, r *http.Request) {
	if !isGRPC(r) {
		httpx.WriteError(w, r, errNotGRPC)
		return
	}
	caller, org := httpx.CallerOf(r.Context()), ""
	if caller != nil {
		org = caller.Org
	}
	if _, err := identity.Authorize(caller, org, identity.CallAgent); err != nil {
		refuseGRPC(w, r, err)
		return
	}
	if v := askedVersion(r); v != "" && v != version {
		e := newError(codeVersion, "A2A version "+clip(v)+" is not supported by this service; use "+version)
		writeStatus(w, grpcStatus(e))
		return
	}
	x := &rpc{w: w, r: r, out: httpx.NewPatient(w)}
	defer x.end()
	r = r.WithContext(context.WithValue(r.Context(), rpcKey{}, x))
	// The transport reads ahead without a bound.
	r.Body = http.MaxBytesReader(w, r.Body, maxBody+framing)
	if err := expectMessage(r); err != nil {
		refuseGRPC(w, r, err)
		return
	}
	srv.ServeHTTP(x.out, r)
}

// expectMessage takes memory for the message of a request, whose length precedes it in gRPC. A
// refusal while the transport reads would not reach the client.
func expectMessage(r *http.Request) error {
	var head [framing]byte
	n, err := io.ReadFull(r.Body, head[:])
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head[:n]), r.Body), r.Body}
	if err != nil {
		return nil //nolint:nilerr // the transport reports it
	}
	return httpx.ExpectBody(r.Context(), min(maxBody, int64(binary.BigEndian.Uint32(head[1:]))))
}

// rpc is the HTTP request below a gRPC call, whose handler runs in another goroutine.
type rpc struct {
	w   http.ResponseWriter
	r   *http.Request
	out *httpx.Patient

	sends   int   // messages of the response so far
	decoded int64 // memory that the request's decoded fields hold

	mu   sync.Mutex // held while the handler runs
	over bool
}

type rpcKey struct{}

func rpcOf(ctx context.Context) *rpc { return ctx.Value(rpcKey{}).(*rpc) }

// run runs the handler and recovers from its panic, which gRPC would not.
func (x *rpc) run(handler func() error) (err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return status.Error(codes.Canceled, "the request has ended")
	}
	defer func() {
		if p := recover(); p != nil {
			err = grpcStatus(errorOf(x.r.Context(), fmt.Errorf("panic: %v\n%s", p, debug.Stack()))).Err()
		}
	}()
	return handler()
}

// end waits for the handler: a client that goes away ends the request first, and after that neither
// its writer nor its log entry may be used.
func (x *rpc) end() {
	x.mu.Lock()
	x.over = true
	x.mu.Unlock()
}

// grpcCall finds the agent of a request and checks that the caller may call it.
func (s *server) grpcCall(ctx context.Context, tenant string) (*call, error) {
	caller := httpx.CallerOf(ctx)
	if tenant == "" {
		var ok bool
		if tenant, ok = caller.Scopes.OnlyAgent(); !ok {
			return nil, newInvalid("tenant", "is required: the id of the agent")
		}
	}
	to, err := s.Tasks.Reach(ctx, caller, tenant)
	if err != nil {
		return nil, refusal(httpx.NewProblem(ctx, err))
	}
	x := rpcOf(ctx)
	to = to.During(x.r.Header.Get(parentHeader))
	return &call{Context: ctx, s: s, to: to, agent: tenant, w: x.w, r: x.r}, nil
}

// refusal makes an error from a problem.
func refusal(p *httpx.Problem) *rpcError {
	e := &rpcError{code: codeInvalidRequest, message: p.Detail, problem: p}
	if p.Status >= http.StatusInternalServerError {
		e.code = codeInternal
	}
	return e
}

func newInvalid(name, msg string) *rpcError {
	f := mistake(msg, name)
	return &rpcError{code: codeInvalidParams, message: errs.InvalidFields(f).Message, fields: append(noFields, f)}
}

// grpcError returns the error that a client sees.
func grpcError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var own *rpcError
	if !errors.As(err, &own) {
		if _, ok := status.FromError(err); ok {
			return err // from the transport
		}
	}
	return grpcStatus(errorOf(ctx, err)).Err()
}
