// Package sdkcheck holds the OpenAPI document against other people's tools, with the
// built server behind it: the code generators that people use, two linters, and
// schemathesis, which compares what the document says with what the server does.
//
// The tools come from PyPI, npm, Maven Central and Go's module proxy, each with its
// version pinned. That is too much for every test run, so the tests have a build tag of
// their own: make sdkcheck, after scripts/deps sdkcheck.
package sdkcheck
