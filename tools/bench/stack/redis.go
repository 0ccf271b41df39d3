package stack

import (
	"context"
	"fmt"
	"time"

	"routemaster/internal/rdb"
)

// RedisStats is the memory and the work of a Redis.
type RedisStats struct {
	// Memory is the used memory, in bytes.
	Memory int64
	// Scripts counts the scripts that have run, which took ScriptTime in all.
	Scripts    int64
	ScriptTime time.Duration
	// Commands counts all commands that have run, including commands in scripts.
	Commands int64
	// CPU is its processor time, more exactly than the system counts it.
	CPU time.Duration
}

// minus is the change since an earlier time.
func (r RedisStats) minus(before RedisStats) RedisStats {
	return RedisStats{
		Memory:     r.Memory - before.Memory,
		Scripts:    r.Scripts - before.Scripts,
		ScriptTime: r.ScriptTime - before.ScriptTime,
		Commands:   r.Commands - before.Commands,
		CPU:        r.CPU - before.CPU,
	}
}

// RedisStats reads the statistics of Redis, of all nodes of a cluster together.
func (s *Stack) RedisStats(ctx context.Context) (total RedisStats, err error) {
	for _, node := range s.nodes {
		if err := total.read(ctx, node); err != nil {
			return total, err
		}
	}
	return total, nil
}

// read adds the statistics of a node.
func (r *RedisStats) read(ctx context.Context, node *rdb.Partition) error {
	info, err := node.InfoMap(ctx, "memory", "commandstats").Result()
	if err != nil {
		return err
	}
	var memory int64
	if _, err := fmt.Sscan(info["Memory"]["used_memory"], &memory); err != nil {
		return fmt.Errorf("redis INFO memory: %w", err)
	}
	r.Memory += memory
	cpu, err := node.CPU(ctx)
	if err != nil {
		return err
	}
	r.CPU += cpu.User + cpu.System
	for _, command := range info["Commandstats"] {
		var calls int64
		if _, err := fmt.Sscanf(command, "calls=%d", &calls); err != nil {
			return fmt.Errorf("redis INFO commandstats: %w", err)
		}
		r.Commands += calls
	}
	ran, found := info["Commandstats"]["cmdstat_evalsha"]
	if !found { // no script has run
		return nil
	}
	var scripts, microseconds int64
	_, err = fmt.Sscanf(ran, "calls=%d,usec=%d", &scripts, &microseconds)
	r.Scripts += scripts
	r.ScriptTime += time.Duration(microseconds) * time.Microsecond
	return err
}

// PackedSize returns the size of a topic's last event as Redis holds it, in bytes.
func (s *Stack) PackedSize(ctx context.Context, topic string) (int64, error) {
	home := s.of(topic)
	event, err := home.HGet(ctx, home.Namespace()+"topic:"+topic, "last_event").Bytes()
	return int64(len(event)), err
}

// of is the partition that has a topic or a subscriber.
func (s *Stack) of(name string) *rdb.Partition {
	return s.partitions[rdb.PartitionOf(name, len(s.partitions))]
}

// LeftOver counts the keys that must be gone once everything is delivered: of batches and
// outboxes, and the indexes of their jobs, in all partitions.
func (s *Stack) LeftOver(ctx context.Context) (keys int64, err error) {
	count := func(page []string) error {
		keys += int64(len(page))
		return nil
	}
	for _, p := range s.partitions {
		names := []string{p.Namespace() + "jobs:index:main"}
		if p.IsOneOfSeveral() {
			names = append(names, p.Namespace()+"jobs:index:relay", p.Namespace()+"relay:taken")
			for i := range s.partitions {
				names = append(names, p.Namespace()+"relay:"+rdb.Number(i).String())
			}
		}
		there, err := p.Exists(ctx, names...).Result()
		if err != nil {
			return 0, err
		}
		keys += there
		if err := p.EachKey(ctx, p.Namespace()+"batch*", count); err != nil {
			return 0, err
		}
	}
	return keys, nil
}
