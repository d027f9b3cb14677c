// Command loopback is Anteroom with the configuration file that it is given, and may reach push services of this machine, as those of tests
// are. No configuration of the real binary allows that.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"

	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/server"
)

func main() {
	fmt.Fprintln(os.Stderr, run(os.Args[len(os.Args)-1]))
	os.Exit(1)
}

func run(file string) error {
	s, err := server.New(context.Background(), server.Options{
		Load: func() (config.Config, error) {
			return config.Load(config.LoadOptions{File: file, Check: server.Check, CheckSecret: server.CheckSecret})
		},
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Version: "test", PushNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	if err != nil {
		return err
	}
	return s.Run(context.Background())
}
