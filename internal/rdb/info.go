package rdb

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Memory is Redis's memory as it reports it.
type Memory struct {
	// Used is in bytes, counted as Redis counts it against its limit.
	Used int64
	// Max is Redis' own limit in bytes, 0 if it has none.
	Max int64
	// Evicts is whether Redis throws keys away by itself at its limit.
	Evicts bool
	// Freeing is whether Redis is about to free more, in the background.
	Freeing bool
}

// ErrMemoryUnknown says that Redis does not report its memory. The embedded engine does not.
var ErrMemoryUnknown = errors.New("redis does not report its memory")

// Memory asks the Redis that has the partition about its memory. It fails with [ErrMemoryUnknown]
// or [bus.ErrUnavailable].
func (p *Partition) Memory(ctx context.Context) (Memory, error) {
	fields, err := p.info(ctx, "memory")
	if errors.Is(err, errNoInfo) {
		return Memory{}, fmt.Errorf("%w: %w", ErrMemoryUnknown, err)
	}
	if err != nil {
		return Memory{}, Wrap("memory", err)
	}
	used, err := strconv.ParseInt(fields["used_memory"], 10, 64)
	if err != nil {
		return Memory{}, ErrMemoryUnknown
	}
	limit := Integer(fields["maxmemory"], 0)
	// Buffers for replicas are in it, but Redis does not count them against its limit, nor can
	// dropping events lower them.
	used -= Integer(fields["mem_not_counted_for_evict"], 0)
	policy := fields["maxmemory_policy"]
	return Memory{
		Used: used, Max: limit, Evicts: limit > 0 && policy != "" && policy != "noeviction",
		Freeing: Integer(fields["lazyfree_pending_objects"], 0) > 0,
	}, nil
}

// CPU is how much processor time Redis has taken since its start.
type CPU struct{ User, System time.Duration }

// CPU asks the Redis that has the partition for its processor time, which is zero where Redis does
// not report it. It fails with [bus.ErrUnavailable].
func (p *Partition) CPU(ctx context.Context) (CPU, error) {
	fields, err := p.info(ctx, "cpu")
	if err != nil && !errors.Is(err, errNoInfo) {
		return CPU{}, Wrap("cpu", err)
	}
	return CPU{seconds(fields["used_cpu_user"]), seconds(fields["used_cpu_sys"])}, nil
}

// RunID returns the run id of the partition's server, which changes with each restart. It is empty
// where Redis does not report one. It fails with [bus.ErrUnavailable].
func (p *Partition) RunID(ctx context.Context) (string, error) {
	fields, err := p.info(ctx, "server")
	if errors.Is(err, errNoInfo) {
		return "", nil
	}
	return fields["run_id"], Wrap("run id", err)
}

// RefuseClusterNode fails if the keys of a bus without partitions are on a node of a Redis Cluster,
// which has only a part of them. The embedded engine is none. It fails with [bus.ErrUnavailable].
func (p *Partition) RefuseClusterNode(ctx context.Context) error {
	fields, err := p.info(ctx, "cluster")
	switch {
	case errors.Is(err, errNoInfo):
		return nil
	case fields["cluster_enabled"] == "1":
		return errors.New("this Redis is a node of a Redis Cluster: give the URL of the cluster, like redis+cluster://host:7000,host:7001")
	}
	return Wrap("look for a cluster", err)
}

// errNoInfo says that Redis does not know a section of INFO, or does not show it to this user.
var errNoInfo = errors.New("no INFO")

// info reads the lines "name:value" of a section of INFO.
func (p *Partition) info(ctx context.Context, section string) (map[string]string, error) {
	var reply Reply[string]
	err := p.atHome(ctx, func(pipe Commands) { reply = pipe.Info(ctx, section) })
	info := reply.Val()
	if Lacks(err) {
		return nil, fmt.Errorf("%w: %w", errNoInfo, err)
	}
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(info)); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// seconds reads a number of seconds; 0 if it is none.
func seconds(text string) time.Duration {
	n, _ := strconv.ParseFloat(text, 64)
	return time.Duration(n * float64(time.Second))
}
