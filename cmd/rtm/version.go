package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"routemaster/internal/app"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version of rtm",
		Long: `Print the version of rtm, and the version of Go and the platform that it was built for. The console and GET /overview show
the versions of the processes of a bus.`,
		Example: "  rtm version",
		Args:    arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "rtm %s (%s, %s/%s)\n", app.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
