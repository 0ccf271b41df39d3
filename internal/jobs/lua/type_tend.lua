-- Looks after a job type: removes archived jobs that were kept long enough, takes jobs that are not
-- there out of its lane, and goes on with a deletion, until nothing of the type is left.
--
-- ARGV     1 namespace, 2 name, 3 now (µs), 4 max jobs to cancel and to remove, together
-- Returns  {archived jobs removed, jobs that have not ended and are to be cancelled, 1 if it has
--          done as much as it may, so that more may be left}
-- Cost     commands: 16, 9 for each job that is cancelled, 5 for each that is removed (6 for one
--          that was to be tried once, and 3 for each status of such), and 1 for each place of the
--          lane that it looks at

-- How long (s) an archived job is kept at least, so that a report sent again is answered as before.
-- As this runs twice a minute, a job whose retention is 0 goes within its minute all the same.
local MIN_RETENTION = 20

allow_when_full()
local name, now, left = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local type = read_type(name)
if not type then
  redis.call('SREM', job_types_key(), name)
  return { 0, 0, 0 }
end
local removed, open, kept = 0, 0, 0
if type.deleted then
  for _, id in ipairs(redis.call('ZRANGE', open_jobs_key(name), 0, left - 1)) do
    left = left - 1
    local ok, job = pcall(read_job, id)
    if ok and job then
      archive(type, job, 'cancelled', job.attempts, now, nil, 'the job type was deleted')
    else
      redis.call('ZREM', open_jobs_key(name), id)
    end
  end
  open = redis.call('ZCARD', open_jobs_key(name))
end
for _, entry in ipairs(left > 0 and redis.call('ZRANGE', type.lane, 0, left - 1) or {}) do
  local _, id = unpack_job(entry)
  if not id or redis.call('EXISTS', job_key(id)) == 0 then
    leave(type, entry)
    left = left - 1
  end
end
local before = exact(now - math.max(type.retention, MIN_RETENTION) * 1000000)
for _, status in ipairs(STATUSES) do
  local key = archived_jobs_key(name, status)
  local ids = redis.call('ZRANGEBYSCORE', key, '-inf', before, 'LIMIT', 0, left)
  remove_archived(name, type, key, ids, now)
  removed, left = removed + #ids, left - #ids
  kept = kept + redis.call('ZCARD', key)
end
if type.deleted and open == 0 and kept == 0 then
  if type.owner ~= '' then redis.call('SREM', job_types_of_key(type.owner), name) end
  if type.kept > 0 then charge(account_of(type.owner), -type.kept) end
  redis.call('DEL', job_type_key(name))
  redis.call('SREM', job_types_key(), name)
end
return { removed, open, left == 0 and 1 or 0 }
