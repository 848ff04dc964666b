package relay

import "testing"

// TestBreaker walks through the states of a breaker.
func TestBreaker(t *testing.T) {
	t.Parallel()
	var b breaker
	step := func(what string, got, want, open bool) {
		t.Helper()
		if got != want || b.isOpen() != open {
			t.Errorf("%s: %t, open %t; want %t, %t", what, got, b.isOpen(), want, open)
		}
	}
	step("first failure", b.failed(), false, false)
	step("second failure", b.failed(), false, false)
	step("success", b.succeeded(), false, false)
	for range tolerated - 1 {
		step("failures start again", b.failed(), false, false)
	}
	step("last tolerated failure", b.failed(), true, true)
	step("another failure", b.failed(), false, true)
	step("a success that began before", b.succeeded(), false, true)
	step("trip while open", b.trip(), false, true)
	step("probe", b.probed(), true, false)
	step("second probe", b.probed(), false, false)
	step("failure while half-open", b.failed(), true, true)
	step("probe", b.probed(), true, false)
	step("success while half-open", b.succeeded(), true, false)
	step("one failure", b.failed(), false, false)
	step("trip", b.trip(), true, true)
}
