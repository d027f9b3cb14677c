package natslink

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
)

const (
	// heartbeat is how often a quiet stream says that it is there. Silence of
	// heartbeatsMissed of them means that touch is lost.
	heartbeat        = 750 * time.Millisecond
	heartbeatsMissed = 2
	// consumerLife is how long the servers keep a consumer whose process is gone.
	consumerLife = 10 * time.Second
	// statusStalled is in heartbeats of a consumer that waits for an answer to its flow control.
	statusStalled = "Nats-Consumer-Stalled"
)

// errTouch: messages of a stream do not come any more, or not all.
var errTouch = errors.New("natslink: lost touch with the stream")

// follow calls fn with the messages of the stream and then with every new one, in order,
// until ctx ends, fn fails or touch is lost: from the number from on, or if it is 0 the
// last of each subject. begun, if not nil, is called before the first.
//
// It is an ephemeral push consumer of our own, and not one of the client library's that
// heal themselves: who follows must know when touch was lost, because a key that expired
// meanwhile leaves nothing to be heard.
func (s *store) follow(ctx context.Context, from uint64, filters []string, begun func(), fn func(row) error) error {
	inbox := s.nc.NewInbox()
	sub, err := s.nc.SubscribeSync(inbox)
	if err != nil {
		return s.unreachable(err)
	}
	defer sub.Unsubscribe()
	if err := sub.SetPendingLimits(-1, -1); err != nil { // flow control bounds it
		return s.unreachable(err)
	}
	stop := context.AfterFunc(ctx, func() { sub.Unsubscribe() })
	defer stop()

	name := nuid.Next()
	config := map[string]any{
		"name":               name,
		"deliver_subject":    inbox,
		"deliver_policy":     "last_per_subject",
		"ack_policy":         "none",
		"max_deliver":        1,
		"mem_storage":        true,
		"num_replicas":       1,
		"flow_control":       true,
		"idle_heartbeat":     heartbeat.Nanoseconds(),
		"inactive_threshold": consumerLife.Nanoseconds(),
	}
	if from > 0 {
		config["deliver_policy"], config["opt_start_seq"] = "by_start_sequence", from
	}
	if len(filters) > 0 {
		config["filter_subjects"] = filters
	} else if from == 0 {
		config["filter_subjects"] = []string{">"}
	}
	var made struct{}
	if err := s.ask(ctx, "CONSUMER.CREATE."+s.stream+"."+name, map[string]any{"stream_name": s.stream, "config": config}, &made); err != nil {
		return err
	}
	defer s.nc.Publish(s.api+"CONSUMER.DELETE."+s.stream+"."+name, nil)
	if begun != nil {
		begun()
	}
	behind := lag{s: s}
	for due := uint64(1); ; {
		m, err := sub.NextMsg(heartbeatsMissed * heartbeat)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", errTouch, s.stream, err)
		}
		if status := m.Header.Get(statusHeader); status != "" {
			if err := s.signal(m, status, due); err != nil {
				return err
			}
			if err := behind.beat(m); err != nil {
				return err
			}
			continue
		}
		meta, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("%w: %s: %w", errTouch, s.stream, err)
		}
		if meta.Sequence.Consumer != due {
			return fmt.Errorf("%w: %s: message %d came where %d was due", errTouch, s.stream, meta.Sequence.Consumer, due)
		}
		due++
		if err := fn(newRow(m.Subject, meta.Sequence.Stream, m.Data, meta.Timestamp, m.Header)); err != nil {
			return err
		}
	}
}

// lag notices that the replica which is followed takes nothing more, because its disk is full or broken: its server sends
// heartbeats for hours, and all that is written goes past it. What this process wrote itself must be there after a while.
type lag struct {
	s     *store
	wrote [heartbeatsMissed]uint64 // what had been written at the last heartbeats, the oldest first
}

// beat takes a heartbeat, which says how far the replica is, unless it waits for this process to take what was sent.
func (l *lag) beat(m *nats.Msg) error {
	said := m.Header.Get("Nats-Last-Stream")
	if said == "" || m.Header.Get(statusStalled) != "" {
		return nil
	}
	if n, err := strconv.ParseUint(said, 10, 64); err != nil || n < l.wrote[0] {
		return fmt.Errorf("%w: %s: its replica is at %s, and %d was written", errTouch, l.s.stream, said, l.wrote[0])
	}
	copy(l.wrote[:], l.wrote[1:])
	l.wrote[heartbeatsMissed-1] = l.s.wrote.Load()
	return nil
}

// signal answers the server's own messages: heartbeats, which say how many messages there
// were, and flow control.
func (s *store) signal(m *nats.Msg, status string, due uint64) error {
	if status != "100" {
		return fmt.Errorf("%w: %s: %s %s", errTouch, s.stream, status, m.Header.Get("Description"))
	}
	if m.Reply != "" {
		return m.Respond(nil)
	}
	if stalled := m.Header.Get(statusStalled); stalled != "" {
		return s.nc.Publish(stalled, nil)
	}
	if said := m.Header.Get("Nats-Last-Consumer"); said != "" {
		if n, err := strconv.ParseUint(said, 10, 64); err != nil || n >= due {
			return fmt.Errorf("%w: %s: %s messages were sent, %d came", errTouch, s.stream, said, due-1)
		}
	}
	return nil
}
