package httpx

import "testing"

func TestPreferredWait(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]int{
		"wait=5": 5, "WAIT=5": 5, `wait="7"`: 7, "respond-async, wait=3": 3, "wait = 4 ; x=y": 4, "wait=600": 60,
		"wait=0": 0, "wait": 0, "wait=": 0, "wait=-1": 0, "wait=1.5": 0,
		"wait=99999999999": 60, "wait=99999999999999999999999": 60,
		"wait=-99999999999999999999999": 0, "wait=9x999999999999999999999999": 0,
		"": 0, "waiting=5": 0, "wait=2, wait=9": 2,
	} {
		if got := PreferredWait([]string{header}); int(got.Seconds()) != want {
			t.Errorf("%q: got %s, want %d s", header, got, want)
		}
	}
}
