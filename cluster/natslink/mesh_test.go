//go:build unix

package natslink

import (
	"fmt"
	"testing"
	"time"
)

// TestSitesOfThreeCores: with three links between two sites a message still arrives once,
// whichever core it is sent from and heard at.
func TestSitesOfThreeCores(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	hubConfigs, farConfigs := members(t, "dublin"), members(t, "paris")
	for i := range farConfigs {
		farConfigs[i].Hub = farConfigs[i].Hub[:0:0]
		for _, h := range hubConfigs {
			farConfigs[i].Hub = append(farConfigs[i].Hub, h.Listen)
		}
	}
	hub := startSite(t, hubConfigs...)
	far := startSite(t, farConfigs...)
	for _, a := range far {
		within(t, 20*time.Second, a.hubReady)
	}
	keep(t, hub[0], hub[0].shared, hubDomain, "shared")
	for _, way := range [][2][]*attachment{{hub, far}, {far, hub}} {
		for i, from := range way[0] {
			for j, to := range way[1] {
				subject := fmt.Sprintf("%s.%d.%d", from.siteOf(), i, j)
				got := hears(t, to.shared, subject)
				reaches(t, from.shared, subject, got, 10*time.Second)
				// What reaches sent more than once is behind; the mark comes after it.
				const n = 50
				for range n {
					if err := from.shared.Publish(subject, []byte("counted")); err != nil {
						t.Fatal(err)
					}
				}
				if err := from.shared.Publish(subject, []byte("mark")); err != nil {
					t.Fatal(err)
				}
				counted := 0
				for {
					m := <-got
					if string(m.Data) == "mark" {
						break
					}
					if string(m.Data) == "counted" {
						counted++
					}
				}
				if counted != n {
					t.Errorf("%s: %d of %d messages arrived", subject, counted, n)
				}
			}
		}
	}
	// A site goes on through the loss of the core that a link led to.
	stop(t, hub[0])
	for _, a := range far {
		within(t, 20*time.Second, a.hubReady)
	}
}
