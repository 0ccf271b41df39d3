-- Enqueues jobs of a type, all or none. A job that is queued or in progress stays as it is. One
-- that was to be tried once is not enqueued again for a day after its removal.
--
-- ARGV     1 namespace, 2 type, 3 now (µs), 4 traceparent, may be empty, 5 how many bytes the data
--          of jobs that are there may have, which is returned, 6 the client, '' for root, 7.. of
--          each job its id, its data, when it may be taken and when it expires (µs, 0 for now and
--          for never)
-- Returns  {1, job, ...}: {its attempts, its sequence (text)} of a job that was added, any other as
--          show_job; {0, 'unknown type'}; {0, 'not client'}; {0, 'archived', index};
--          {0, 'removed', index}; {0, 'other type', index}; {0, 'too large', index};
--          {0, 'never runs', index}, from 0; {0, 'account full', ...}: the account of the type's
--          owner
-- Keeps    a job in the queue's index, in its type's list and in one state
-- Cost     commands: 6, what add_jobs takes, and 5 for each job that is there; 1 more of a type of
--          at_most_once
local CLOCKS = 60000000 -- µs, by which the clocks of clients may differ from ours

-- Whether a job expires before it may be taken for the first time.
local function never_runs(run_after, expires_at, now)
  local expires = tonumber(expires_at)
  return expires > 0 and (expires < now - CLOCKS or expires <= tonumber(run_after))
end

local name, now, bytes = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[5])
local type = read_type(name)
if not type or type.deleted then return { 0, 'unknown type' } end
if is_for_others(name, ARGV[6]) then return { 0, 'not client' } end
local ids, keys, some = {}, {}, false
for i = 7, #ARGV, 4 do
  table.insert(ids, ARGV[i])
  table.insert(keys, job_key(ARGV[i]))
end
for i = 1, #keys, CHUNK do
  if redis.call('EXISTS', unpack(keys, i, math.min(i + CHUNK - 1, #keys))) > 0 then some = true end
end
local removed = removed_among(type, ids, now)
local there, jobs, kept = {}, {}, 0
for i = 7, #ARGV, 4 do
  local index = (i - 7) / 4
  local found = some and redis.call('HMGET', keys[index + 1], 'type', 'status', 'data') or {}
  if found[1] and found[1] ~= name then return { 0, 'other type', index } end
  if found[2] and found[2] ~= 'queued' and found[2] ~= 'in-progress' then
    return { 0, 'archived', index }
  end
  if not found[2] and removed[ARGV[i]] then return { 0, 'removed', index } end
  there[i] = found[2]
  if found[2] then
    bytes = bytes - redis.call('STRLEN', job_data_key(found[3] or ARGV[i]))
    if bytes < 0 and #keys > 1 then return { 0, 'too large', index } end
  elseif never_runs(ARGV[i + 2], ARGV[i + 3], now) then
    return { 0, 'never runs', index }
  else
    kept = kept + JOB_BYTES + #ARGV[i + 1]
    table.insert(jobs, {
      id = ARGV[i], data = ARGV[i + 1], run_after = ARGV[i + 2], expires_at = ARGV[i + 3],
    })
  end
end
if #jobs > 0 then
  local account = account_of(type.owner)
  local refusal = refusal_of_account(account, kept)
  if refusal then return refusal end
  local place = next_number(type, now, #jobs)
  for i, job in ipairs(jobs) do job.place = place + i - 1 end
  add_jobs(type, jobs, ARGV[4], now)
  keep(type, account, kept)
end
local reply, added = { 1 }, 0
for i = 7, #ARGV, 4 do
  if there[i] then
    table.insert(reply, show_job(ARGV[i]))
  else
    added = added + 1
    table.insert(reply, { type.attempts, jobs[added].at })
  end
end
return reply
