package gateway_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/node"
	"github.com/anteroom/anteroom/ticket"
)

// A program with a waiting room before its own handler. Nothing is kept when the process ends: memlink is memory. Package
// natslink keeps it in a directory.
func ExampleGateway_Middleware() {
	room := anteroom.Room{
		Name:     "shop",
		Routes:   []anteroom.Route{{Host: "shop.example"}},
		Settings: anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 60, SessionDuration: 5 * time.Minute},
	}.WithDefaults()
	if faults := room.Check(); len(faults) > 0 {
		log.Fatal(faults)
	}

	ctx, stop := context.WithCancel(context.Background())
	link := memlink.New()
	defer link.Close()
	n, err := node.New(ctx, node.Config{Link: link})
	if err != nil {
		log.Fatal(err)
	}
	rooms := []anteroom.Room{room}
	if err := n.Apply(ctx, rooms); err != nil {
		log.Fatal(err)
	}
	running := make(chan error)
	go func() { running <- n.Run(ctx) }()

	g, err := gateway.New(gateway.Config{Rooms: rooms, Node: n, Keys: ticket.NewKeyring(time.Now())})
	if err != nil {
		log.Fatal(err)
	}
	shop := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "the shop") })
	handler := g.Middleware(shop) // for an http.Server, with ConnContext: g.ConnContext

	// The room has one seat.
	for _, visitor := range []string{"first", "second"} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest("GET", "http://shop.example/", nil))
		fmt.Printf("%s: %d, in the shop: %v\n", visitor, answer.Code, answer.Body.String() == "the shop")
	}

	stop()
	if err := <-running; err != nil {
		log.Fatal(err)
	}
	// Output:
	// first: 200, in the shop: true
	// second: 200, in the shop: false
}
