package stack

import (
	"context"
	"fmt"
	"time"
)

// RedisStats is what Redis holds and has done.
type RedisStats struct {
	// Memory is what it holds, in bytes.
	Memory int64
	// Scripts counts the scripts that have run, which took ScriptTime in all.
	Scripts    int64
	ScriptTime time.Duration
	// Commands counts all commands that have run, those in scripts included.
	Commands int64
	// CPU is its processor time, more exactly than the system counts it.
	CPU time.Duration
}

// RedisStats reads the statistics of Redis.
func (s *Stack) RedisStats(ctx context.Context) (stats RedisStats, err error) {
	info, err := s.redis.InfoMap(ctx, "memory", "commandstats").Result()
	if err != nil {
		return stats, err
	}
	if _, err := fmt.Sscan(info["Memory"]["used_memory"], &stats.Memory); err != nil {
		return stats, fmt.Errorf("redis INFO memory: %w", err)
	}
	cpu, err := s.redis.CPU(ctx)
	if err != nil {
		return stats, err
	}
	stats.CPU = cpu.User + cpu.System
	for _, command := range info["Commandstats"] {
		var calls int64
		if _, err := fmt.Sscanf(command, "calls=%d", &calls); err != nil {
			return stats, fmt.Errorf("redis INFO commandstats: %w", err)
		}
		stats.Commands += calls
	}
	ran, found := info["Commandstats"]["cmdstat_evalsha"]
	if !found { // no script has run
		return stats, nil
	}
	var microseconds int64
	_, err = fmt.Sscanf(ran, "calls=%d,usec=%d", &stats.Scripts, &microseconds)
	stats.ScriptTime = time.Duration(microseconds) * time.Microsecond
	return stats, err
}

// PackedSize returns the size of a topic's last event as Redis holds it, in bytes.
func (s *Stack) PackedSize(ctx context.Context, topic string) (int64, error) {
	event, err := s.redis.HGet(ctx, "topic:"+topic, "last_event").Bytes()
	return int64(len(event)), err
}

// LeftOver counts the keys that must be gone once everything is delivered: those of batches, and
// the index of their jobs.
func (s *Stack) LeftOver(ctx context.Context) (keys int64, err error) {
	if keys, err = s.redis.Exists(ctx, "jobs:index:main").Result(); err != nil {
		return 0, err
	}
	err = s.redis.EachKey(ctx, "batch*", func(page []string) error {
		keys += int64(len(page))
		return nil
	})
	return keys, err
}
