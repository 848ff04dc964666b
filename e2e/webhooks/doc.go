// Package webhooks verifies and parses deliveries of webhooks with libraries of others: the
// official libraries of Standard Webhooks for Go, Python and JavaScript, and the CloudEvents SDKs
// for Python and JavaScript.
//
// The receivers in Python and JavaScript (python/receiver.py, js/receiver.mjs) read recorded
// requests from standard input, one JSON object per line, and print what their library says of
// each. deliver returns such a request. The packages are installed when the tests run.
package webhooks
