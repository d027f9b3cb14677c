package shop

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/net/websocket"
)

// maxMessage is the longest WebSocket message that is echoed, in bytes.
const maxMessage = 64 << 10

// ticker sends what is left and who is inside, until the client goes.
func (s *Shop) ticker(w http.ResponseWriter, r *http.Request) {
	rc := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "private, no-store")
	t := time.NewTicker(s.cfg.Tick)
	defer t.Stop()
	for {
		b, err := json.Marshal(map[string]any{"inside": s.Inside(), "stock": s.stock.all()})
		if err != nil {
			return
		}
		if _, err := fmt.Fprintf(w, "event: stock\ndata: %s\n\n", b); err != nil {
			return
		}
		if rc.Flush() != nil {
			return
		}
		select {
		case <-t.C:
		case <-r.Context().Done():
			return
		}
	}
}

// echo sends every message back. It takes clients without an Origin header too: a demo is
// there to be tried with any tool.
func echo() http.Handler {
	return websocket.Server{Handler: func(c *websocket.Conn) {
		c.MaxPayloadBytes = maxMessage
		for {
			var m string
			if err := websocket.Message.Receive(c, &m); err != nil {
				if err != io.EOF {
					c.Close()
				}
				return
			}
			if websocket.Message.Send(c, m) != nil {
				return
			}
		}
	}}
}
