package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"routemaster/internal/app"
	"routemaster/internal/format"
	"routemaster/internal/inspect"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

func newClusterCommand() *cobra.Command {
	return newGroup("cluster", "make a bus on a Redis Cluster, look at its partitions, hold and release them: for the operator",
		"  rtm cluster create --redis-url redis+cluster://localhost:7000\n"+
			"  rtm cluster status --redis-url redis+cluster://localhost:7000",
		newClusterCreateCommand(), newClusterStatusCommand(), newClusterHoldCommand(), newClusterReleaseCommand())
}

func newClusterCreateCommand() *cobra.Command {
	var redis redisFlags
	var count int
	command := &cobra.Command{
		Use:   "create",
		Short: "make a bus on a Redis Cluster",
		Long: `Make a bus on a Redis Cluster, which web and worker wait for. How many partitions it has never changes: so many
masters are of use at most, and each costs a little. If there is a bus already, or only partitions of one, nothing is
changed. Settings of nodes that endanger the bus are printed as warnings.

Redis is the one of the environment, as for the daemons, unless flags say otherwise. The exit status is 0 when the bus was
made, 1 when it was not, 2 for wrong usage.`,
		Example: "  rtm cluster create --redis-url redis+cluster://localhost:7000\n" +
			"  rtm cluster create --partitions 24 --namespace rm:",
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if count < 1 || count > rdb.MaxPartitions {
				return wrongFlag("partitions", fmt.Sprintf("1 to %d", rdb.MaxPartitions))
			}
			config, err := redis.clusterConfig(cmd)
			if err != nil {
				return err
			}
			return createBus(cmd, config, count)
		},
	}
	command.Flags().IntVar(&count, "partitions", store.DefaultPartitions, "make a bus of `COUNT` partitions")
	redis.add(command, "make the bus in")
	return command
}

func createBus(cmd *cobra.Command, config app.Config, count int) error {
	redis, err := app.OpenRedis(config)
	if err != nil {
		return err
	}
	defer redis.Close()
	ctx := cmd.Context()
	err = store.CreateBus(ctx, redis, config.RedisNamespace, count)
	if errors.Is(err, store.ErrBusExists) {
		there, countErr := store.FindPartitionCount(ctx, redis, config.RedisNamespace)
		if countErr != nil {
			return countErr
		}
		return fmt.Errorf("%w: it has %d, and was not changed", err, there)
	}
	if err != nil {
		return err
	}
	status := inspect.ReadCluster(ctx, config.RedisURL, redis.Partitions(config.RedisNamespace, count))
	var where []string
	for _, node := range status.Nodes {
		where = append(where, fmt.Sprintf("%d on %s", len(node.Partitions), node.Address))
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Made a bus with %s: %s.\n", format.Plural(int64(count), "partition"), strings.Join(where, ", "))
	printWarnings(cmd.ErrOrStderr(), status, config)
	return nil
}

// printWarnings prints the risks to a bus.
func printWarnings(w io.Writer, status inspect.ClusterStatus, config app.Config) {
	for _, warning := range status.Warnings(config.MinReplicas) {
		fmt.Fprintf(w, "rtm: warning: %s: %s\n", printable(strings.Join(warning.Nodes, ", ")), printable(warning.Text))
	}
}

// clusterConfig is [redisFlags.config] of commands that need a cluster.
func (f *redisFlags) clusterConfig(cmd *cobra.Command) (app.Config, error) {
	config, err := f.config(cmd)
	if err == nil && !rdb.IsClusterURL(config.RedisURL) {
		err = usageError{errors.New("this Redis is no cluster: its URL must be like redis+cluster://host:7000,host:7001")}
	}
	return config, err
}

// partitionArg reads the argument that is the number of a partition, of so many.
func partitionArg(text string, of int) (int, error) {
	number, err := strconv.Atoi(text)
	if err != nil || number < 0 || number >= of {
		return 0, usageError{fmt.Errorf("there is no partition %s: this bus has 0 to %d", printable(text), of-1)}
	}
	return number, nil
}
