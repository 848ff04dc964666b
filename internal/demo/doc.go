// Package demo fills an empty store with a company that has been using Parley for a month, and
// keeps its agents at work while the server runs. It is what parley serve --demo shows.
//
// Seed writes the past: the people, agents and services of cast.go, the proposals of ideas*.go, the
// friction and the tasks, each through the service that a transport would call, with a clock that
// is set to the time of each step (timeline.go). Company is the present: workers that claim tasks,
// and a bounded number of new tasks, votes and proposals. Receiver is where the webhooks of the
// company end.
//
// The package knows neither SQL nor the server: package app gives it the services.
package demo
