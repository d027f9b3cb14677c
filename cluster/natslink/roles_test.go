//go:build unix

package natslink

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// cast is who holds which role, as the holders say.
type cast struct {
	mu    sync.Mutex
	held  map[string]string // node by role
	news  chan struct{}     // closed at the next change
	wrong []string
}

func (c *cast) set(role, from, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if have := c.held[role]; have != from {
		c.wrong = append(c.wrong, fmt.Sprintf("%s goes from %q to %q, and %q holds it", role, from, to, have))
	}
	c.held[role] = to
	close(c.news)
	c.news = make(chan struct{})
}

// until waits until every node's number of roles is one of a range.
func (c *cast) until(t *testing.T, least, most int, nodes ...string) {
	t.Helper()
	for limit := time.After(30 * time.Second); ; {
		c.mu.Lock()
		n := map[string]int{}
		for _, node := range c.held {
			n[node]++
		}
		news := c.news
		c.mu.Unlock()
		ok := n[""] == 0
		sum := 0
		for _, node := range nodes {
			ok = ok && n[node] >= least && n[node] <= most
			sum += n[node]
		}
		if ok && sum == cluster.Shards {
			return
		}
		select {
		case <-news:
		case <-limit:
			t.Fatalf("%v hold %v", nodes, n)
		}
	}
}

// TestRolesOfASite has a core and two edges that share roles; one ends, one dies.
func TestRolesOfASite(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	core := single(t, "dublin")
	links := joinAll(t, core, edgeOf(t, core), edgeOf(t, core))
	c := &cast{held: map[string]string{}, news: make(chan struct{})}
	var names []string
	for i := range cluster.Shards {
		names = append(names, fmt.Sprintf("site.%02d", i))
	}
	ends := make([]context.CancelFunc, len(links))
	ended := make([]chan error, len(links))
	dead := ""
	for i, l := range links {
		node := fmt.Sprint("n", i)
		roles, err := cluster.NewRoles(cluster.RolesConfig{
			Space: l.Site(), Self: cluster.Member{Node: node, Boot: fmt.Sprint("boot", i), Started: time.Now()}, Roles: names,
			Gained: func(role string, _ uint64) {
				c.mu.Lock()
				from := c.held[role]
				if from != dead {
					from = "" // else it must be free
				}
				c.mu.Unlock()
				c.set(role, from, node)
			},
			Lost: func(role string) {
				c.mu.Lock()
				gone := node == dead
				c.mu.Unlock()
				if !gone {
					c.set(role, node, "")
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ends[i], ended[i] = cancel, make(chan error, 1)
		go func() { ended[i] <- roles.Run(ctx) }()
	}
	defer func() {
		for i := range ends {
			ends[i]()
			<-ended[i]
		}
	}()
	c.until(t, 5, 6, "n0", "n1", "n2")

	began := time.Now()
	ends[1]()
	c.until(t, 8, 8, "n0", "n2")
	t.Logf("handed over after %v", time.Since(began))

	began = time.Now()
	c.mu.Lock()
	dead = "n2"
	c.mu.Unlock()
	links[2].Close() // what it leased expires
	c.until(t, cluster.Shards, cluster.Shards, "n0")
	took := time.Since(began)
	t.Logf("taken over after %v", took)
	if took > 10*time.Second {
		t.Errorf("taken over after %v", took)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.wrong {
		t.Error(w)
	}
}
