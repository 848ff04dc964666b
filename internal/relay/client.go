package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	grpcv0 "github.com/a2aproject/a2a-go/v2/a2agrpc/v0"
	grpcv1 "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/text"
)

const (
	// callTimeout bounds a request that the remote can answer at once.
	callTimeout = 30 * time.Second
	// firstTimeout bounds how long a remote may take for its first response to a message: some
	// respond only when they have finished.
	firstTimeout = 15 * time.Minute
	// snapshotHistory is how many messages are read of a remote's task.
	snapshotHistory = 100
)

// client calls one remote.
type client struct {
	card      Card
	transport a2aclient.Transport
	auth      *authenticator
	silent    atomic.Bool // the remote does not stream although its card says so
	closing   sync.Once
}

// newClient makes a client for the endpoint of a card. It does not connect.
func (n *network) newClient(c Card, auth *authenticator, owner budget.Owner) (*client, error) {
	out := &client{card: c, auth: auth}
	e := c.Endpoint
	u, err := url.Parse(e.URL)
	if err != nil || u.Host == "" {
		return nil, lasting("its agent card was not read yet")
	}
	if err := n.guard.Check(e.URL); err != nil { // what is allowed may have changed since the card was read
		return nil, lasting("its agent card has the interface %s, whose URL %s", said(text.Origin(e.URL)), err)
	}
	hc := *n.client
	hc.Transport = &transport{
		base: n.client.Transport, version: n.version, rpc: e.Binding == bindingRPC, memory: n.memory, owner: owner,
	}
	switch e.Binding + " " + e.Version {
	case bindingRPC + " " + version1:
		out.transport = a2aclient.NewJSONRPCTransport(e.URL, &hc)
	case bindingRPC + " " + version03:
		out.transport = a2av0.NewJSONRPCTransport(a2av0.JSONRPCTransportConfig{URL: e.URL, Client: &hc})
	case bindingREST + " " + version1:
		out.transport = a2aclient.NewRESTTransport(u, &hc)
	case bindingREST + " " + version03:
		out.transport, err = a2av0.NewRESTTransport(a2av0.RESTTransportConfig{URL: e.URL, Client: &hc})
	case bindingGRPC + " " + version1, bindingGRPC + " " + version03:
		out.transport, err = n.newGRPC(u, e.Version, owner)
	default:
		err = fmt.Errorf("unknown interface %q of version %q", e.Binding, e.Version)
	}
	return out, err
}

// newGRPC makes a gRPC client whose connections are guarded.
func (n *network) newGRPC(u *url.URL, version string, owner budget.Owner) (a2aclient.Transport, error) {
	security := insecure.NewCredentials()
	if u.Scheme != "http" {
		security = credentials.NewTLS(n.tls())
	}
	conn, err := grpc.NewClient("passthrough:///"+net.JoinHostPort(u.Hostname(), portOf(u)),
		grpc.WithTransportCredentials(security),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return n.guard.Dial(ctx, "tcp", addr)
		}),
		grpc.WithNoProxy(), grpc.WithDisableServiceConfig(), grpc.WithUserAgent("Parley/"+n.version+" (relay)"),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(maxBody)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.WithUnaryInterceptor(n.callGRPC(owner)), grpc.WithStreamInterceptor(n.streamGRPC(owner)),
	)
	if err != nil {
		return nil, err
	}
	if version == version03 {
		return grpcv0.NewGRPCTransport(conn), nil
	}
	return grpcv1.NewGRPCTransport(conn), nil
}

// Messages over gRPC are in memory before their size is known here. Without a share of the memory,
// only small ones are read. What they take decoded is counted.
const (
	maxEvent = 256 << 10 // of a stream
	maxReply = 1 << 20   // to a message of the sender
)

// callGRPC makes a request. A task that is larger than maxReply is read again, with memory for it.
func (n *network) callGRPC(owner budget.Owner) grpc.UnaryClientInterceptor {
	return func(
		ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption,
	) error {
		read := func(most int, codec *weighing) error {
			err := call(ctx, method, req, reply, cc, append(o, grpc.MaxCallRecvMsgSize(most), grpc.ForceCodecV2(codec))...)
			if err != nil && codec.failed != nil {
				return codec.failed
			}
			return plain(err)
		}
		memory := &reservation{pool: n.memory, owner: owner, ctx: ctx}
		err := read(maxReply, weigh(memory))
		again := errors.Is(err, errTooLarge) && !errors.Is(err, errTooMany) && strings.HasSuffix(method, "/GetTask")
		if !again {
			if err != nil {
				memory.drop()
				return err
			}
			memory.pass(sizeOf(reply))
			return nil
		}
		codec := weigh(memory)
		for _, most := range []int{4 << 20, 8 << 20, 16 << 20, maxBody} { // its size is not known before, and memory is scarce
			memory.drop()
			if herr := memory.hold(int64(most)); herr != nil {
				return herr
			}
			if err = read(most, codec); err == nil || !errors.Is(err, errTooLarge) || errors.Is(err, errTooMany) {
				break
			}
		}
		memory.shrink(codec.needed)
		memory.pass(sizeOf(reply))
		return err
	}
}

func sizeOf(message any) int64 {
	if m, ok := message.(proto.Message); ok {
		return int64(proto.Size(m))
	}
	return 0
}

// streamGRPC opens a stream.
func (n *network) streamGRPC(owner budget.Owner) grpc.StreamClientInterceptor {
	return func(
		ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, call grpc.Streamer, o ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		codec := weigh(&reservation{pool: n.memory, owner: owner, ctx: ctx})
		s, err := call(ctx, d, cc, method, append(o, grpc.MaxCallRecvMsgSize(maxEvent), grpc.ForceCodecV2(codec))...)
		return plainStream{s, codec}, plain(err)
	}
}

func (n *network) tls() *tls.Config {
	if t, ok := n.client.Transport.(*http.Transport); ok && t.TLSClientConfig != nil {
		return t.TLSClientConfig.Clone()
	}
	return &tls.Config{MinVersion: tls.VersionTLS12}
}

// busyError is a gRPC status that may pass. The A2A client would take it for an error of the agent.
type busyError struct{ text string }

func (e *busyError) Error() string { return e.text }

// plain returns errors of the connection as they are, and others as gRPC statuses.
func plain(err error) error {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Aborted, codes.Canceled:
		if tooLargeStatus(err) {
			return errTooLarge
		}
		return &busyError{status.Convert(err).Message()}
	}
	return err
}

// tooLargeStatus recognizes a message that this side refused to read. gRPC has another text for one that
// was compressed.
func tooLargeStatus(err error) bool {
	said := status.Convert(err).Message()
	return status.Code(err) == codes.ResourceExhausted &&
		strings.HasPrefix(said, "grpc: received message ") && strings.Contains(said, "larger than max")
}

type plainStream struct {
	grpc.ClientStream
	codec *weighing
}

// RecvMsg implements grpc.ClientStream. The stream ends before an event that is too large for it: the
// task is then read as a whole.
func (s plainStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	switch failed := s.codec.failed; {
	case err == nil:
		s.codec.memory.pass(sizeOf(m))
		return nil
	case tooLargeStatus(err):
		err = errDropped
	case failed != nil:
		err = failed
	default:
		err = plain(err)
	}
	s.codec.memory.drop()
	return err
}

// close closes the connection, after the calls that use it.
func (c *client) close() { c.closing.Do(func() { _ = c.transport.Destroy() }) }

func (c *client) streams() bool { return c.card.Streaming && !c.silent.Load() }

// params returns the headers of a request.
func (c *client) params(ctx context.Context) (a2aclient.ServiceParams, error) {
	p := a2aclient.ServiceParams{}
	p.Append(a2a.SvcParamVersion, c.card.Endpoint.Version)
	name, value, err := c.auth.header(ctx)
	if err == nil && name != "" {
		p.Append(name, value)
	}
	return p, err
}

// call makes a request with the credential. If an access token is refused, it tries once more with a
// new one.
func call[Req, Resp any](
	ctx context.Context, c *client, req Req,
	do func(context.Context, a2aclient.ServiceParams, Req) (Resp, error),
) (out Resp, err error) {
	for range 2 {
		var p a2aclient.ServiceParams
		if p, err = c.params(ctx); err != nil {
			return out, err
		}
		if out, err = do(ctx, p, req); !c.expired(err) {
			break
		}
	}
	return out, err
}

// expired drops a refused access token, and reports whether a new one can be had.
func (c *client) expired(err error) bool {
	if err == nil || c.auth == nil || c.auth.c.Type != OAuth {
		return false
	}
	var status *statusError
	if errors.As(err, &status) && status.code == http.StatusUnauthorized || errors.Is(err, a2a.ErrUnauthenticated) {
		c.auth.refused()
		return true
	}
	return false
}

// get reads a remote's task. Its memory must be released.
func (c *client) get(ctx context.Context, id string) (*a2a.Task, parcel, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ctx, in := withIntake(ctx)
	in.repeatable = true
	most := snapshotHistory
	req := &a2a.GetTaskRequest{ID: a2a.TaskID(id), HistoryLength: &most, Tenant: c.card.Endpoint.Tenant}
	t, err := call(ctx, c, req, c.transport.GetTask)
	if err == nil && string(t.ID) != id {
		err = errGarbled // it may be the task of another sender
	}
	if err != nil {
		in.take().release()
		return nil, parcel{}, err
	}
	return t, in.take(), nil
}

func (c *client) cancel(ctx context.Context, id string) (*a2a.Task, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req := &a2a.CancelTaskRequest{ID: a2a.TaskID(id), Tenant: c.card.Endpoint.Tenant}
	return call(ctx, c, req, c.transport.CancelTask)
}

// item is one event of a remote, or the error that ended its events. Whoever has got it calls done
// once it is stored.
type item struct {
	event a2a.Event
	err   error
	done  func()
}

// source is where events of a remote come from. Its end is the end of the channel.
type source struct {
	items  chan item
	cancel context.CancelFunc
	queue  queue
}

// stop ends the source. Nothing is read from it afterwards.
func (s *source) stop() {
	s.cancel()
	go func() {
		for i := range s.items {
			i.done()
		}
	}()
}

// send sends a message and returns the events of the response: of a stream, or a single one.
func (c *client) send(ctx context.Context, req *a2a.SendMessageRequest, stream bool) *source {
	req.Tenant = c.card.Endpoint.Tenant
	return c.start(ctx, func(ctx context.Context, p a2aclient.ServiceParams) iter.Seq2[a2a.Event, error] {
		if stream {
			return c.transport.SendStreamingMessage(ctx, p, req)
		}
		return func(yield func(a2a.Event, error) bool) {
			result, err := c.transport.SendMessage(ctx, p, req)
			if err != nil {
				yield(nil, err)
				return
			}
			yield(result, nil)
		}
	})
}

// subscribe returns the further events of a remote's task.
func (c *client) subscribe(ctx context.Context, id string) *source {
	return c.start(ctx, func(ctx context.Context, p a2aclient.ServiceParams) iter.Seq2[a2a.Event, error] {
		return c.transport.SubscribeToTask(ctx, p, &a2a.SubscribeToTaskRequest{
			ID: a2a.TaskID(id), Tenant: c.card.Endpoint.Tenant,
		})
	})
}

// start reads events in a goroutine until the source is stopped. It outlives the end of ctx, so that
// the first response to a message can still be read then.
func (c *client) start(
	ctx context.Context, open func(context.Context, a2aclient.ServiceParams) iter.Seq2[a2a.Event, error],
) *source {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &source{items: make(chan item, 64), cancel: cancel, queue: newQueue()}
	ctx, in := withIntake(ctx)
	go func() {
		defer close(s.items)
		defer cancel()
		defer func() { in.take().release() }()
		silence := time.AfterFunc(firstTimeout, cancel)
		defer silence.Stop()
		first := true
		for again := true; again; {
			again = false
			p, err := c.params(ctx)
			if err != nil {
				s.put(ctx, item{err: err}, parcel{})
				return
			}
			for e, err := range open(ctx, p) {
				if first && c.expired(err) {
					first, again = false, true
					break
				}
				if first = false; !silence.Stop() && ctx.Err() != nil && err != nil {
					err = errSilent
				}
				if !s.put(ctx, item{event: e, err: err}, in.take()) || err != nil {
					return
				}
			}
		}
	}()
	return s
}

// put adds an item when there is room for what it holds. An error is put even if ctx has ended.
func (s *source) put(ctx context.Context, i item, p parcel) bool {
	if s.queue.enter(ctx, p) != nil {
		p.release()
		p = parcel{}
	}
	i.done = sync.OnceFunc(func() {
		p.release()
		s.queue.leave(p)
	})
	select {
	case s.items <- i:
		return true
	default:
	}
	select {
	case s.items <- i:
		return true
	case <-ctx.Done():
		i.done()
		return false
	}
}
