-- Takes a service's report on an attempt of a job.
--
-- ARGV     1 namespace, 2 id, 3 type, 4 the attempt, 5 'succeeded' or 'failed', 6 '1' if a failed
--          job is not to be tried again, 7 now (µs), 8 a number from 0 to below 1, by chance,
--          9 the client, '' for root
-- Returns  {1, the job's status}, '' if the same was reported before; {0, 'unknown'};
--          {0, 'not client'}; {0, 'stale'};
--          {0, 'reported'} something else before; {0, 'cancelled'}; {0, 'archived'}
-- Cost     commands: 12 for a job that its service has
local job = read_job(ARGV[2])
if not job or job.type ~= ARGV[3] then return { 0, 'unknown' } end
if is_for_others(job.type, ARGV[9]) then return { 0, 'not client' } end
local attempt, status, now = tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[7])
local said = exact(attempt) .. ' ' .. status
local function has_reported(what) return string.find(',' .. job.reported, ',' .. what, 1, true) end
if has_reported(said) then return { 1, '' } end
if has_reported(exact(attempt) .. ' ') then return { 0, 'reported' } end
-- The deadline ended this attempt, or the worker that had it died.
local late = job.ended == attempt
if job.status == 'cancelled' then return { 0, 'cancelled' } end
if job.status == 'expired' then return { 0, 'archived' } end
local stale = not late or job.status == 'in-progress'
if stale and (not job.open or attempt ~= job.attempts) then return { 0, 'stale' } end

local type = read_type(job.type)
if not type then return { 0, 'unknown' } end
if job.open and type.deleted then return { 0, 'cancelled' } end -- or will be in a moment
if job.open and attempt == job.attempts then
  allow_when_full()
  note_answer(type, job, true, 2)
  if status == 'succeeded' then
    archive(type, job, status, attempt, now, said)
    return { 1, status }
  end
  return { 1, fail_attempt(type, job, ARGV[6] == '1', now, tonumber(ARGV[8]), said) }
end
allow_when_full()
if status == 'failed' then -- which is what was taken for granted
  redis.call('HSET', job_key(job.id), 'reported', with_report(job, said))
  return { 1, '' }
end
if job.open then
  archive(type, job, status, attempt, now, said)
else
  redis.call('ZREM', archive_key(type.name, 'failed'), job.id)
  enter_archive(type, job, status, attempt, now, said)
end
return { 1, status }
