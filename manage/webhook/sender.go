package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/anteroom/anteroom"
)

// Target is a webhook with the secrets that sign its deliveries, newest first.
type Target struct {
	anteroom.Webhook
	Secrets []string
}

// Store keeps the queues of webhooks, as bytes, so that a restart loses nothing.
type Store interface {
	// Load returns what was saved for a webhook; nil when nothing was.
	Load(ctx context.Context, id anteroom.WebhookID) ([]byte, error)
	Save(ctx context.Context, id anteroom.WebhookID, queue []byte) error
}

// Config says what a sender works with. Only Store is required.
type Config struct {
	Store Store
	Guard Guard
	// UserAgent is sent with everything; empty means "Anteroom-Webhook".
	UserAgent string
	// Log; nil means none. No address is in it: it may be a secret.
	Log *slog.Logger

	now func() time.Time // in tests; nil means time.Now
}

// Sender makes attempts to deliver: one at a time for each webhook, and a bounded number in all.
type Sender struct {
	cfg           Config
	log           *slog.Logger
	secure, plain *http.Client
	running       chan struct{} // has room for as many as may be under way
	queues        queues
}

// maxRunning is how many attempts are under way at once.
const maxRunning = 16

// NewSender returns a sender without webhooks.
func NewSender(cfg Config) *Sender {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	s := &Sender{cfg: cfg, log: cfg.Log, secure: cfg.Guard.client(false), plain: cfg.Guard.client(true), running: make(chan struct{}, maxRunning)}
	if cfg.now == nil {
		s.cfg.now = time.Now
	}
	if cfg.UserAgent == "" {
		s.cfg.UserAgent = "Anteroom-Webhook"
	}
	return s
}

// now is the wall clock as it is kept: UTC, in milliseconds.
func (s *Sender) now() time.Time { return s.cfg.now().UTC().Truncate(time.Millisecond) }

// newID returns the id of a message.
func newID() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Outcome is what came of an attempt.
type Outcome struct {
	Status int           // of the answer; 0 when there was none
	Err    error         // nil when the message was taken
	Took   time.Duration // until the answer
	final  bool          // no further attempt makes sense
	later  time.Duration // that the receiver wants to be left alone; 0 when it does not say
}

// Try makes one attempt to deliver one message to one webhook.
func (s *Sender) Try(ctx context.Context, t Target, m Message) Outcome {
	select {
	case s.running <- struct{}{}:
		defer func() { <-s.running }()
	case <-ctx.Done():
		return Outcome{Err: ctx.Err()}
	}
	body, err := m.Body(t.Format)
	if err != nil {
		return Outcome{Err: err, final: true}
	}
	u, err := url.Parse(t.URL)
	if err != nil {
		return Outcome{Err: errors.New("the webhook has no URL"), final: true}
	}
	client := s.secure
	if u.Scheme != "https" {
		client = s.plain
	}
	begun := s.cfg.now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(body))
	if err != nil {
		return Outcome{Err: bare(err), final: true}
	}
	h := req.Header
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", s.cfg.UserAgent)
	h.Set(TypeHeader, m.Type)
	h.Set(DeliveryHeader, m.ID)
	h.Set(SignatureHeader, Sign(body, begun, t.Secrets...))
	res, err := client.Do(req)
	if err != nil {
		return Outcome{Err: bare(err), Took: s.cfg.now().Sub(begun)}
	}
	defer res.Body.Close()
	out := outcome(res)
	out.Took = s.cfg.now().Sub(begun)
	// What it says is nobody's business: whoever makes a webhook must not read by it what is behind
	// the address. It is taken in bounds, so that the receiver can say it in peace.
	io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer))
	return out
}

// bare is an error without the URL, which may be a secret, in words that say what to do.
func bare(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		if e.Timeout() {
			return fmt.Errorf("the receiver did not answer within %v", attemptTime)
		}
		err = e.Err
	}
	return errors.New(cut(err.Error(), 300))
}

// outcome says what an answer means.
func outcome(res *http.Response) Outcome {
	out := Outcome{Status: res.StatusCode}
	said := cut(fmt.Sprintf("%d %s", res.StatusCode, http.StatusText(res.StatusCode)), 100)
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
		return out
	case res.StatusCode >= 300 && res.StatusCode < 400:
		out.Err = fmt.Errorf("the receiver answered %s: Anteroom does not follow redirects, so use the address that it redirects to", said)
	case res.StatusCode == http.StatusGone:
		out.Err = fmt.Errorf("the receiver answered %s: it no longer accepts deliveries", said)
		out.final = true
	default:
		out.Err = fmt.Errorf("the receiver answered %s", said)
	}
	if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && n > 0 {
		out.later = min(time.Duration(min(n, 24*3600))*time.Second, maxLater)
	}
	return out
}

// Further attempts come after these times, and then after the last of them again and again,
// until a day has passed since the message was made.
var pauses = []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour}

const (
	// giveUpAfter is how long a message is tried.
	giveUpAfter = 24 * time.Hour
	// maxLater bounds what a receiver can ask for by Retry-After.
	maxLater = time.Hour
)

// pause returns for how long to wait after a number of attempts: up to a tenth longer, so that
// what failed together does not come back together.
func pause(attempts int) time.Duration {
	p := pauses[min(attempts, len(pauses))-1]
	return p + mathrand.N(p/10)
}

// delivery is a message with what has come of it.
type delivery struct {
	ID       string    `json:"id"`
	Type     string    `json:"type"`
	Text     string    `json:"text"`
	Created  time.Time `json:"created"`
	State    string    `json:"state"`
	Attempts int       `json:"attempts,omitempty"`
	Status   int       `json:"status,omitempty"`
	Error    string    `json:"error,omitempty"`
	Millis   int64     `json:"ms,omitempty"`
	Last     time.Time `json:"last,omitzero"`
	Next     time.Time `json:"next,omitzero"`
	Message  *Message  `json:"message,omitempty"` // nil once it is over
}

// DeliveryOf returns what has come of a single attempt at a moment.
func DeliveryOf(m Message, o Outcome, at time.Time) anteroom.Delivery {
	d := anteroom.Delivery{ID: m.ID, Type: m.Type, Text: m.Text, State: anteroom.DeliveryDelivered, CreatedOn: m.At, Attempts: 1, Status: o.Status, Millis: o.Took.Milliseconds(), LastOn: at}
	if o.Err != nil {
		d.State, d.Error = anteroom.DeliveryFailed, o.Err.Error()
	}
	return d
}

// Deliveries reads what a queue's saved bytes say, the newest first.
func Deliveries(queue []byte) ([]anteroom.Delivery, error) {
	q, err := parseQueue(queue)
	if err != nil {
		return nil, err
	}
	out := make([]anteroom.Delivery, 0, len(q))
	for i := len(q) - 1; i >= 0; i-- {
		d := q[i]
		out = append(out, anteroom.Delivery{ID: d.ID, Type: d.Type, Text: d.Text, State: d.State, CreatedOn: d.Created, Attempts: d.Attempts, Status: d.Status,
			Error: d.Error, Millis: d.Millis, LastOn: d.Last, NextOn: d.Next})
	}
	return out, nil
}

type savedQueue struct {
	Version    int         `json:"version"`
	Deliveries []*delivery `json:"deliveries"` // in the order of their creation
}

const queueVersion = 1

func parseQueue(data []byte) ([]*delivery, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var q savedQueue
	if err := json.Unmarshal(data, &q); err != nil {
		return nil, fmt.Errorf("webhook: a saved queue cannot be read: %w", err)
	}
	if q.Version != queueVersion {
		return nil, fmt.Errorf("webhook: a saved queue is of version %d, and this program knows version %d", q.Version, queueVersion)
	}
	for _, d := range q.Deliveries {
		if d == nil || d.State == anteroom.DeliveryPending && d.Message == nil {
			return nil, errors.New("webhook: a saved queue has a delivery without a message")
		}
	}
	return q.Deliveries, nil
}
