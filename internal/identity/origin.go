package identity

import "context"

// Origin is where an action comes from: the actor, its credential and its request.
type Origin struct {
	Actor     string // a principal's ref, OperatorActor or ServerActor
	KeyID     string // id of the credential; empty: none
	RequestID string
	Address   string // IP address of the client
}

// Actors that are not principals.
const (
	OperatorActor = "operator" // the command line, directly on the store
	ServerActor   = "server"   // the server itself, for example at its first start
)

// OriginKey is the context key of an Origin. It is exported so that a context of another
// package can compute its Origin only when it is asked for.
type OriginKey struct{}

// WithOrigin returns a context that carries the Origin.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, OriginKey{}, o)
}

// OriginOf returns the Origin of a context. The default is the server itself.
func OriginOf(ctx context.Context) Origin {
	o, ok := ctx.Value(OriginKey{}).(Origin)
	if !ok {
		return Origin{Actor: ServerActor}
	}
	return o
}

// originFor returns a context whose Origin has the caller of the Access as its actor.
func originFor(ctx context.Context, a Access) context.Context {
	o := OriginOf(ctx)
	o.Actor, o.KeyID = a.Principal().Ref(), a.Caller().KeyID
	return WithOrigin(ctx, o)
}
