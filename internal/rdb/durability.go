package rdb

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Risks says in sentences what would be lost if the Redis that has the partition crashed, or was
// full, and what to set. There are none where Redis does not report how it keeps data, as the
// embedded engine does not. It fails with [bus.ErrUnavailable].
func (p *Partition) Risks(ctx context.Context) (risks []string, err error) {
	info, err := p.info(ctx, "default")
	if errors.Is(err, errNoInfo) {
		return nil, nil
	}
	if err != nil {
		return nil, Wrap("read how redis keeps data", err)
	}
	if info["aof_enabled"] == "0" {
		save, known, err := p.savePoints(ctx)
		if err != nil {
			return nil, err
		}
		risks = append(risks, crashRisk(info, save, known))
	}
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		risks = append(risks, fmt.Sprintf(
			"When Redis is full, it throws away events and subscriptions: its maxmemory-policy is %s, set it to noeviction.", policy))
	}
	return risks, nil
}

// savePoints are when Redis takes snapshots, empty for never. They are not known where this user
// may not run CONFIG.
func (p *Partition) savePoints(ctx context.Context) (save string, known bool, err error) {
	var reply Reply[map[string]string]
	err = p.atHome(ctx, func(pipe Commands) { reply = pipe.ConfigGet(ctx, "save") })
	if Answered(err) || Lacks(err) {
		save, known = reply.Val()["save"]
		return save, known, nil
	}
	return "", false, Wrap("read how redis keeps data", err)
}

// crashRisk says what a Redis without an append-only file would lose.
func crashRisk(info map[string]string, save string, known bool) string {
	const remedy = "set appendonly yes."
	if known && save == "" {
		return "If Redis stops, all events, tokens and subscribers are lost: it keeps nothing on disk, " + remedy
	}
	last := time.Unix(Integer(info["rdb_last_save_time"], 0), 0).UTC().Format(time.RFC3339)
	return fmt.Sprintf("If Redis crashes, what was stored since its last snapshot (%s) is lost: it has no append-only file, %s", last, remedy)
}
