package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/server"
	"github.com/anteroom/anteroom/sim/demo/crowd"
	"github.com/anteroom/anteroom/sim/demo/shop"
)

// demoOptions are the flags of demo. With the defaults somebody who opens the page waits
// about half a minute: the crowd comes at the pace at which the room lets in.
type demoOptions struct {
	listen, admin  string
	active, rate   int
	session        time.Duration
	crowd          int
	language, data string
	shopOnly       bool
}

func demoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Start a demo shop, a room with a small limit and simulated visitors",
		Long: `Start a toy shop, a waiting room in front of it and a crowd of simulated visitors, all on this
machine. Open the addresses that it prints: you wait for the shop, see the queue move, and get in
within a minute. The dashboard shows it live, with a month of made-up history. Ctrl-C stops the
demo; nothing is kept.`,
		Example: `  anteroom demo
  anteroom demo --listen :9000 --crowd 200 --language de-DE`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return demo(cmd.Context(), o, cmd.OutOrStdout()) },
	}
	cmd.Flags().StringVar(&o.listen, "listen", ":8080", "`address` for visitors")
	cmd.Flags().StringVar(&o.admin, "admin", "127.0.0.1:8081", "admin `address`")
	cmd.Flags().IntVar(&o.active, "total-active-users", 120, "maximum number of active users")
	cmd.Flags().IntVar(&o.rate, "new-users-per-minute", 120, "maximum number of new users in any 60 seconds")
	cmd.Flags().DurationVar(&o.session, "session-duration", 45*time.Second, "how long a session lasts after its last request")
	cmd.Flags().IntVar(&o.crowd, "crowd", 100, "simulated visitors per minute; 0 for none")
	cmd.Flags().StringVar(&o.language, "language", "en-US", "`language` of the waiting page")
	cmd.Flags().BoolVar(&o.shopOnly, "shop-only", false, "serve only the shop at --listen, to put an Anteroom of your own in front of it")
	cmd.Flags().StringVar(&o.data, "data", "", "data `directory` (default: a temporary one, removed at the end)")
	return cmd
}

func demo(ctx context.Context, o demoOptions, out io.Writer) error {
	if o.shopOnly {
		return demoShop(ctx, o, out)
	}
	if o.data == "" {
		dir, err := os.MkdirTemp("", "anteroom-demo-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.data = filepath.Join(dir, "data")
	}
	goods, err := shop.New(shop.Config{SessionDuration: o.session})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	origin := &http.Server{Handler: goods, ReadHeaderTimeout: 5 * time.Second}
	go origin.Serve(l)
	defer origin.Close()

	load := func() (config.Config, error) {
		cfg, err := config.Load(config.LoadOptions{Flags: map[string]string{
			"origin": "http://" + l.Addr().String(), "listen": o.listen, "admin": o.admin, "data": o.data,
			"log-level": "warn", "log-format": "text", "limits-connections-per-address": "0",
			"timeouts-drain": "2s", // an open shop page holds a stream for as long as it may
		}})
		cfg.Rooms = nil // made below, so that the dashboard can change them
		return cfg, err
	}
	cfg, err := load()
	if err != nil {
		return err
	}
	log, flush := newLog(cfg.Log)
	defer flush()
	s, err := server.New(ctx, server.Options{Load: load, Log: log, Version: versionString()})
	if err != nil {
		return err
	}
	work, stop := context.WithCancel(ctx)
	var others sync.WaitGroup
	defer others.Wait()
	defer stop()
	visit, admin := local(s.Addresses().Visitors[0]), local(s.Addresses().Admin)
	open, past, err := demoRooms(ctx, s.Manager(), o)
	if err != nil {
		return err
	}
	login := ""
	if token := s.FirstToken(); token != "" {
		login = "#token=" + token
	} else {
		login = "   (use your existing token)"
	}
	fmt.Fprintf(out, `
  Anteroom demo
    the shop, behind its waiting room   http://%s/
    the dashboard                       http://%s/%s
    status and metrics                  http://%s/-/status, /metrics

  Up to %d active users and %d new users per minute, sessions of %v; about %d visitors arrive per
  minute, sometimes many together. Open the shop: you wait, see the queue move, and get in. Open the
  dashboard: you see all visitors, and a month of made-up history. Ctrl-C stops the demo.

`, visit, admin, login, admin, o.active, o.rate, o.session, o.crowd)

	if past != nil {
		others.Go(func() {
			if err := past(work, s); err != nil && work.Err() == nil {
				fmt.Fprintln(out, "  no made-up history:", err)
			}
		})
	}
	if o.crowd > 0 {
		others.Go(func() { demoCrowd(work, o, visit) })
	}
	others.Go(func() {
		if err := open(work); err != nil && work.Err() == nil {
			fmt.Fprintln(out, "  the shop stays closed:", err)
		}
	})
	others.Go(func() { demoProgress(work, s, out) })
	return s.Run(work)
}

// demoShop serves the shop without a waiting room.
func demoShop(ctx context.Context, o demoOptions, out io.Writer) error {
	goods, err := shop.New(shop.Config{SessionDuration: o.session})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "The shop, without a waiting room: http://%s/\n", local(l.Addr().String()))
	origin := &http.Server{Handler: goods, ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { origin.Close() })()
	if err := origin.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// demoProgress shows the numbers of the room in which most people are: in place on a terminal, else a line now and then.
func demoProgress(ctx context.Context, s *server.Server, out io.Writer) {
	every, end := 10*time.Second, "\n"
	if st, err := os.Stdout.Stat(); err == nil && st.Mode()&os.ModeCharDevice != 0 && out == io.Writer(os.Stdout) {
		every, end = time.Second, "   \r"
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		rooms := s.Status()
		if len(rooms) == 0 {
			continue
		}
		st := slices.MaxFunc(rooms, func(a, b anteroom.Status) int {
			return cmp.Compare(a.ActiveUsers+a.Waiting, b.ActiveUsers+b.Waiting)
		})
		line := "  "
		if room := s.Manager().State().Room(st.Room); room != nil {
			line += room.Name + ": "
		}
		line += fmt.Sprintf("%d of %d active users · %d waiting · %d of %d new users in the last minute", st.ActiveUsers, st.TotalActiveUsers, st.Waiting, st.AdmittedLastMin, st.NewPerMinute)
		if st.WaitKnown && st.Waiting > 0 {
			line += fmt.Sprintf(" · wait for new visitors %v", st.WaitOfNewcomer.Round(time.Second))
		}
		fmt.Fprint(out, line+end)
	}
}

// demoCrowd is a first rush that makes a line of about half a minute, then a few less than get in,
// with a surge every few minutes.
func demoCrowd(ctx context.Context, o demoOptions, visit string) {
	cfg := crowd.Config{
		Target:   "http://" + visit,
		Paths:    []string{"/", "/cart", "/checkout"},
		Arrivals: []crowd.Arrivals{{Visitors: o.crowd * 3 / 4, Over: 2 * time.Second}},
		Pages:    3, Think: 3 * time.Second, Streams: 200, Workers: 32,
		Seed: uint64(time.Now().UnixNano()),
		Mix:  crowd.Mix{Leaving: 0.05, Early: 0.05, Plain: 0.2, Apps: 0.1},
	}
	var first sync.WaitGroup
	first.Go(func() { crowd.Run(ctx, cfg) })
	steady := cfg
	steady.Seed++
	const quiet = 3
	steady.Arrivals = []crowd.Arrivals{{Visitors: quiet * o.crowd, Over: quiet * time.Minute}, {Visitors: o.crowd, Over: 10 * time.Second}}
	steady.Repeat = true
	crowd.Run(ctx, steady)
	first.Wait()
}

// local is an address that a browser on this machine can open.
func local(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}
