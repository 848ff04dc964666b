// Package browser tests the dashboard in a real Chromium, against the built binary: the story from
// the set-up link to a resolved proposal, the traps of morphing and of forms, accessibility
// (axe-core, keyboard, touch, zoom, forced colours), hostile texts and sites, page weight, slow
// responses, sign-in with an identity provider, and a large org. It imports nothing of the program
// but the shared test doubles: a PostgreSQL and an identity provider.
//
// A site is a server with an org; a tab is a browser context with its own cookies. Every tab
// watches itself: a test fails on a request that leaves the site, a violation of the content
// policy, an exception in a script, or a dialog. Controls are found by role and name, as with a
// screen reader, and used with the mouse or the keyboard. Nothing sleeps: everything waits for a
// condition.
//
// 'make screenshots' takes pictures of every page; see TestScreenshots. PARLEY_CHROMIUM names a
// browser that is not in the path.
package browser
