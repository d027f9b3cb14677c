// Command anteroom is a virtual waiting room in front of a web application.
//
// Each subcommand has a file of its own here; what they do lives in the packages.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/zones"
)

// Exit codes: done, failed, not understood, stopped by Ctrl-C.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	zones.Use() // events repeat by the clocks of a place, also on a machine that knows none
	os.Exit(run(os.Args[1:]))
}

// usageError marks mistakes in the command line.
type usageError struct{ error }

// exitError is an error with an exit code of its own.
type exitError struct {
	code int
	error
}

func run(args []string) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	stops := make(chan os.Signal, 1)
	signal.Notify(stops, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-stops:
		case <-ctx.Done():
		}
		signal.Stop(stops) // before anybody hears that the process stops: a second signal ends it at once
		stop()
	}()
	root := rootCommand()
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err != nil {
		if err.Error() != "" { // an answer, as "no match", has only an exit code
			fmt.Fprintln(os.Stderr, "anteroom: "+harmless(err.Error(), "\n\t"))
		}
		if _, ok := errors.AsType[usageError](err); ok {
			return exitUsage
		}
		if e, ok := errors.AsType[exitError](err); ok {
			return e.code
		}
		return exitFailed
	}
	return exitOK
}

// rootCommand returns the tree of all commands.
func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "anteroom",
		Short:         "A virtual waiting room: admits as many visitors as your application can serve and keeps the others in a fair queue",
		SilenceUsage:  true,
		SilenceErrors: true,
		Example: `  anteroom demo
  anteroom run --origin http://localhost:3000 --total-active-users 500 --new-users-per-minute 600`,
	}
	root.Args = commandBelow
	versionFlag := root.Flags().BoolP("version", "v", false, "version for anteroom")
	root.Flags().MarkHidden("version") // the command of that name says it
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *versionFlag {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return err
		}
		return cmd.Help()
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if words := cmd.Flags().Args(); cmd.HasAvailableSubCommands() && len(words) > 0 {
			return commandBelow(cmd, words) // whose flag is not known because the command is not
		}
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
			var known []string
			cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
			if meant := nearest(unknown.GetSpecifiedName(), known); meant != "" {
				return usageError{fmt.Errorf("%w; did you mean --%s?", err, meant)}
			}
		}
		return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	})
	root.AddGroup(&cobra.Group{ID: "serve", Title: "On the machine that runs Anteroom:"}, &cobra.Group{ID: "manage", Title: "For a running Anteroom:"}, &cobra.Group{ID: "check", Title: "Anywhere:"})
	inGroup := func(id string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	inGroup("serve", runCommand(), validateCommand(), keyCommand())
	inGroup("manage", statusCommand(), zoneCommand(), roomCommand(), eventCommand(), listCommand(), tokenCommand(), webhookCommand(), auditCommand(), reportCommand(), backupCommand(), restoreCommand(), configCommand(), clusterCommand(), edgesCommand(), doctorCommand())
	root.SetHelpCommandGroupID("check")
	root.InitDefaultHelpFlag()
	root.Flags().MarkHidden("help") // the last line says it
	inGroup("check", demoCommand(), simulateCommand(), group("rules", "Test bypass rules", rulesTestCommand()), verifyCommand(), versionCommand())
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		c.Hidden = c.Hidden || c.Name() == "help" // the last line says it
	}
	root.SetUsageFunc(usage)
	root.CompletionOptions.HiddenDefaultCmd = true
	return root
}

// commandBelow refuses the name of a command that is not below this one.
func commandBelow(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			known = append(known, below.Name())
		}
	}
	hint := cmd.CommandPath() + " --help lists the commands"
	if meant := nearest(args[0], known); meant != "" {
		hint = "did you mean " + meant + "?"
	}
	return usageError{fmt.Errorf("there is no command %q; %s", strings.TrimPrefix(cmd.CommandPath()+" "+args[0], "anteroom "), hint)}
}

// nearest is the word that somebody meant, which may be its beginning only, or "".
func nearest(word string, known []string) string {
	if i := slices.IndexFunc(known, func(k string) bool { return strings.HasPrefix(k, word) }); i >= 0 {
		return known[i]
	}
	return anteroom.Nearest(word, known, max(2, len(word)/3))
}

// noArgs refuses arguments with a hint.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no argument like %q; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())}
	}
	return nil
}

// version is set by the linker for releases; otherwise the build information has it.
var version = ""

// versionString is the version without a leading "v", or "devel" for a build that knows none.
func versionString() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	// The version that "go install" was asked for, or what the checkout is: a pseudo-version with its
	// commit, and "+dirty" where files differ from it.
	v := strings.TrimPrefix(info.Main.Version, "v")
	if v == "" || v == "(devel)" {
		return "devel"
	}
	return v
}

// explain puts the fix behind errors whose kind says that the input was wrong.
func explain(err error, hint string) error {
	if anteroom.KindOf(err) == anteroom.Invalid {
		return fmt.Errorf("%w\n%s", err, hint)
	}
	return err
}
