package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/server"
)

func runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Start Anteroom",
		Long: `Serve visitors: the gateway in front of your application.

Settings come from the file (--config), the environment (ANTEROOM_LISTEN, …) and flags: the
environment overrides the file, and flags override both. Every key of the file has a flag;
docs/config.md lists them all.

Signals: SIGTERM and Ctrl-C finish requests and stop. SIGHUP reloads the configuration. SIGUSR2
starts the current binary with the current configuration, without losing a connection.`,
		Example: `  anteroom run --origin http://localhost:3000
  anteroom run --config /etc/anteroom/config.yaml
  ANTEROOM_ORIGIN=http://localhost:3000 anteroom run --total-active-users 500`,
		Args: noArgs,
	}
	load := configFlags(cmd)
	newJournal := cmd.Flags().Bool("new-journal", false, "drop a damaged journal, with its sessions and places, and start a new one")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return explain(serve(cmd.Context(), load, *newJournal), "anteroom validate checks a configuration without serving; docs/config.md explains every key")
	}
	return cmd
}

func serve(ctx context.Context, load func() (config.Config, error), newJournal bool) error {
	cfg, err := load()
	if err != nil {
		return err
	}
	// Visitors are served without a log, too, when whoever reads it at the other end of a pipe has ended.
	signal.Ignore(syscall.SIGPIPE)
	heedMemory(os.DirFS("/"))
	log, flush := newLog(cfg.Log)
	defer flush()
	opts := server.Options{Load: load, Log: log, Version: versionString(), NewJournal: newJournal}
	if opts.Inherited, err = server.Inherited(); err != nil {
		return err
	}
	s, err := server.New(ctx, opts)
	if err != nil && ctx.Err() != nil {
		log.Info("stopped before serving")
		return nil
	}
	if err != nil {
		return err
	}
	if token := s.FirstToken(); token != "" {
		scheme := "http"
		if cfg.AdminTLS.On() {
			scheme = "https"
		}
		flush()
		fmt.Fprintf(os.Stderr, "This is the API token, with every permission. It is not shown again, so keep it:\n\n  %s\n\nSign in to the dashboard with it: %s://%s/\n\n",
			token, scheme, local(s.Addresses().Admin))
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, append([]os.Signal{syscall.SIGHUP}, handOverSignals...)...)
	defer signal.Stop(signals)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case sig := <-signals:
				if sig == syscall.SIGHUP {
					s.Reload(ctx, "SIGHUP") // what went wrong is in the log
					continue
				}
				if err := s.HandOver(ctx); err != nil {
					log.Error("the restart failed; this process continues to serve", "error", err)
				}
			}
		}
	}()
	return s.Run(ctx)
}
