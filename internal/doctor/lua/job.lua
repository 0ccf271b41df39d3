-- Checks a job of a queue, with its batch if it delivers one.
--
-- ARGV     1 namespace, 2 '1' to fix it, 3 queue, 4 job, 5 how often the caller has seen it in the
--          list of instant jobs, -1 if it has not looked, 6 the longest list that is searched here
--          instead, 7.. workers that may have a pending job and are not in the index
-- Returns  {'unseen'} if the list is too long and the caller has not looked, else what is wrong, of
--          'unindexed', 'index_gone', 'empty', 'broken', 'jobless', 'several', 'several_deep',
--          'unlisted', 'stateless', 'job_gone', 'job_gone_deep', 'job_gone_pending'
-- Keeps    a batch its job: where in doubt, one more. Of several states of a job pending stays
--          before instant before scheduled
local END = 10000 -- entries at either end of a long list, where jobs come in
local queue, job = ARGV[3], ARGV[4]
local instant, bid = instant_key(queue), batch_of(queue, job)
local there, header = false, {}
if bid then
  if is_original(bid) then return {} end
  header = redis.call('LRANGE', batch_key(bid), 0, HEADER)
  there = #header > 0
end

-- Where the job is.
local listed = redis.call('SISMEMBER', jobs_index_key(queue), job) == 1
local scheduled = redis.call('ZSCORE', scheduled_key(queue), job)
local deep = redis.call('LLEN', instant) > tonumber(ARGV[6])
local places = tonumber(ARGV[5])
if not deep then
  places = #redis.call('LPOS', instant, job, 'COUNT', 0)
elseif places < 0 then
  return { 'unseen' }
elseif places == 0 and (redis.call('LPOS', instant, job, 'MAXLEN', END)
  or redis.call('LPOS', instant, job, 'RANK', -1, 'MAXLEN', END)) then
  places = 1 -- it has come since the caller looked
end
local workers, held, keeper = redis.call('SMEMBERS', pending_index_key(queue)), 0, nil
for i = 7, #ARGV do
  if redis.call('SISMEMBER', pending_index_key(queue), ARGV[i]) == 0 then
    table.insert(workers, ARGV[i])
  end
end
local holders = {}
for _, worker in ipairs(workers) do
  local jobs = redis.call('LRANGE', pending_key(queue, worker), -100, -1)
  for i, held_job in ipairs(jobs) do
    if held_job == job then
      held = held + 1
      holders[worker] = true
      if not keeper or i == #jobs then keeper = worker end -- the last is the one that it runs
    end
  end
end
local states = held + places + (scheduled and 1 or 0)

local found = {}
local function wrong(code, repair)
  table.insert(found, code)
  if fix and repair then repair() end
end

-- Takes the job out of the list of instant jobs, but for some of its places.
local function strike(keep)
  if places > keep then redis.call('LREM', instant, keep - places, job) end -- from the right
end

local function remove()
  strike(0)
  redis.call('ZREM', scheduled_key(queue), job)
  redis.call('SREM', jobs_index_key(queue), job)
end

local function give()
  redis.call('SADD', jobs_index_key(queue), job)
  redis.call('LPUSH', instant, job)
end

local function reduce()
  if keeper then
    for worker in pairs(holders) do redis.call('LREM', pending_key(queue, worker), 0, job) end
    redis.call('RPUSH', pending_key(queue, keeper), job)
  end
  strike(keeper and 0 or 1)
  if keeper or places > 0 then redis.call('ZREM', scheduled_key(queue), job) end
end

local empty = there and (header[1] == '' or #header <= HEADER)
if empty then
  wrong('empty', function()
    remove_batch(bid, header[1], events_of(bid), noted_max_in_flight(), true, true)
  end)
elseif bid and not there and redis.call('ZSCORE', batches_index_key(), bid) then
  wrong('index_gone', function() redis.call('ZREM', batches_index_key(), bid) end)
end
if bid and (empty or not there) then
  local code, repair = 'job_gone', remove
  if held > 0 then -- whoever completes it removes it
    code, repair = 'job_gone_pending', nil
  elseif deep and places > 0 then
    code, repair = 'job_gone_deep', nil
  elseif not listed and states == 0 then
    return found
  end
  if not empty then
    wrong(code, repair)
  elseif fix and repair then
    repair()
  end
  return found
end

local function is_number(text) return string.match(text, '^%d+$') end
if there and not (is_number(header[2]) and is_number(header[3])) then return { 'broken' } end
if there and not redis.call('ZSCORE', batches_index_key(), bid) then
  wrong('unindexed', function() redis.call('ZADD', batches_index_key(), header[2], bid) end)
end
if states == 0 then
  if there or listed then wrong(there and 'jobless' or 'stateless', give) end
  return found
end
if states > 1 then
  if deep and places > 0 then wrong('several_deep') else wrong('several', reduce) end
end
if not listed then
  wrong('unlisted', function() redis.call('SADD', jobs_index_key(queue), job) end)
end
return found
