package rdb

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Risks returns sentences that say which data would be lost if the partition's Redis crashed, or
// was full, and what to set. If Redis refuses to report its persistence, there is one sentence
// about that. The embedded engine has no risks. It fails with [bus.ErrUnavailable].
func (p *Partition) Risks(ctx context.Context) (risks []string, err error) {
	info, err := p.info(ctx, "default")
	if HasCode(err, "NOPERM") || mentions(err, "unknown command") {
		return []string{unchecked}, nil
	}
	if errors.Is(err, errNoInfo) {
		return nil, nil
	}
	if err != nil {
		return nil, Wrap("read how redis keeps data", err)
	}
	if info["aof_enabled"] == "0" {
		save, known, err := p.setting(ctx, "save")
		if err != nil {
			return nil, err
		}
		risks = append(risks, crashRisk(info, save, known))
	} else {
		sync, _, err := p.setting(ctx, "appendfsync")
		if err != nil {
			return nil, err
		}
		if sync == "no" {
			risks = append(risks, unsynced)
		}
	}
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		risks = append(risks, fmt.Sprintf(
			"When Redis is full, it throws away events and subscriptions: its maxmemory-policy is %s, set it to noeviction.", policy))
	}
	return risks, nil
}

const (
	unchecked = "What Redis would lose if it crashed or was full cannot be checked: it refuses INFO. " +
		"Give its user the rights +info and +config|get, or see yourself to appendonly yes and maxmemory-policy noeviction."
	unsynced = "If the host of Redis crashes, what its kernel has not yet written to disk is lost, often 30 s and more: " +
		"its appendfsync is no, set it to everysec or always."
)

// setting reads a setting of Redis. It is not known where this user may not run CONFIG.
func (p *Partition) setting(ctx context.Context, name string) (value string, known bool, err error) {
	var reply Reply[map[string]string]
	err = p.atHome(ctx, func(pipe Commands) { reply = pipe.ConfigGet(ctx, name) })
	if Answered(err) || Lacks(err) {
		value, known = reply.Val()[name]
		return value, known, nil
	}
	return "", false, Wrap("read how redis keeps data", err)
}

// crashRisk describes the data that a Redis without an append-only file would lose.
func crashRisk(info map[string]string, save string, known bool) string {
	const remedy = "set appendonly yes."
	if known && save == "" {
		return "If Redis stops, all events, tokens and subscribers are lost: it keeps nothing on disk, " + remedy
	}
	last := time.Unix(Integer(info["rdb_last_save_time"], 0), 0).UTC().Format(time.RFC3339)
	return fmt.Sprintf("If Redis crashes, what was stored since its last snapshot (%s) is lost: it has no append-only file, %s", last, remedy)
}
