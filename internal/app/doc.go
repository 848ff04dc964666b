// Package app puts the parts together: store, services, transports and the
// server around them, with everything that must start and stop in order.
//
// Run is the whole life of a server; tests use New, Start and Shutdown to run the
// same thing on a free port. The package holds no rule of the domain and no route.
package app
