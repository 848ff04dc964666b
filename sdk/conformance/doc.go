// Package conformance tests the workers of all SDKs, in Go, Python and TypeScript, against the
// built server while a proxy injects faults. README.md has the contract of the driver programs.
package conformance
