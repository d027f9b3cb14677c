package natslink

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// standing returns in how many of its groups the core stands in elections, and in how many it does not.
func standing(a *attachment) (stands, aside int) {
	for _, account := range []string{accountSite, accountShared, accountSystem} {
		status := a.server.srv().Raftz(&server.RaftzOptions{AccountFilter: account})
		if status == nil {
			continue
		}
		for _, groups := range *status {
			for _, is := range groups {
				if is.Observer {
					aside++
				} else {
					stands++
				}
			}
		}
	}
	return stands, aside
}

// TestACoreThatHearsNobodyStandsAside: as long as both others are gone, and no longer.
func TestACoreThatHearsNobodyStandsAside(t *testing.T) {
	t.Parallel()
	cfgs := members(t, "dublin")
	cores := startSite(t, cfgs...)
	keep(t, cores[0], cores[0].shared, hubDomain, "shared")
	last := cores[2]
	until := func(want func(stands, aside int) bool) func(context.Context) error {
		return func(ctx context.Context) error {
			for !want(standing(last)) {
				if !pause(ctx, hereEvery) {
					return errors.New("a core stands in elections when it should not, or does not when it should")
				}
			}
			return nil
		}
	}
	within(t, 10*time.Second, until(func(stands, aside int) bool { return stands > 1 && aside == 0 }))
	stop(t, cores[0])
	stop(t, cores[1])
	within(t, 10*time.Second, until(func(stands, aside int) bool { return stands == 0 && aside > 1 }))
	for _, cfg := range cfgs[:2] {
		start(t, cfg)
	}
	within(t, 20*time.Second, until(func(stands, aside int) bool { return stands > 1 && aside == 0 }))
	within(t, 30*time.Second, last.ready)
	keep(t, last, last.shared, hubDomain, "shared")
}
