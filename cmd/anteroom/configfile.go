package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/api/client"
	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/server"
)

func configShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the configuration that run would use, or that a running Anteroom uses, with all defaults",
		Long: `Show the configuration that "anteroom run" would use with the same file, environment and flags, defaults
included. Remarks say which values do not come from the file. The output is itself a configuration file.`,
		Example: `  anteroom config show --config anteroom.yaml
  anteroom config show --running`,
		Args: noArgs,
	}
	load := configFlags(cmd)
	r := remoteFlags(cmd)
	running := cmd.Flags().Bool("running", false, "what a running Anteroom was started or last reloaded with")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		text, err := "", error(nil)
		if *running {
			var c manage.Configuration
			c, err = r.configuration(cmd.Context())
			text = c.YAML
		} else {
			var cfg config.Config
			cfg, err = load()
			text = cfg.Effective()
		}
		if err != nil {
			return err
		}
		if r.form == "json" {
			data, err := config.JSON(text)
			if err != nil {
				return err
			}
			return printJSON(cmd.OutOrStdout(), data)
		}
		_, err = io.WriteString(cmd.OutOrStdout(), text)
		return err
	}
	return cmd
}

// configuration reads what a running Anteroom uses.
func (r *remote) configuration(ctx context.Context) (got manage.Configuration, err error) {
	var c *client.Client
	if c, err = r.client(); err == nil {
		err = c.Do(ctx, http.MethodGet, ours+"/configuration", nil, nil, &got)
	}
	return got, advise(err)
}

// loadFile reads a file as run would, without environment and flags.
func loadFile(name string) (config.Config, error) {
	return config.Load(config.LoadOptions{File: name, Check: server.Check, CheckSecret: server.CheckSecret})
}

// fromCluster reports whether a node whose file has no sites takes a key from other nodes.
func fromCluster(d config.Difference) bool {
	return strings.HasPrefix(d.Key, "sites") || strings.HasPrefix(d.Key, "rooms") || d.Key == "cookie_name"
}

func configDiff() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff FILE [OTHER]",
		Short: "Show how a file differs from what a running Anteroom uses, or from another file",
		Long: `Show what FILE would change in a running Anteroom, or how OTHER differs from FILE. Both are compared with
their defaults filled in. The exit code is 0 if they are the same, 1 if they differ or cannot be read.`,
		Example: `  anteroom config diff anteroom.yaml
  anteroom config diff anteroom.yaml next-week.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return names("FILE")(cmd, args)
		},
	}
	r := remoteFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		file, err := loadFile(args[len(args)-1])
		if err != nil {
			return err
		}
		before := ""
		if len(args) == 2 {
			var first config.Config
			first, err = loadFile(args[0])
			before = first.Effective()
		} else {
			var running manage.Configuration
			running, err = r.configuration(cmd.Context())
			before = running.YAML
		}
		if err != nil {
			return err
		}
		differences, err := config.Compare(before, file.Effective())
		if err != nil {
			return err
		}
		if len(args) == 1 && len(file.Sites) == 0 {
			differences = slices.DeleteFunc(differences, fromCluster)
		}
		if err := put(r.output, cmd.OutOrStdout(), append([]config.Difference{}, differences...), showDifferences); err != nil || len(differences) == 0 {
			return err
		}
		return exitError{exitFailed, errors.New("")}
	}
	return cmd
}

func showDifferences(w io.Writer, differences []config.Difference) error {
	if len(differences) == 0 {
		_, err := fmt.Fprintln(w, "no differences")
		return err
	}
	for _, d := range differences {
		line := ""
		switch {
		case d.Old == nil:
			line = fmt.Sprintf("+ %s: %s", d.Key, short(*d.New))
		case d.New == nil:
			line = fmt.Sprintf("- %s: %s", d.Key, short(*d.Old))
		default:
			line = fmt.Sprintf("~ %s: %s -> %s", d.Key, short(*d.Old), short(*d.New))
		}
		if _, err := fmt.Fprintln(w, harmless(line, "")); err != nil {
			return err
		}
	}
	return nil
}

func configFormat() *cobra.Command {
	var write, check bool
	cmd := &cobra.Command{
		Use:   "fmt FILE",
		Short: "Print a configuration file in its canonical form; - is standard input",
		Long: `Print a configuration file in its canonical form: keys in the order of docs/config.md, indented by two spaces.
Comments stay with the keys they belong to. The file keeps its meaning.`,
		Example: `  anteroom config fmt anteroom.yaml
  anteroom config fmt --write anteroom.yaml`,
		Args: names("FILE"),
	}
	cmd.Flags().BoolVarP(&write, "write", "w", false, "rewrite the file")
	cmd.Flags().BoolVar(&check, "check", false, "print nothing; exit code 1 if the file is not in canonical form")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		file := args[0]
		if write && (check || file == "-") {
			return usageError{errors.New("--write needs a file, and no --check")}
		}
		text, err := readInput(file, cmd.InOrStdin(), 4<<20)
		if err != nil {
			return err
		}
		formatted, err := config.Format(text)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", file, err)
		case check && !bytes.Equal(text, formatted):
			return fmt.Errorf("%s is not in canonical form; anteroom config fmt --write rewrites it", file)
		case check || write && bytes.Equal(text, formatted):
			return nil
		case write:
			return os.WriteFile(file, formatted, 0) // in place: owner and permissions stay
		}
		_, err = cmd.OutOrStdout().Write(formatted)
		return err
	}
	return cmd
}
