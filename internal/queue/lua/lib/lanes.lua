-- A lane is a sorted set of the jobs of one kind that belong together, such as the batches of one
-- subscriber, in the order of their turn. Its head, the first `max` of them, is in flight or about
-- to be; the others wait among the scheduled jobs until one that leaves the lane wakes them. A lane
-- is there only while one of its entries is in flight or waits.

-- The lanes that a script has read, by key: the last score, the head, and whether that is alive and
-- full. In one script all calls for a lane have the same `max`.
local LANES = {}
local function lane_of(lane)
  LANES[lane] = LANES[lane] or { last = false, head = false, full = false }
  return LANES[lane]
end

-- Whether an entry of a lane still has its job and the job's subject: then it will come up, and
-- wake the next.
local function is_alive(queue, job)
  local kind, _, arg = kind_of(queue, job)
  return kind ~= nil and kind.exists(arg)
    and redis.call('SISMEMBER', jobs_index_key(queue), job) == 1
end

local function head_of(lane, max)
  local known = lane_of(lane)
  known.head = known.head or redis.call('ZRANGE', lane, '0', max == 1 and '0' or max - 1)
  return known.head
end

-- Takes jobs out of a lane. Returns how many were in there.
local function remove_from_lane(lane, ...)
  lane_of(lane).head = false
  local removed = redis.pcall('ZREM', lane, ...)
  return type(removed) == 'number' and removed or 0
end

-- Wakes the head of a lane: every waiting entry in it becomes instant, in order. They go behind all
-- instant entries, so that lanes take turns: a lane that never gets empty holds no other up.
local function wake_lane(lane, queue, max)
  local head = head_of(lane, max)
  if #head == 1 then return make_instant(queue, head[1]) end
  for i, waits in ipairs(waiting(queue, head)) do
    if waits then make_instant(queue, head[i]) end
  end
end

-- Takes jobs out of their lane and wakes the whole head: a process with a smaller `max` may have
-- left without waking all entries that may be in flight now. Only a lane can lose a job or wake
-- one.
local function leave_lane(lane, queue, max, ...)
  if remove_from_lane(lane, ...) > 0 then wake_lane(lane, queue, max) end
end

local function join_lane(lane, job)
  local known = lane_of(lane)
  local last = known.last
    or tonumber(redis.call('ZRANGE', lane, '-1', '-1', 'WITHSCORES')[2]) or 0
  known.last, known.head = last + 1, false
  redis.call('ZADD', lane, known.last, job)
end

-- Puts a job before the waiting ones of its lane. The last job of the head that does not wait may
-- be in flight: the job comes behind that.
local function join_head(lane, queue, job, max)
  local members = redis.call('ZRANGE', lane, 0, max, 'WITHSCORES')
  local ahead, behind = nil, nil -- the scores of the jobs on both sides
  for i = 1, #members, 2 do
    local waits = i > 2 * max or redis.call('ZSCORE', scheduled_key(queue), members[i])
    if not waits then
      ahead, behind = tonumber(members[i + 1]), tonumber(members[i + 3])
    elseif i == 1 then
      behind = tonumber(members[2])
    end
  end
  local place = ((ahead or behind or 0) + (behind or ahead or 0)) / 2
  if not ahead then place = place - 1 elseif not behind then place = place + 1 end
  lane_of(lane).head, lane_of(lane).last = false, false
  redis.call('ZADD', lane, string.format('%.17g', place), job)
end

-- Whether a job is in the head of its lane. A job that is not in the lane joins its end. Dead
-- entries of the head are removed.
local function is_in_turn(lane, queue, job, max)
  local known = lane_of(lane)
  if known.full then
    local place = redis.call('ZRANK', lane, job)
    if not place then join_lane(lane, job) end
    return place and place < max
  end
  local joined, removed = false, false
  while true do
    local head = head_of(lane, max)
    for _, member in ipairs(head) do
      if member == job then return true end
    end
    if not joined and (#head == 0 or not redis.call('ZSCORE', lane, job)) then
      if #head == 0 then known.last = 0 end
      join_lane(lane, job)
      joined = true
      if #head < max then return true end
    end
    known.full = true
    for _, ahead in ipairs(head) do
      if not is_alive(queue, ahead) then
        remove_from_lane(lane, ahead)
        known.full, removed = false, true
      end
    end
    if known.full then
      if removed then wake_lane(lane, queue, max) end
      return false
    end
  end
end
