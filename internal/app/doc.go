// Package app wires the store, the services and the transports together and runs the server.
//
// Run starts a server and stops it when its context ends. Tests use New, Start and Shutdown
// to run the same server on a free port. OpenOperator opens the store for the operator's
// commands. The package must hold no rules of the domain and no routes.
package app
