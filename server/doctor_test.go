package server

import (
	"strings"
	"testing"
	"time"
)

// TestDoctorKnowsThatTheClockWasSet: of a standalone process, which has nobody to compare its clock with.
func TestDoctorKnowsThatTheClockWasSet(t *testing.T) {
	for back, want := range map[time.Duration]string{
		0: "", 30 * time.Second: "", -30 * time.Second: "",
		6 * time.Hour:    "the clock of this machine was set back by 6h0m0s since Anteroom was started",
		-2 * time.Minute: "the clock of this machine was set ahead by 2m0s since Anteroom was started",
	} {
		var got []string
		for _, f := range examineClock(back) {
			got = append(got, f.What)
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%v: %q, want %q", back, got, want)
		}
	}
	// A server whose clock nobody has set says nothing.
	if st, err := startServer(t, oneRoom).s.clusterStatus(t.Context()); err != nil || len(st.Findings) > 0 {
		t.Errorf("%+v, %v", st.Findings, err)
	}
}
