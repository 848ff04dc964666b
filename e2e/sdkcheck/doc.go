// Package sdkcheck checks the OpenAPI document with common tools against the built server: code
// generators, two linters, and schemathesis, which compares the document with the behaviour of the
// server.
//
// The tools come from PyPI, npm, Maven Central and Go's module proxy, with pinned versions. That
// is too much for every test run, so the tests have their own build tag: make sdkcheck, after
// scripts/deps sdkcheck.
package sdkcheck
