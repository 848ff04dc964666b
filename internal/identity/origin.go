package identity

import "context"

// Origin is where an action comes from: who asks for it, with which credential,
// and by which request.
type Origin struct {
	Actor     string // a principal's ref, OperatorActor or ServerActor
	KeyID     string // the credential; empty: none
	RequestID string
	Address   string // of the client
}

// The actors that are no principals.
const (
	OperatorActor = "operator" // the command line, on the data itself
	ServerActor   = "server"   // the server of its own accord, as at its first start
)

// OriginKey is the key under which a context holds its Origin. A context of its own
// kind may answer to it, so that an origin nobody asks for costs nothing.
type OriginKey struct{}

// WithOrigin says where what happens under the context comes from.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, OriginKey{}, o)
}

// OriginOf returns where the context's request comes from. What was started by no
// request and no operator was started by the server.
func OriginOf(ctx context.Context) Origin {
	o, ok := ctx.Value(OriginKey{}).(Origin)
	if !ok {
		return Origin{Actor: ServerActor}
	}
	return o
}

// originFor is OriginOf for a caller that is known for sure.
func originFor(ctx context.Context, a Access) context.Context {
	o := OriginOf(ctx)
	o.Actor, o.KeyID = a.Principal().Ref(), a.Caller().KeyID
	return WithOrigin(ctx, o)
}
