package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
)

// Client asks the coordinators of rooms, wherever they run. Its errors have the kinds of package anteroom: Unavailable
// when there is no answer in time, otherwise the kind that the coordinator's host returned. Safe for concurrent use.
type Client struct {
	space cluster.Space
}

// NewClient returns a client for the space that all sites share.
func NewClient(space cluster.Space) *Client { return &Client{space: space} }

// askFor is how long to wait for an answer, unless ctx ends earlier.
const askFor = 5 * time.Second

// AdmitNow calls the next n visitors of a room (see engine.Coordinator.AdmitNow) and returns how many were called.
// After an error of kind Unavailable, some may have been called.
func (c *Client) AdmitNow(ctx context.Context, room anteroom.RoomID, n int) (int, error) {
	a, err := c.ask(ctx, cluster.ShardOf(string(room)), admitFor+askFor, request{Op: opAdmit, Room: room, N: n})
	return a.Given, err
}

// Status returns the live figures of a room over all sites.
func (c *Client) Status(ctx context.Context, room anteroom.RoomID) (Status, error) {
	a, err := c.ask(ctx, cluster.ShardOf(string(room)), askFor, request{Op: opStatus, Room: room})
	if err != nil {
		return Status{}, err
	}
	if a.Status == nil {
		return Status{}, errors.New("the coordinator's answer has no status; it may come from another version")
	}
	return *a.Status, nil
}

// Time returns the room time of a shard when its coordinators answered, which was while Time waited. Where no room of
// the shard is in use, nobody knows it.
func (c *Client) Time(ctx context.Context, shard int) (anteroom.Time, error) {
	a, err := c.ask(ctx, shard, askFor, request{Op: opTime})
	if err == nil && a.Time == 0 {
		err = errors.New("the coordinator's answer has no time; it may come from another version")
	}
	return a.Time, err
}

// askAll asks the coordinators of all shards at once: a silent one must not make the caller wait sixteen times.
func (c *Client) askAll(ctx context.Context, within time.Duration, what request) (answers [cluster.Shards]reply, failed [cluster.Shards]error) {
	var wg sync.WaitGroup
	for shard := range cluster.Shards {
		wg.Go(func() { answers[shard], failed[shard] = c.ask(ctx, shard, within, what) })
	}
	wg.Wait()
	return answers, failed
}

// Sites returns how the coordinators of all shards see the sites, and the shards whose coordinator does not answer.
func (c *Client) Sites(ctx context.Context) (sites []SiteSummary, silent []int) {
	answers, failed := c.askAll(ctx, askFor, request{Op: opSites})
	sums := map[string]*SiteSummary{}
	for shard, a := range answers {
		if failed[shard] != nil {
			silent = append(silent, shard)
		}
		for _, one := range a.Sites {
			add(sums, one)
		}
	}
	return summed(sums), silent
}

// Forget writes a site off in all rooms, see engine.Coordinator.Forget, and returns what that was. The error has kind
// Conflict if a room has heard the site in the last minute, and Unavailable if a coordinator does not answer. After an
// error, some rooms may have forgotten the site: Forget may be repeated.
func (c *Client) Forget(ctx context.Context, site string) (all Forgotten, err error) {
	answers, failed := c.askAll(ctx, forgetFor+askFor, request{Op: opForget, Site: site})
	for shard, a := range answers {
		if failed[shard] != nil {
			return all, failed[shard]
		}
		if a.Forgot == nil {
			return all, errors.New("the coordinator's answer does not say what was written off; it may come from another version")
		}
		all.Rooms += a.Forgot.Rooms
		all.Seats += a.Forgot.Seats
	}
	return all, nil
}

func (c *Client) ask(ctx context.Context, shard int, within time.Duration, q request) (a reply, err error) {
	data, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	data, err = c.space.Request(ctx, asking(shard), data)
	switch {
	// No subscriber means that no host has the role: an election takes a few seconds.
	case errors.Is(err, cluster.ErrNobody):
		return a, errElected()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, cluster.ErrUnavailable):
		return a, anteroom.Errorf(anteroom.Unavailable, "the coordinator of this room does not answer: try again in a few seconds; if it persists, run anteroom doctor: %w", err)
	case err != nil:
		return a, fmt.Errorf("the coordinator of this room cannot be asked: %w", err)
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return reply{}, errors.New("the coordinator's answer cannot be read; it may come from another version")
	}
	if a.Error != nil {
		return reply{}, a.Error.err()
	}
	return a, nil
}
