//go:build unix

package natslink

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// answered asks until somebody is there: interest travels by itself.
func answered(t testing.TB, s cluster.Space, subject string, data []byte) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		answer, err := s.Request(ctx, subject, data)
		if err == nil {
			return answer
		}
		if !errors.Is(err, cluster.ErrNobody) {
			t.Fatal(err)
		}
		<-tick.C
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	hub := single(t, "dublin")
	far := siteAt(t, "oslo", hub)
	links := joinAll(t, hub, far, edgeOf(t, hub), edgeOf(t, far))
	if _, err := links[0].Request(t.Context(), "nobody", nil); !errors.Is(err, cluster.ErrNobody) {
		t.Errorf("nobody is there: %v", err)
	}
	largest := bytes.Repeat([]byte("x"), cluster.MaxMessage)
	for _, pair := range [][2]cluster.Space{
		{links[0], links[1]}, {links[3], links[2]}, {links[2], links[2]},
		{links[0].Site(), links[2].Site()}, {links[3].Site(), links[1].Site()},
	} {
		stop, err := pair[1].Subscribe("ask.x", func(m cluster.Message) {
			if m.Subject != "ask.x" {
				t.Errorf("subject %q", m.Subject)
			}
			if m.Reply != nil {
				if err := m.Reply(m.Data); err != nil {
					t.Error(err)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := answered(t, pair[0], "ask.x", largest); !bytes.Equal(got, largest) {
			t.Errorf("an answer of %d bytes", len(got))
		}
		stop()
		stop()
	}

	got := make(chan cluster.Message, 10)
	var end func()
	end, err := links[3].Subscribe("to.oslo", func(m cluster.Message) {
		got <- m
		end()
	})
	if err != nil {
		t.Fatal(err)
	}
	// Messages of the site's space are others.
	if err := links[3].Site().Publish("to.oslo", []byte("wrong")); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for heard := false; !heard; {
		if err := links[0].Publish("to.oslo", []byte("right")); err != nil {
			t.Fatal(err)
		}
		select {
		case m := <-got:
			if heard = true; string(m.Data) != "right" || m.Reply != nil {
				t.Errorf("%v", m)
			}
		case <-tick.C:
		case <-deadline:
			t.Fatal("nothing was heard")
		}
	}
	for _, bad := range []string{"", "a b", "*", ">", "a.*"} {
		if err := links[0].Publish(bad, nil); !errors.Is(err, cluster.ErrKey) {
			t.Errorf("subject %q: %v", bad, err)
		}
		if _, err := links[0].Subscribe(bad, nil); !errors.Is(err, cluster.ErrKey) {
			t.Errorf("subject %q: %v", bad, err)
		}
	}
	if err := links[0].Publish("a", append(largest, 0)); !errors.Is(err, cluster.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if err := links[2].Close(); err != nil {
		t.Error(err)
	}
	if err := links[2].Publish("a", nil); !errors.Is(err, cluster.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := links[2].Request(t.Context(), "a", nil); !errors.Is(err, cluster.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := links[2].Subscribe("a", func(cluster.Message) {}); !errors.Is(err, cluster.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestSitesHearEachOtherThroughTheHub: a site asks another one in vain, and knows it at once; what the
// hub asks there is answered.
func TestSitesHearEachOtherThroughTheHub(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	hub := single(t, "dublin")
	links := joinAll(t, hub, siteAt(t, "oslo", hub), siteAt(t, "tokyo", hub))
	here, oslo, tokyo := links[0], links[1], links[2]
	for _, l := range []struct {
		link    cluster.Link
		subject string
		answer  func(m cluster.Message) ([]byte, error)
	}{
		{oslo, "ask.oslo.00", func(m cluster.Message) ([]byte, error) { return append([]byte("oslo "), m.Data...), nil }},
		{here, "via.00", func(m cluster.Message) ([]byte, error) { return here.Request(t.Context(), "ask.oslo.00", m.Data) }},
	} {
		stop, err := l.link.Subscribe(l.subject, func(m cluster.Message) {
			answer, err := l.answer(m)
			if err != nil {
				answer = []byte(err.Error())
			}
			m.Reply(answer)
		})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
	}
	if got := answered(t, here, "ask.oslo.00", []byte("hears")); string(got) != "oslo hears" {
		t.Errorf("at the hub: %s", got)
	}
	if got := answered(t, tokyo, "via.00", []byte("hears")); string(got) != "oslo hears" {
		t.Errorf("through the hub: %s", got)
	}
	if got, err := tokyo.Request(t.Context(), "ask.oslo.00", nil); !errors.Is(err, cluster.ErrNobody) {
		t.Errorf("from site to site: %s, %v; want nobody", got, err)
	}
}
