package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/rules/geo"
)

func validateCommand() *cobra.Command {
	var show bool
	cmd := &cobra.Command{
		Use:     "validate",
		Short:   "Check a configuration as run would load it, and report every error",
		Example: "  anteroom validate --config anteroom.yaml",
		Args:    noArgs,
	}
	load := configFlags(cmd)
	form := outputFlags(cmd.Flags())
	cmd.Flags().BoolVar(&show, "show", false, "print the configuration in force")
	cmd.Flags().MarkDeprecated("show", "use \"anteroom config show\"; the next release drops it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := load()
		if err == nil {
			_, err = geo.Open(cfg.GeoIP, nil)
		}
		out := cmd.OutOrStdout()
		if !form.people() {
			result := struct {
				Valid  bool            `json:"valid"`
				Faults anteroom.Faults `json:"faults"`
				Error  string          `json:"error,omitempty"`
				Rooms  int             `json:"rooms"`
				// Warnings are about what is valid and looks like a slip.
				Warnings []string `json:"warnings,omitempty"`
			}{Valid: err == nil, Faults: anteroom.Faults{}, Rooms: len(cfg.Rooms), Warnings: cfg.Warnings}
			if faults, ok := errors.AsType[anteroom.Faults](err); ok {
				result.Faults = faults
			} else if err != nil {
				result.Error = err.Error()
			}
			if e := form.data(out, result); e != nil {
				return e
			}
			if err != nil {
				return errors.New("the configuration has errors")
			}
			return nil
		}
		if err != nil {
			return err
		}
		for _, w := range cfg.Warnings {
			fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
		}
		if show {
			fmt.Fprint(out, cfg.Effective())
			return nil
		}
		fmt.Fprintf(out, "The configuration is valid: %s, %s.\n", count(len(cfg.Sites), "site"), count(len(cfg.Rooms), "room"))
		return nil
	}
	return cmd
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
