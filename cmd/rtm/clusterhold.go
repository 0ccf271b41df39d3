package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"routemaster/internal/app"
	"routemaster/internal/format"
	"routemaster/internal/inspect"
	"routemaster/internal/rdb"
)

func newClusterHoldCommand() *cobra.Command {
	var redis redisFlags
	var replicas int
	command := &cobra.Command{
		Use:   "hold PARTITION",
		Short: "have a partition refuse everything, before its slot is moved key by key",
		Long: `Have a partition refuse everything until it is released. Publishers whose topics have their home there get 503, its
subscribers get nothing. Do this before the slot of the partition is moved key by key, as redis-cli does on Redis before
8.4 and Valkey before 9: if its node fails meanwhile, the replica does not know that a part of the keys has gone.

All replicas that are connected must confirm it within a second, and as many as ROUTEMASTER_REDIS_MIN_REPLICAS says, or
--replicas instead. If fewer do, a failover may open the partition again: the exit status is 1, and it must not be moved
yet. Run it again then.

Redis is the one of the environment, as for the daemons, unless flags say otherwise.`,
		Example: "  rtm cluster hold 7\n  rtm cluster hold 7 --replicas 2 --redis-url redis+cluster://localhost:7000",
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if replicas < 0 {
				return wrongFlag("replicas", "0 or more")
			}
			return redis.runOnPartitions(cmd, args, func(config app.Config, status inspect.ClusterStatus, p *rdb.Partition) error {
				wanted := replicas
				if !cmd.Flags().Changed("replicas") {
					wanted = max(config.MinReplicas, connectedReplicas(status, p))
				}
				return hold(cmd, p, wanted)
			})
		},
	}
	command.Flags().IntVar(&replicas, "replicas", 0, "have `COUNT` replicas confirm it, instead of all that are connected")
	redis.add(command, "change")
	return command
}

// connectedReplicas is how many replicas the node of a partition has.
func connectedReplicas(status inspect.ClusterStatus, p *rdb.Partition) int {
	if node := status.NodeOf(p.Number()); node != nil {
		return node.Replicas
	}
	return 0
}

func hold(cmd *cobra.Command, p *rdb.Partition, replicas int) error {
	confirmed, err := p.Hold(cmd.Context(), replicas)
	if err != nil {
		return err
	}
	if confirmed < replicas {
		return fmt.Errorf("partition %d is held, but only %d of %d replicas confirmed it: do not move it yet, because a failover "+
			"would open it again; run this again, or `rtm cluster release %[1]d`", p.Number(), confirmed, replicas)
	}
	if confirmed == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "rtm: warning: no replica is connected: if the node fails while the slot is moved, its keys are lost")
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Partition %d on %s is held, as %s confirmed. Move its slot, then run `rtm cluster release %[1]d`.\n",
		p.Number(), p.Node(), format.Plural(int64(confirmed), "replica"))
	return nil
}

func newClusterReleaseCommand() *cobra.Command {
	var redis redisFlags
	var force bool
	command := &cobra.Command{
		Use:   "release PARTITION...",
		Short: "have partitions that are held be used again",
		Long: `Have partitions that are held, or have come back without their keys, be used again. It is refused while the slot of a
partition is on its way to another node: what is used with a part of its keys elsewhere is damaged. End the move first;
after a failover in the middle of it, redis-cli --cluster fix does. While a master does not say what is on its way to it,
only --force releases a partition. After a loss of keys, run rtm doctor --fix then.

Redis is the one of the environment, as for the daemons, unless flags say otherwise.`,
		Example: "  rtm cluster release 7\n  rtm cluster release 4 7 --redis-url redis+cluster://localhost:7000",
		Args:    arguments(1, rdb.MaxPartitions),
		RunE: func(cmd *cobra.Command, args []string) error {
			return redis.runOnPartitions(cmd, args, func(_ app.Config, status inspect.ClusterStatus, p *rdb.Partition) error {
				return release(cmd, status, p, force)
			})
		},
	}
	command.Flags().BoolVar(&force, "force", false, "release it though masters do not say whether it is on its way")
	redis.add(command, "change")
	return command
}

func release(cmd *cobra.Command, status inspect.ClusterStatus, p *rdb.Partition, force bool) error {
	if of := status.Partitions[p.Number()]; of.State == inspect.Moving {
		return fmt.Errorf("partition %d is on its way to another node (%s): it was not released, because it would be used "+
			"with a part of its keys elsewhere; end the move first", p.Number(), printable(of.Reason))
	}
	if silent := status.Silent(); silent != nil && !force {
		return fmt.Errorf("partition %d was not released: %s did not say whether it is on its way there, with a part of its keys; "+
			"start such a master, or have the cluster forget it; if you know that it has none of them, use --force",
			p.Number(), printable(strings.Join(silent, ", ")))
	}
	if err := p.Release(cmd.Context()); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Partition %d on %s is open.\n", p.Number(), p.Node())
	return nil
}

// runOnPartitions calls a function with each partition of some numbers, and the status of their
// bus, until it fails.
func (f *redisFlags) runOnPartitions(cmd *cobra.Command, numbers []string, do func(app.Config, inspect.ClusterStatus, *rdb.Partition) error) error {
	config, err := f.clusterConfig(cmd)
	if err != nil {
		return err
	}
	redis, partitions, err := openPartitions(cmd.Context(), config)
	if err != nil {
		return err
	}
	defer redis.Close()
	var chosen rdb.Partitions
	for _, number := range numbers {
		at, err := partitionArg(number, len(partitions))
		if err != nil {
			return err
		}
		chosen = append(chosen, partitions[at])
	}
	status := inspect.ReadCluster(cmd.Context(), config.RedisURL, partitions)
	for _, p := range chosen {
		if err = do(config, status, p); err != nil {
			break
		}
	}
	if cmd.Context().Err() != nil {
		return errors.New("stopped; `rtm cluster status` shows what has become of the partition")
	}
	return err
}
