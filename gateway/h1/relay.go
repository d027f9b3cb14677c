package h1

import (
	"io"
	"net/http"

	"github.com/anteroom/anteroom/gateway/socket"
)

// relayLeast is the rest of a body from which a Relay is worth its calls, in bytes.
const relayLeast = 16 << 10

// Relay passes the rest of an answer from the origin's socket to the visitor's without copying it into the process.
type Relay struct {
	from *body
	to   *reply
	pipe *socket.Pipe
}

// RelayOf returns nil where that cannot be: the body has chunks, is short or of unknown length, or bytes of it that were
// received are not read; bytes of the answer are not sent; one of the connections has TLS; the writer is not of this package; or the
// system has no pipe for it.
func RelayOf(w http.ResponseWriter, from io.Reader) *Relay {
	to, ok := w.(*reply)
	if !ok || to.v.sock == nil || !to.sent || len(to.out) > 0 || to.err != nil || !to.hasBody() {
		return nil
	}
	b, ok := from.(*body)
	if !ok || b.src != nil || b.left < relayLeast || to.wrote+b.left > to.length || b.x.in.Buffered() > 0 {
		return nil
	}
	if c := b.x.conn; c == nil || c.sock == nil || c.state != nil {
		return nil
	}
	pipe := socket.TakePipe()
	if pipe == nil {
		return nil
	}
	to.relay = Relay{b, to, pipe}
	return &to.relay
}

// Take waits for the next part and takes it. With the last one, or without it, the error is what Read of the body has;
// after errors.ErrUnsupported, the rest has to be read.
func (r *Relay) Take() error {
	_, err := r.from.next(nil, r.pipe)
	return err
}

// Send sends at most so many bytes of what was taken, with 0 those that leave without waiting, and returns how many are left.
func (r *Relay) Send(most int) (left int, err error) {
	w, before := r.to, r.pipe.Held()
	left, w.err = r.pipe.Drain(w.v.sock, most)
	w.wrote += int64(before - left)
	return left, w.err
}

// End gives the pipe back.
func (r *Relay) End() {
	r.pipe.Give()
	*r = Relay{}
}
