package natslink

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRepeatedComplaintsAreQuiet: a core that is away is in the log once a minute.
func TestRepeatedComplaintsAreQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, said := recordLog(t, "dublin-1")
		l := &coreLog{logger: logger{log: log}}
		const minutes = 3
		for i := range minutes * 60 * 4 {
			l.Errorf("Error trying to connect to route (attempt %v): %v", i, "dial tcp 10.0.0.1:7223: connect: connection refused")
			l.Errorf("Error trying to connect to route (attempt %v): %v", i, "dial tcp 10.0.0.2:7223: i/o timeout")
			l.Errorf("Error trying to connect as leafnode to remote server %q (attempt %v): %v", "hub:7224", i, "lookup hub: no such host")
			time.Sleep(time.Second / 4)
		}
		text, _ := said.all()
		for _, part := range []string{"10.0.0.1:7223", "10.0.0.2:7223", "lookup hub"} {
			n := 0
			for line := range strings.Lines(text) {
				if strings.Contains(line, part) && !strings.Contains(line, "level=DEBUG") {
					n++
				}
			}
			if n != minutes {
				t.Errorf("%s: %d lines in %d minutes", part, n, minutes)
			}
		}
	})
	var r repeats
	for i := range 10 * maxRepeats {
		if r.again(fmt.Sprintf("dial tcp 10.0.0.1:%d: no", i), time.Time{}) {
			t.Errorf("the first complaint about address %d is taken for another", i)
		}
	}
	if len(r.said) > maxRepeats {
		t.Errorf("%d addresses are remembered", len(r.said))
	}
}
