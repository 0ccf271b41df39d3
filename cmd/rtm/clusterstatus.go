package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"routemaster/internal/app"
	"routemaster/internal/format"
	"routemaster/internal/inspect"
	"routemaster/internal/terminal"
)

// errNotOpen says that some partitions are not in use.
var errNotOpen = errors.New("not all partitions are open")

func newClusterStatusCommand() *cobra.Command {
	var redis redisFlags
	var asJSON bool
	command := &cobra.Command{
		Use:   "status",
		Short: "show in which state the partitions of a bus are, and on which nodes",
		Long: `Show where each partition of a bus is, and its state: open; held (or come back without its keys); moving, while its
slot is on its way to another node; away, if its node does not answer; or mismatched, if it says that it is another one.
Then the masters of the cluster, and on stderr as warnings the settings of theirs that endanger the bus. What does not
answer within 2 s does not hold up the others.

Without a terminal each partition is a line with the word partition, its number, slot, node, state and reason; and each
node one with the word node, its address, how many partitions it has, how many replicas are connected, the bytes that it
uses and may use (0: no limit), and why it does not answer; separated by tabs. --json prints an object, which has the
warnings too.

Redis is the one of the environment, as for the daemons, unless flags say otherwise. The exit status is 0 when all
partitions are open, 1 when some are not or nothing can be read, 2 for wrong usage.`,
		Example: "  rtm cluster status\n  rtm cluster status --json --redis-url redis+cluster://localhost:7000",
		Args:    arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := redis.clusterConfig(cmd)
			if err != nil {
				return err
			}
			return showStatus(cmd, config, asJSON)
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	redis.add(command, "read")
	return command
}

func showStatus(cmd *cobra.Command, config app.Config, asJSON bool) error {
	redis, partitions, err := openPartitions(cmd.Context(), config)
	if err != nil {
		return err
	}
	defer redis.Close()
	status := inspect.ReadCluster(cmd.Context(), config.RedisURL, partitions)
	if asJSON {
		err = writeJSON(cmd.OutOrStdout(), newClusterView(status, config))
	} else if err = printClusterStatus(cmd.OutOrStdout(), status); err == nil {
		printWarnings(cmd.ErrOrStderr(), status, config)
	}
	if err == nil && !status.AreOpen() {
		err = errNotOpen
	}
	return err
}

func printClusterStatus(w io.Writer, s inspect.ClusterStatus) error {
	if !terminal.Is(w) {
		return lines(w, statusLines(s))
	}
	if err := partitionTable(s).table(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return nodeTable(s).table(w)
}

// statusLines are the rows for scripts.
func statusLines(s inspect.ClusterStatus) (rows [][]string) {
	for _, p := range s.Partitions {
		rows = append(rows, []string{"partition", strconv.Itoa(int(p.Number)), strconv.Itoa(p.Slot), p.Node, string(p.State), p.Reason})
	}
	for _, n := range s.Nodes {
		rows = append(rows, []string{"node", n.Address, strconv.Itoa(len(n.Partitions)), strconv.Itoa(n.Replicas),
			strconv.FormatInt(n.MemoryUsed, 10), strconv.FormatInt(n.MemoryMax, 10), n.Reason})
	}
	return rows
}

func partitionTable(s inspect.ClusterStatus) list {
	l := list{header: []string{"PARTITION", "SLOT", "NODE", "STATE"}}
	for _, p := range s.Partitions {
		state := string(p.State)
		if p.Reason != "" {
			state += ": " + p.Reason
		}
		l.rows = append(l.rows, []string{strconv.Itoa(int(p.Number)), strconv.Itoa(p.Slot), p.Node, state})
	}
	return l
}

func nodeTable(s inspect.ClusterStatus) list {
	l := list{header: []string{"NODE", "PARTITIONS", "REPLICAS", "MEMORY"}}
	for _, n := range s.Nodes {
		replicas, memory := strconv.Itoa(n.Replicas), format.Megabytes(n.MemoryUsed)
		switch {
		case n.Reason != "":
			replicas, memory = format.Unknown, "away: "+n.Reason
		case n.MemoryMax > 0:
			memory += " of " + format.Megabytes(n.MemoryMax)
		default:
			memory += ", no limit"
		}
		l.rows = append(l.rows, []string{n.Address, strconv.Itoa(len(n.Partitions)), replicas, memory})
	}
	return l
}

// clusterView is the status as JSON.
type clusterView struct {
	Partitions []partitionView `json:"partitions"`
	Nodes      []nodeView      `json:"nodes"`
	Warnings   []warningView   `json:"warnings"`
}

type partitionView struct {
	Number int    `json:"number"`
	Slot   int    `json:"slot"`
	Node   string `json:"node"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

type nodeView struct {
	Address    string `json:"address"`
	Partitions []int  `json:"partitions"`
	Replicas   int    `json:"replicas"`
	// Bytes; the maximum is 0 if there is none.
	MemoryUsed int64  `json:"memory_used_bytes"`
	MemoryMax  int64  `json:"memory_max_bytes"`
	Reason     string `json:"reason,omitempty"`
}

type warningView struct {
	Nodes []string `json:"nodes"`
	Text  string   `json:"text"`
}

func newClusterView(s inspect.ClusterStatus, config app.Config) clusterView {
	view := clusterView{Warnings: []warningView{}}
	for _, p := range s.Partitions {
		view.Partitions = append(view.Partitions, partitionView{int(p.Number), p.Slot, p.Node, string(p.State), p.Reason})
	}
	for _, n := range s.Nodes {
		numbers := []int{}
		for _, number := range n.Partitions {
			numbers = append(numbers, int(number))
		}
		view.Nodes = append(view.Nodes, nodeView{n.Address, numbers, n.Replicas, n.MemoryUsed, n.MemoryMax, n.Reason})
	}
	for _, w := range s.Warnings(config.MinReplicas) {
		view.Warnings = append(view.Warnings, warningView(w))
	}
	return view
}
