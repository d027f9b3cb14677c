package server

import (
	"strings"
	"testing"
	"time"
)

// TestDoctorKnowsRoomTime: of a standalone process, which has nobody to compare its clock with.
func TestDoctorKnowsRoomTime(t *testing.T) {
	for ahead, want := range map[time.Duration]string{
		0: "", 30 * time.Second: "", -30 * time.Second: "",
		6 * time.Hour:    "room time is 6h0m0s ahead of the clock of this machine",
		-2 * time.Minute: "room time is 2m0s behind the clock of this machine",
	} {
		var got []string
		for _, f := range examineClock(ahead) {
			got = append(got, f.What)
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%v: %q, want %q", ahead, got, want)
		}
	}
	// A server whose clock nobody has set says nothing.
	if st, err := startServer(t, oneRoom).s.clusterStatus(t.Context()); err != nil || len(st.Findings) > 0 {
		t.Errorf("%+v, %v", st.Findings, err)
	}
}
