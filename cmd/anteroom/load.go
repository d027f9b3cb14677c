package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/server"
)

// configFlags adds --config and one flag for each key of the configuration, and returns
// what loads it: file, then environment, then the flags that were given.
func configFlags(cmd *cobra.Command) func() (config.Config, error) {
	file := cmd.Flags().StringP("config", "c", os.Getenv("ANTEROOM_CONFIG"), "YAML configuration `file`; also ANTEROOM_CONFIG")
	for _, f := range config.Flags() {
		if f.Bool {
			cmd.Flags().Bool(f.Name, f.Default == "true", f.Usage)
		} else {
			cmd.Flags().String(f.Name, f.Default, f.Usage)
		}
		if !common[f.Name] {
			cmd.Flags().MarkHidden(f.Name)
		}
	}
	join := cmd.Flags().String("cluster", "", "join the cluster of the nodes at these `addresses`; short for --cluster-join, with --cluster-secret-file")
	return func() (config.Config, error) {
		given := map[string]string{}
		if *join != "" {
			given["cluster-join"] = *join
		}
		cmd.Flags().Visit(func(f *pflag.Flag) {
			for _, known := range config.Flags() {
				if known.Name == f.Name {
					given[f.Name] = f.Value.String()
				}
			}
		})
		return config.Load(config.LoadOptions{File: *file, Env: os.Environ(), Flags: given, Check: server.Check, CheckSecret: server.CheckSecret})
	}
}

// common are the flags that --help shows; the others are on the configuration's manual
// page, docs/config.md, and work all the same.
var common = map[string]bool{"origin": true, "listen": true, "admin": true, "data": true, "total-active-users": true,
	"new-users-per-minute": true, "session-duration": true, "queueing-method": true, "queue-all": true,
	"log-level": true, "log-format": true, "on-failure": false, "cluster-secret-file": true, "cluster-listen": true}
