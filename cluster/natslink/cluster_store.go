package natslink

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/internal/walltime"
)

const (
	// callBound is the longest that a call waits for a store by itself. A majority that
	// has lost its leader takes 1 to 4 s to elect another: callers try again.
	callBound = 5 * time.Second
	// tryBound is the longest that one request of a call waits: it may have gone to a server that
	// has just fallen silent.
	tryBound = time.Second
	// soonBound is the same for a write, and for the first try of a read: one that was under way when the leader changed or
	// a server ended is never answered. Both are as well repeated soon: a write is done once, however often it is sent.
	soonBound = 300 * time.Millisecond

	minBackoff = 20 * time.Millisecond
	maxBackoff = 500 * time.Millisecond

	headerLast   = "Nats-Expected-Last-Subject-Sequence"
	headerTTL    = "Nats-TTL"
	headerMarker = "Nats-Marker-Reason"

	codeWrongLast      = 10071
	codeWrongLastToo   = 10164 // the same, while another write of the subject is under way
	codeMaxBytes       = "maximum bytes exceeded"
	codeNoMessage      = 10037
	codeStreamMissing  = 10059
	codeNoTTL          = 10165
	codeMessageTooLong = 10054
)

// errWrongLast: the subject's last message is not the one expected.
var errWrongLast = errors.New("somebody else wrote")

// store is one stream as seen over one connection, wherever the stream is.
type store struct {
	nc     *nats.Conn
	api    string // begins subjects of JetStream's API: "$JS.API." or "$JS.<domain>.API."
	stream string
	// begins every subject of the stream; and what must come before it in a publish from
	// another domain
	subjects, put string
	full          string        // what to say when the stream is full
	cores         []string      // keys that this process may not write, see coresShared
	deaf          func() bool   // says that an answer would not be heard; nil: never
	elections     *elections    // nil: they are not followed
	wrote         atomic.Uint64 // the highest number that was acknowledged to this process
}

func apiOf(domain string) string {
	if domain == "" {
		return "$JS.API."
	}
	return "$JS." + domain + ".API."
}

// row is a message of a stream.
type row struct {
	subject string
	seq     uint64
	data    []byte
	stored  time.Time     // by the clock of the stream's leader
	marker  bool          // written by the store itself: the key's time to live was over
	ttl     time.Duration // its time to live; 0: it stays
}

func newRow(subject string, seq uint64, data []byte, stored time.Time, h nats.Header) row {
	r := row{subject: subject, seq: seq, data: data, stored: stored, marker: h.Get(headerMarker) != ""}
	if text := h.Get(headerTTL); text != "" {
		if d, err := time.ParseDuration(text); err == nil {
			r.ttl = d
		} else if d, err := time.ParseDuration(text + "s"); err == nil {
			r.ttl = d
		}
	}
	return r
}

type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string { return e.Description }

// full reports whether the stream is at its limit.
func (e *apiError) full() bool {
	return e.ErrCode == codeStorageExceeded || e.ErrCode == codeStoreFailed && e.Description == codeMaxBytes
}

// answerOf reads what JetStream answers, whose error it returns: an *apiError. A nil answer takes nothing.
func answerOf(data []byte, answer any) error {
	var failed struct {
		Error *apiError `json:"error"`
	}
	if err := json.Unmarshal(data, &failed); err != nil {
		return fmt.Errorf("natslink: store answers %.80q: %w", data, err)
	}
	if failed.Error != nil {
		return failed.Error
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(data, answer)
}

// acknowledged reads the number of a message that was written.
func acknowledged(data []byte) (seq uint64, err error) {
	var ack struct {
		Seq uint64 `json:"seq"`
	}
	if err = answerOf(data, &ack); err == nil && ack.Seq == 0 {
		err = fmt.Errorf("natslink: store answers %.80q", data)
	}
	return ack.Seq, err
}

// question is what JetStream is asked; nothing where that is nil.
func question(v any) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	return json.Marshal(v)
}

// unreachable makes err one that says that the store cannot be reached.
func (s *store) unreachable(err error) error {
	return fmt.Errorf("%w: stream %s: %w", cluster.ErrUnavailable, s.stream, err)
}

// unconnected says why there is no connection, as far as NATS has said: servers of the operator's own may refuse the credentials.
func unconnected(nc *nats.Conn) error {
	if err := nc.LastError(); err != nil {
		return fmt.Errorf("no connection: %w", err)
	}
	return fmt.Errorf("no connection (%s)", nc.Status())
}

// request asks and returns the answer, or an error that wraps cluster.ErrUnavailable.
func (s *store) request(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	if !s.nc.IsConnected() {
		return nil, s.unreachable(unconnected(s.nc))
	}
	if s.deaf != nil && s.deaf() {
		return nil, s.unreachable(errors.New("this core hears no other"))
	}
	ctx, cancel := context.WithTimeout(ctx, tryBound)
	defer cancel()
	reply, err := s.nc.RequestMsgWithContext(ctx, m)
	if errors.Is(err, nats.ErrMaxPayload) {
		return nil, fmt.Errorf("%w: the servers take %d bytes in one message; raise their max_payload to %d",
			cluster.ErrTooLarge, s.nc.MaxPayload(), cluster.MaxValue+perRecord)
	}
	if err != nil {
		return nil, s.unreachable(err)
	}
	return reply, nil
}

// ask calls JetStream's API and fills answer, whose error it returns.
func (s *store) ask(ctx context.Context, call string, what, answer any) error {
	body, err := question(what)
	if err != nil {
		return err
	}
	reply, err := s.request(ctx, &nats.Msg{Subject: s.api + call, Data: body})
	if err != nil {
		return err
	}
	err = answerOf(reply.Data, answer)
	// Every stream was there when the process joined: a leader that was just elected may not
	// have read of it yet.
	if e, ok := errors.AsType[*apiError](err); ok && (e.Code == 503 || e.ErrCode == codeStreamMissing) {
		return s.unreachable(e)
	}
	return err
}

// publish writes one message behind the message with the number last of its subject, 0 for
// none, and returns its number. ttl 0 means that it stays.
func (s *store) publish(ctx context.Context, subject string, data []byte, last uint64, ttl time.Duration) (uint64, error) {
	m := nats.NewMsg(s.put + subject)
	m.Data = data
	m.Header.Set(headerLast, strconv.FormatUint(last, 10))
	if ttl > 0 {
		m.Header.Set(headerTTL, ttl.String())
	}
	bounded, cancel := s.elections.try(ctx)
	defer cancel()
	reply, err := s.request(bounded, m)
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		err = s.unreachable(errElected) // nobody has ended the call
	}
	if err != nil {
		return 0, err
	}
	seq, err := acknowledged(reply.Data)
	e, refused := errors.AsType[*apiError](err)
	switch {
	case err == nil:
		s.note(seq)
		return seq, nil
	case !refused:
		return 0, err
	case e.ErrCode == codeWrongLast || e.ErrCode == codeWrongLastToo:
		return 0, errWrongLast
	case e.full():
		return 0, fmt.Errorf("%w: %s", cluster.ErrFull, s.full)
	case e.ErrCode == codeMessageTooLong:
		return 0, fmt.Errorf("%w: %s", cluster.ErrTooLarge, e.Description)
	case e.ErrCode == codeNoTTL:
		return 0, fmt.Errorf("natslink: stream %s: %w; it was not made by us", s.stream, e)
	default:
		return 0, s.unreachable(e)
	}
}

// note notes what was acknowledged to this process.
func (s *store) note(seq uint64) {
	for was := s.wrote.Load(); seq > was && !s.wrote.CompareAndSwap(was, seq); was = s.wrote.Load() {
	}
}

// get asks the leader for a message, which knows every acknowledged one. errMissing when
// there is none.
func (s *store) get(ctx context.Context, question map[string]any) (row, error) {
	var answer struct {
		Message struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	soon, cancel := s.elections.try(ctx)
	defer cancel()
	err := s.ask(soon, "STREAM.MSG.GET."+s.stream, question, &answer)
	if soon.Err() != nil && err != nil && ctx.Err() == nil {
		err = s.ask(ctx, "STREAM.MSG.GET."+s.stream, question, &answer)
	}
	if e, ok := errors.AsType[*apiError](err); ok && e.ErrCode == codeNoMessage {
		return row{}, errMissing
	}
	if err != nil {
		return row{}, err
	}
	m := answer.Message
	var header nats.Header
	if len(m.Header) > 0 {
		if header, err = nats.DecodeHeadersMsg(m.Header); err != nil {
			return row{}, fmt.Errorf("natslink: stream %s, message %d: %w", s.stream, m.Seq, err)
		}
	}
	return newRow(m.Subject, m.Seq, m.Data, m.Time, header), nil
}

// last returns the subject's newest message, or errMissing.
func (s *store) last(ctx context.Context, subject string) (row, error) {
	return s.get(ctx, map[string]any{"last_by_subj": subject})
}

// batch reads some messages from any replica, which may lag. What it returns has no gap,
// even when it fails in the middle.
func (s *store) batch(ctx context.Context, question map[string]any) ([]row, error) {
	ctx, cancel := context.WithTimeout(ctx, callBound)
	defer cancel()
	if question["batch"] == nil {
		question["batch"], question["max_bytes"] = batchRecords, batchBytes
	}
	records, err := s.readBatch(ctx, question, soonBound)
	if len(records) == 0 && errors.Is(err, nats.ErrTimeout) && ctx.Err() == nil {
		return s.readBatch(ctx, question, tryBound)
	}
	return records, err
}

// readBatch is one try of batch, which waits so long for the first message.
func (s *store) readBatch(ctx context.Context, question map[string]any, patience time.Duration) ([]row, error) {
	if !s.nc.IsConnected() {
		return nil, s.unreachable(unconnected(s.nc))
	}
	inbox := s.nc.NewInbox()
	sub, err := s.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, s.unreachable(err)
	}
	defer sub.Unsubscribe()
	if err := sub.SetPendingLimits(-1, -1); err != nil { // the request bounds it
		return nil, s.unreachable(err)
	}
	data, err := json.Marshal(question)
	if err != nil {
		return nil, err
	}
	if err := s.nc.PublishRequest(s.api+"DIRECT.GET."+s.stream, inbox, data); err != nil {
		return nil, s.unreachable(err)
	}
	var records []row
	for before := "0"; ; {
		m, err := sub.NextMsg(patience)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return records, s.unreachable(err)
		}
		patience = tryBound
		status := m.Header.Get(statusHeader)
		switch status {
		case "", "204":
		case "404":
			return nil, nil
		default:
			return records, s.unreachable(fmt.Errorf("%s %s", status, m.Header.Get("Description")))
		}
		if said := m.Header.Get("Nats-Last-Sequence"); said != before {
			return records, s.unreachable(fmt.Errorf("message %s was lost on its way", said))
		}
		if status != "" {
			return records, nil
		}
		before = m.Header.Get("Nats-Sequence")
		seq, err := strconv.ParseUint(before, 10, 64)
		if err != nil {
			return records, fmt.Errorf("natslink: stream %s: %w", s.stream, err)
		}
		stored, err := time.Parse(time.RFC3339Nano, m.Header.Get("Nats-Time-Stamp"))
		if err != nil {
			return records, fmt.Errorf("natslink: stream %s: %w", s.stream, err)
		}
		records = append(records, newRow(m.Header.Get("Nats-Subject"), seq, m.Data, stored, m.Header))
	}
}

// direct asks any replica for one message. errMissing when it has none.
func (s *store) direct(ctx context.Context, question map[string]any) (row, error) {
	question["batch"] = 1
	records, err := s.batch(ctx, question)
	if len(records) > 0 {
		return records[0], nil
	}
	if err == nil {
		err = errMissing
	}
	return row{}, err
}

// pause waits about d and says whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	return walltime.Sleep(ctx, d/2+rand.N(d))
}

// barrier writes a message beside all keys and returns its number: whoever has seen it has
// seen everything acknowledged before.
func (s *store) barrier(ctx context.Context) (uint64, error) {
	own, cancel := context.WithTimeout(ctx, callBound)
	defer cancel()
	m := nats.NewMsg(s.put + s.subjects + barrierKey)
	m.Data = binary.BigEndian.AppendUint64(nil, rand.Uint64())
	for wait := minBackoff; ; wait = min(2*wait, maxBackoff) {
		reply, err := s.request(own, m)
		if err == nil {
			if seq, bad := acknowledged(reply.Data); bad == nil {
				return seq, nil
			}
			err = s.unreachable(fmt.Errorf("store answers %.80q", reply.Data))
		}
		if !pause(own, wait) {
			return 0, err
		}
	}
}

// barrierKey is no key, see cluster.CheckKey.
const barrierKey = "~barrier"
