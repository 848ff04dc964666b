// Package browser tests the dashboard in a real Chromium, against the built binary: the
// story from the set-up link to a resolved proposal, the traps of morphing and of forms,
// what assistive technology meets (axe-core, the keyboard, touch, zoom, forced colours),
// what a hostile text or site cannot do, how heavy the pages are, slow responses, sign-in with
// an identity provider, and an org where there is much of everything. It imports nothing of
// the program but the doubles that tests share: a PostgreSQL and an identity provider.
//
// A site is a server with an org; a tab is a browser context of its own, with its own
// cookies. Every tab watches itself: a test fails on a request that leaves the site, on a
// broken content policy, on an exception in a script and on a dialog. Controls are found as
// people with a screen reader find them, by role and name, and pressed with the mouse or the
// keyboard. Nothing sleeps: everything waits for a condition.
//
// 'make screenshots' takes pictures of every page; see TestScreenshots. PARLEY_CHROMIUM
// names a browser that is not in the path.
package browser
