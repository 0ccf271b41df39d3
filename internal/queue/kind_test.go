package queue_test

import (
	"context"
	"fmt"
	"log/slog"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
)

// parcels is a kind of the tests: everything that a kind needs is here, and none of it in the
// queue. A parcel is a hash of where it goes, which is its lane, and how often it failed.
type parcels struct{ maxInFlight int }

const parcelLibrary = `
local function parcel_key(id) return ns .. 'parcel:' .. id end
local function lane_of_parcel(address) return lane_key('parcel', address) end

KINDS.parcel = {
  queue = 'main',
  exists = function(id) return redis.call('EXISTS', parcel_key(id)) == 1 end,
  take = function(entry)
    local found = redis.call('HMGET', parcel_key(entry.arg), 'address', 'failures')
    local address, max = found[1], tonumber(entry.settings[1])
    if not address then
      discard(entry)
      return nil, { entry.arg }
    end
    if not is_in_turn(lane_of_parcel(address), entry.queue, entry.job, max) then
      put_off(entry, entry.wait_until)
      return nil
    end
    if 1 < entry.min_standing then
      put_off(entry, entry.now + 7)
      return nil
    end
    local place = redis.call('ZRANK', lane_of_parcel(address), entry.job)
    if put_off_if_full(entry, address, place, nil, 'https://' .. address .. '/') then
      return nil
    end
    return { address, tonumber(found[2]) or 0 }
  end,
  complete = function(entry)
    redis.call('DEL', parcel_key(entry.arg))
    leave_lane(lane_of_parcel(entry.result[1]), entry.queue, tonumber(entry.settings[1]), entry.job)
  end,
  retry = function(entry)
    redis.call('HINCRBY', parcel_key(entry.arg), 'failures', entry.result[2])
    leave_lane(lane_of_parcel(entry.result[1]), entry.queue, tonumber(entry.settings[1]), entry.job)
  end,
}
`

func (parcels) Name() bus.JobName { return "parcel" }

func (parcels) Library() rdb.Library { return rdb.Library{parcelLibrary} }

func (p parcels) MaxInFlight() int { return p.maxInFlight }

func (p parcels) Settings(context.Context) []any { return []any{p.maxInFlight} }

func (parcels) Payload(job bus.Job, values []any) (queue.Payload, error) {
	return &parcel{id: job.Args[0], address: values[0].(string), failures: int(values[1].(int64))}, nil
}

func (parcels) Discarded(values []any) any { return fmt.Sprint(values[0]) }

func (parcels) Result(p queue.Payload, detail any) []any {
	damage, _ := detail.(int)
	return []any{p.(*parcel).address, damage}
}

// parcel is the payload of a task.
type parcel struct {
	id, address string
	failures    int
}

func (*parcel) LaneStanding() bus.Standing { return bus.Untried }

func (p *parcel) Owners() []queue.Owner {
	return []queue.Owner{queue.Owner(p.address), queue.HostOwner("https://" + p.address + "/")}
}

func (p *parcel) LogAttrs() []slog.Attr { return []slog.Attr{slog.String("parcel", p.id)} }
