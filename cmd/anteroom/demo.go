package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/demo/crowd"
	"github.com/anteroom/anteroom/demo/shop"
	"github.com/anteroom/anteroom/server"
)

// demoOptions are the flags of demo. With the defaults somebody who opens the page waits
// about half a minute: the crowd comes at the pace at which the room lets in.
type demoOptions struct {
	listen, admin  string
	active, rate   int
	session        time.Duration
	crowd          int
	language, data string
}

func demoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "A shop, a room with a small limit and a crowd: open the page, wait, get in",
		Long: `Start a toy shop, a waiting room in front of it and a crowd of simulated visitors, all on
this machine. Open the address that is printed: you queue, see the line move, and get in
within a minute. Ctrl-C ends it; nothing is kept.`,
		Example: `  anteroom demo
  anteroom demo --listen :9000 --crowd 200 --language de-DE`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return demo(cmd.Context(), o, cmd.OutOrStdout()) },
	}
	cmd.Flags().StringVar(&o.listen, "listen", ":8080", "`address` for visitors")
	cmd.Flags().StringVar(&o.admin, "admin", "127.0.0.1:8081", "`address` for operators")
	cmd.Flags().IntVar(&o.active, "total-active-users", 20, "sessions at once")
	cmd.Flags().IntVar(&o.rate, "new-users-per-minute", 120, "new sessions in any 60 seconds")
	cmd.Flags().DurationVar(&o.session, "session-duration", 15*time.Second, "how long a session lives after its last request")
	cmd.Flags().IntVar(&o.crowd, "crowd", 50, "simulated visitors a minute; 0 for none")
	cmd.Flags().StringVar(&o.language, "language", "en-US", "`language` of the waiting page")
	cmd.Flags().StringVar(&o.data, "data", "", "data `directory` (a temporary one that is removed)")
	return cmd
}

func demo(ctx context.Context, o demoOptions, out io.Writer) error {
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

	room := anteroom.Room{
		Name: "demo", Routes: []anteroom.Route{{Host: "*", Path: "/"}}, DefaultTemplateLanguage: o.language,
		JSONResponse: true, EnabledOriginCommands: []string{anteroom.CommandRevoke},
		Settings: anteroom.Settings{TotalActiveUsers: o.active, NewUsersPerMinute: o.rate, SessionDuration: o.session},
	}
	if err := room.Check().Err(); err != nil {
		return err
	}
	load := func() (config.Config, error) {
		cfg, err := config.Load(config.LoadOptions{Flags: map[string]string{
			"origin": "http://" + l.Addr().String(), "listen": o.listen, "admin": o.admin, "data": o.data,
			"log-level": "warn", "log-format": "text", "limits-connections-per-address": "0",
			"timeouts-drain": "2s", // an open shop page holds a stream for as long as it may
		}})
		cfg.Rooms = []anteroom.Room{room.WithDefaults()}
		return cfg, err
	}
	cfg, err := load()
	if err != nil {
		return err
	}
	s, err := server.New(ctx, server.Options{Load: load, Log: newLog(cfg.Log), Version: versionString()})
	if err != nil {
		return err
	}
	visit := local(s.Addresses().Visitors[0])
	fmt.Fprintf(out, `
  Anteroom demo
    the shop, behind its waiting room   http://%s/
    status                              http://%s/-/status
    metrics                             http://%s/metrics

  %d at once, %d new a minute, sessions of %v; about %d visitors a minute come.
  Open the shop: you wait, see the line move, and get in. Ctrl-C ends the demo.

`, visit, local(s.Addresses().Admin), local(s.Addresses().Admin), o.active, o.rate, o.session, o.crowd)

	work, stop := context.WithCancel(ctx)
	defer stop()
	var others sync.WaitGroup
	defer others.Wait()
	defer stop()
	if o.crowd > 0 {
		others.Go(func() { demoCrowd(work, o, visit) })
	}
	others.Go(func() { demoProgress(work, s, out) })
	return s.Run(ctx)
}

// demoProgress shows the room's numbers: in place on a terminal, else a line now and then.
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
		for _, st := range s.Status() {
			line := fmt.Sprintf("  inside %d of %d · %d waiting · %d of %d new in the last minute", st.ActiveUsers, st.TotalActiveUsers, st.Waiting, st.AdmittedLastMin, st.NewPerMinute)
			if st.WaitKnown && st.Waiting > 0 {
				line += fmt.Sprintf(" · a newcomer would wait %v", st.WaitOfNewcomer.Round(time.Second))
			}
			fmt.Fprint(out, line+end)
		}
	}
}

// demoCrowd is a first rush that fills the room and a line of about half a minute, then as
// many as get in.
func demoCrowd(ctx context.Context, o demoOptions, visit string) {
	rush := o.active + o.crowd/2
	cfg := crowd.Config{
		Target:   "http://" + visit,
		Paths:    []string{"/", "/cart", "/checkout"},
		Arrivals: []crowd.Arrivals{{Visitors: rush, Over: 2 * time.Second}},
		Pages:    3, Think: 3 * time.Second, Streams: 200, Workers: 32,
		Seed: uint64(time.Now().UnixNano()),
		Mix:  crowd.Mix{Leaving: 0.05, Early: 0.05, Plain: 0.2, Apps: 0.1},
	}
	var first sync.WaitGroup
	first.Go(func() { crowd.Run(ctx, cfg) })
	steady := cfg
	steady.Seed++
	steady.Arrivals = []crowd.Arrivals{{Visitors: o.crowd, Over: time.Minute}}
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
