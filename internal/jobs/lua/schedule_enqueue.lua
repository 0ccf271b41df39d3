-- Enqueues the job of a type's schedule for a time, unless that was done. Too many of its jobs that
-- have not ended have it skip the time, and so does the full account of its owner. Its jobs share
-- the data.
--
-- ARGV     1 namespace, 2 type, 3 the time that was enqueued last, or since when there is a
--          schedule, as it was read, and 4 that of the job (µs), 5 id of the job, 6 now (µs), 7 how
--          many jobs of the schedule may be there that have not ended
-- Returns  'enqueued'; 'skipped'; 'elsewhere' when another worker did it, or the schedule was
--          changed
local name, id, now, most = ARGV[2], ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
if redis.call('HGET', schedules_key(), name) ~= ARGV[3] then return 'elsewhere' end
local type = read_type(name)
if not type or type.deleted then return 'elsewhere' end
local found = redis.call('HMGET', job_type_key(name), 'schedule_open', 'schedule_shared')
local open = {}
for one in string.gmatch(found[1] or '', '%S+') do table.insert(open, one) end
if #open >= most then
  local left = {}
  for _, one in ipairs(open) do
    local status = redis.call('HGET', job_key(one), 'status')
    if status == 'queued' or status == 'in-progress' then table.insert(left, one) end
  end
  open = left
end
local function skip(reason)
  redis.call('HSET', schedules_key(), name, ARGV[4])
  redis.call('HSET', job_type_key(name), 'skipped_at', ARGV[4], 'skip_reason', reason,
    'schedule_open', table.concat(open, ' '))
  return 'skipped'
end
if #open >= most then return skip('jobs_open') end
local data, data_id, kept = nil, found[2], JOB_BYTES
if not data_id or redis.call('EXISTS', job_data_key(data_id)) == 0 then
  data = redis.call('HGET', job_type_key(name), 'schedule_data')
  if not data or data == '' then data = 'null' end
  kept = kept + #data
end
local account = account_of(type.owner)
if refusal_of_account(account, kept) then return skip('account_full') end
redis.call('HSET', schedules_key(), name, ARGV[4])
if redis.call('EXISTS', job_key(id)) == 1 then return 'elsewhere' end
local place = next_number(type, now)
if data then
  data_id = 'schedule:' .. name .. ':' .. exact(place)
  redis.call('SET', job_data_key(data_id), data)
end
redis.call('SADD', job_copies_key(data_id), id)
table.insert(open, id)
redis.call('HSET', job_type_key(name), 'schedule_shared', data_id, 'schedule_open',
  table.concat(open, ' '))
redis.call('HDEL', job_type_key(name), 'skipped_at', 'skip_reason')
add_jobs(type, {
  { id = id, data_id = data_id, place = place, run_after = '0', expires_at = '0' },
}, '', now)
keep(type, account, kept)
return 'enqueued'
