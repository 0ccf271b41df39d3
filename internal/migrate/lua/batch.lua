-- Moves batches from the Ruby original's keys to this program's, or back, and makes sure that each
-- has a job and is in the index.
--
-- ARGV     1 namespace, 2 '1' to do it, 3 '1' for back, 4 silent since (ms): a worker last active
--          after that is alive, 5 latest time for which a job can have been meant (ms), 6 number
--          of workers that follow: those with a list of pending jobs, workers, then batches
-- Returns  for each batch what is done, or would be: 'move'; 'merge', to append bare events to the
--          batch they belong to; 'complete', to give a job to a batch at the right key, or ''. Or
--          why it is left: 'busy', 'type', 'taken', 'both', 'ownerless', 'foreign', 'empty',
--          'broken'
-- Keeps    the batch's list, index entry, gauges and its one job; no process appends to it under
--          its old name; a batch that a live worker delivers stays at its key
local apply, back, since = ARGV[2] == '1', ARGV[3] == '1', tonumber(ARGV[4])
local latest = tonumber(ARGV[5])
if apply then allow_when_full() end

local workers, holders = {}, {}
local function add(found)
  for _, worker in ipairs(found) do workers[worker] = true end
end
add(redis.call('SMEMBERS', pending_index_key('main')))
add(redis.call('HKEYS', workers_key()))
for i = 7, 6 + tonumber(ARGV[6]) do workers[ARGV[i]] = true end
for worker in pairs(workers) do
  local jobs = redis.pcall('LRANGE', pending_key('main', worker), -100, -1)
  for _, job in ipairs(jobs.err and {} or jobs) do
    holders[job] = holders[job] or {}
    table.insert(holders[job], worker)
  end
end

local function is_held(job)
  for _, worker in ipairs(holders[job] or {}) do
    if (tonumber(redis.call('HGET', workers_key(), worker)) or 0) > since then return true end
  end
  return false
end

-- Gives a batch its missing job or index entry, and puts its job back if dead workers have it.
local function complete(bid, key)
  local job, header = job_of(bid), redis.call('LRANGE', key, 0, HEADER - 1)
  if not redis.call('ZSCORE', batches_index_key(), bid) then
    redis.call('ZADD', batches_index_key(), header[2], bid)
  end
  local had_job = redis.call('SADD', jobs_index_key('main'), job) == 0
  if holders[job] then
    for _, worker in ipairs(holders[job]) do
      redis.call('LREM', pending_key('main', worker), 0, job)
    end
    redis.call('RPUSH', instant_key('main'), job)
    return
  end
  local deadline = redis.call('ZSCORE', scheduled_key('main'), job)
  if not deadline and not had_job then
    redis.call('LPUSH', instant_key('main'), job)
  elseif deadline and (tonumber(deadline) or math.huge) > latest then
    -- The original trusts the publishers' timestamps, however wrong.
    make_instant('main', job)
  end
end

-- A batch that is closed before its time comes up at once, so that none that is opened after it
-- passes it.
local function close(bid) make_instant('main', job_of(bid)) end

local function move(bid, token, was_current, waits)
  if back then
    change_gauge(bytes_gauge_key(), holder_of(token), exact(-event_bytes_of(bid)))
    redis.call('RENAME', batch_key(bid), original_key(bid))
    redis.call('DEL', traceparents_key(bid))
    redis.call('SREM', current_key(token), bid)
    redis.pcall('ZREM', failed_key(token), bid)
    leave_lane(lane_of_subscriber(token), 'main', noted_max_in_flight(), job_of(bid))
    complete(bid, original_key(bid))
  else
    originals().adopt(bid)
    complete(bid, batch_key(bid))
  end
  if was_current or (back and waits) then close(bid) end
end

-- Whether the bus knows of a batch, or of whose it is.
local function is_ours(bid, token)
  if redis.call('ZSCORE', batches_index_key(), bid) then return true end
  for _, key in ipairs({ tokens_key(), event_gauge_key(), batch_gauge_key() }) do
    if redis.call('HEXISTS', key, token) == 1 then return true end
  end
  if redis.call('SISMEMBER', subscribers_key(), token) == 1 then return true end
  local callback = redis.pcall('HGET', subscriber_key(token), 'callback')
  return type(callback) == 'string' and callback ~= ''
end

local function see(bid)
  local job = job_of(bid)
  local from, to = original_key(bid), batch_key(bid)
  if back then
    from = batch_key(bid)
    to = original_key(bid)
  end
  local source, target = redis.call('TYPE', from).ok, redis.call('TYPE', to).ok
  if source == 'none' then
    if target ~= 'list' or holders[job] then return '' end
    if redis.call('SISMEMBER', jobs_index_key('main'), job) == 1 then return '' end
    if not originals().has_header(to) or redis.call('LLEN', to) == HEADER then return '' end
    if not is_ours(bid, redis.call('LINDEX', to, 0)) then return '' end
    if apply then complete(bid, to) end
    return 'complete'
  end
  if source ~= 'list' then return 'type' end
  if target ~= 'none' and target ~= 'list' then return 'taken' end
  if target == 'list' then
    if back or not originals().has_events_only(from) or not originals().has_header(to) then
      return 'both'
    end
  elseif not originals().has_header(from) then
    if not back and originals().has_events_only(from) then return 'ownerless' end
    return 'foreign'
  elseif redis.call('LLEN', from) == HEADER then
    return 'empty'
  end
  local token = redis.call('LINDEX', target == 'list' and to or from, 0)
  if not is_ours(bid, token) then return 'foreign' end
  if is_held(job) then return 'busy' end
  -- All keys that may be of another type are read before anything is written.
  local was_current = redis.call('SISMEMBER', current_key(token), bid) == 1
  local waits = redis.call('ZSCORE', lane_of_subscriber(token), job_of(bid))
  if apply then move(bid, token, was_current, waits) end
  return target == 'list' and 'merge' or 'move'
end

local answers = {}
for i = 7 + tonumber(ARGV[6]), #ARGV do
  local fine, answer = pcall(see, ARGV[i])
  table.insert(answers, fine and answer or 'broken')
end
return answers
