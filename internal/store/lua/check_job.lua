-- Checks jobs of a queue, each with its batch if it delivers one.
--
-- The list of instant jobs may be too long to be searched in one step. Then the caller has read it, from left to
-- right, and names a job that was at its left end, the marker: nothing leaves the list but at the right end, so
-- what is left of the marker is what has come since. The script reads that, and the right end, where a few are put
-- back; every other job is at the place where the caller has seen it, counted from the marker, or not in the list.
--
-- ARGV     1 namespace, 2 '1' to fix it, 3 queue, 4 most batches of one subscriber that may be delivered at once,
--          5 marker, '' if the caller has not read the list, 6 longest list that is read whole, 7 number of workers
--          that follow: those that may have a pending job and are not in the index, workers, then for each job: job,
--          number of places that follow, places right of the marker
-- Returns  false when the list is to be read (again) first; or for each job a list of what is wrong, of 'listed',
--          which only says that it is there, 'unindexed', 'index_gone', 'empty', 'jobless', 'several',
--          'several_deep', 'unlisted', 'stateless', 'job_gone', 'job_gone_deep', 'job_gone_pending', 'foreign',
--          'foreign_listed'; or {'again'} when one step had too much to do, {'moved'} when the job is not where it was
--          seen, nor elsewhere
-- Keeps    a batch its job: where in doubt, one more. Of several states of a job pending stays before instant
--          before scheduled
local queue, abreast, marker, longest = ARGV[3], tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6])
local instant, RIGHT_END = instant_key(queue), 500
local MOST_SEARCHED = 200000 -- entries of the list of instant jobs, in one step: some 3 ms

-- What is asked: the arguments, by job.
local workers, jobs, seen_at = {}, {}, {}
local arg = 8
for _ = 1, tonumber(ARGV[7]) do
  workers[ARGV[arg]] = true
  arg = arg + 1
end
while arg <= #ARGV do
  local job, places = ARGV[arg], {}
  for i = arg + 2, arg + 1 + tonumber(ARGV[arg + 1]) do table.insert(places, tonumber(ARGV[i])) end
  table.insert(jobs, job)
  seen_at[job] = places
  arg = arg + 2 + #places
end

-- Where the jobs are in the list: job to a set of indexes.
local length = redis.call('LLEN', instant)
local origin, at, missed = nil, {}, {}
for _, job in ipairs(jobs) do at[job] = {} end
local function read(from, to)
  for i, job in ipairs(redis.call('LRANGE', instant, from, to)) do
    if at[job] then at[job][from + i - 1] = true end
  end
end
if length <= longest then
  read(0, length - 1)
else
  if marker ~= '' then origin = redis.call('LPOS', instant, marker, 'MAXLEN', longest) end
  if not origin then return false end
  if origin > 0 then read(0, origin - 1) end
  read(math.max(0, length - RIGHT_END), length - 1)
  for _, job in ipairs(jobs) do
    for _, place in ipairs(seen_at[job]) do
      if redis.call('LINDEX', instant, origin + place) == job then
        at[job][origin + place] = true
      else
        missed[job] = true
      end
    end
  end
end

-- Who has the jobs pending: job to workers, one for each time.
local holders = {}
for _, job in ipairs(jobs) do holders[job] = {} end
for _, worker in ipairs(redis.call('SMEMBERS', pending_index_key(queue))) do workers[worker] = true end
for worker in pairs(workers) do
  for _, job in ipairs(redis.call('LRANGE', pending_key(queue, worker), -100, -1)) do
    if holders[job] then table.insert(holders[job], worker) end
  end
end

local spent, pushed, called = 0, 0, false

-- How to remove all but `keep` of a job's entries in the list: LREM's count, and the number of entries it passes.
local function way_out(job, keep)
  local places = {}
  for i in pairs(at[job]) do table.insert(places, i + pushed) end
  table.sort(places)
  local n = #places - keep
  if n <= 0 then return 0, 0 end
  local from_left, from_right = places[n], length + pushed - 1 - places[#places - n + 1]
  if from_left < from_right then return n, from_left end
  return -n, from_right
end

-- The worker that goes on with a job: one that has it as its last, which is the one it runs.
local function keeper(job)
  for _, worker in ipairs(holders[job]) do
    if redis.call('LINDEX', pending_key(queue, worker), -1) == job then return worker end
  end
  return holders[job][1]
end

-- Leaves a job in one place of those it is in.
local function reduce(job, way)
  if #holders[job] > 0 then
    local keeps = keeper(job)
    for _, worker in ipairs(holders[job]) do redis.call('LREM', pending_key(queue, worker), 0, job) end
    redis.call('RPUSH', pending_key(queue, keeps), job)
  end
  if way ~= 0 then redis.call('LREM', instant, way, job) end
  if #holders[job] > 0 or next(at[job]) then redis.call('ZREM', scheduled_key(queue), job) end
end

local function remove(job, way)
  if way ~= 0 then redis.call('LREM', instant, way, job) end
  redis.call('ZREM', scheduled_key(queue), job)
  redis.call('SREM', jobs_index_key(queue), job)
end

-- Makes a job that is in no state instant, the last to be taken.
local function give(job)
  redis.call('SADD', jobs_index_key(queue), job)
  redis.call('LPUSH', instant, job)
  pushed = pushed + 1
end

local function check(job)
  if called then return { 'again' } end
  local found = {}
  local bid = batch_of(queue, job)
  local there, header = false, {}
  if bid then
    if redis.call('EXISTS', batch_key(bid)) == 1 then
      if not is_list(batch_key(bid)) then return found end
      there, header = true, redis.call('LRANGE', batch_key(bid), 0, HEADER - 1)
    elseif is_original(bid) then
      return found
    end
  end
  local listed = redis.call('SISMEMBER', jobs_index_key(queue), job) == 1
  if there and not is_batch(bid) then
    if listed or redis.call('ZSCORE', batches_index_key(), bid) then return { 'foreign_listed' } end
    return { 'foreign' }
  end
  local states = #holders[job]
  for _ in pairs(at[job]) do states = states + 1 end
  if redis.call('ZSCORE', scheduled_key(queue), job) then states = states + 1 end
  if states == 0 and missed[job] and (there or listed) then return { 'moved' } end

  local empty = there and (header[1] == '' or redis.call('LLEN', batch_key(bid)) <= HEADER)
  local goes = empty or (bid and not there)
  local keep = 1
  if goes or #holders[job] > 0 then keep = 0 end
  local way, passes = way_out(job, keep)
  local deep = passes > MOST_SEARCHED
  if deep then
    way = 0
  elseif spent + passes > MOST_SEARCHED then
    return { 'again' }
  else
    spent = spent + passes
  end
  local function report(wrong) table.insert(found, wrong) end

  if goes then
    local indexed = redis.call('ZSCORE', batches_index_key(), bid)
    if empty then
      report('empty')
      if fix then
        remove_batch(bid, header[1], events_of(bid), noted_max_in_flight(), true, true)
        called = true -- what waited behind it may have moved: `at` is no longer right
      end
    elseif indexed then
      report('index_gone')
      if fix then redis.call('ZREM', batches_index_key(), bid) end
    end
    if #holders[job] > 0 then -- whoever settles it removes it
      if not empty then report('job_gone_pending') end
    elseif deep then
      if not empty then report('job_gone_deep') end
    elseif listed or states > 0 then
      if not empty then report('job_gone') end
      if fix then remove(job, way) end
    end
    return found
  end

  if there and not redis.call('ZSCORE', batches_index_key(), bid) then
    report('unindexed')
    if fix then
      redis.call('ZADD', batches_index_key(), header[2], bid)
    end
  end
  if states == 0 and (there or listed) then
    if there then report('jobless') else report('stateless') end
    if fix then give(job) end
    return found
  end
  if states > 1 and deep then
    report('several_deep')
  elseif states > 1 then
    report('several')
    if fix then reduce(job, way) end
  end
  if states > 0 then
    if not bid then report('listed') end
    if not listed then
      report('unlisted')
      if fix then redis.call('SADD', jobs_index_key(queue), job) end
    end
  end
  return found
end

-- The caller names the rightmost first, so that what is removed does not move the places of the others.
local answers = {}
for _, job in ipairs(jobs) do table.insert(answers, check(job)) end
return answers
