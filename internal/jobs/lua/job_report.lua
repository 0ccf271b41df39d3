-- Takes a service's report on an attempt of a job.
--
-- ARGV     namespace; reportArgs of steps.go
-- Returns  {1, the job's status}, '' if the same was reported before; {0, 'unknown'};
--          {0, 'not client'}; {0, 'stale'};
--          {0, 'reported'} something else before; {0, 'cancelled'}; {0, 'archived'}
-- Cost     commands: 12 for a job that its service has
local id, type_name, attempt, status, final, now, chance, client, message = unpack(ARGV, 2, 10)
local job = read_job(id)
if not job or job.type ~= type_name then return { 0, 'unknown' } end
if is_for_others(job.type, client) then return { 0, 'not client' } end
attempt, now, final = tonumber(attempt), tonumber(now), status == 'failed' and final == '1'
local said = exact(attempt) .. ' ' .. status
local function has_reported(what) return string.find(',' .. job.reported, ',' .. what, 1, true) end
local again = has_reported(said)
-- One that was not to be the last attempt may still become that, while its retry waits.
local is_last_now = again and final and job.open
if again and not is_last_now then return { 1, '' } end
if not again and has_reported(exact(attempt) .. ' ') then return { 0, 'reported' } end
-- The deadline ended this attempt, or the worker that had it died.
local late = job.ended == attempt
if job.status == 'cancelled' then return { 0, 'cancelled' } end
if job.status == 'expired' then return { 0, 'archived' } end
if is_last_now then
  if job.status ~= 'queued' or job.attempts ~= attempt - 1 then return { 0, 'reported' } end
else
  local stale = not late or job.status == 'in-progress'
  if stale and (not job.open or attempt ~= job.attempts) then return { 0, 'stale' } end
  -- The reported failure has taken effect already: the retry waits.
  if late and job.open and status == 'failed' and not final then return { 0, 'stale' } end
end

local type = read_type(job.type)
if not type then return { 0, 'unknown' } end
if job.open and type.deleted then return { 0, 'cancelled' } end -- or will be in a moment
allow_when_full()
local reason = status == 'failed' and message or ''
if status == 'failed' then job.try = { attempt = attempt, outcome = status, error = reason } end
if job.open and attempt == job.attempts then
  note_answer(type, job, true, 2)
  if status == 'succeeded' then
    archive(type, job, status, attempt, now, said)
    return { 1, status }
  end
  return { 1, fail_attempt(type, job, final, now, tonumber(chance), said, reason) }
end
if job.open then
  archive(type, job, status, final and job.attempts or attempt, now, not again and said or nil,
    reason)
  return { 1, status }
end
if status == 'failed' then -- as which it is archived
  redis.call('HSET', job_key(job.id), 'reported', with_report(job, said),
    unpack(notes_of(type, job, now, reason)))
  return { 1, '' }
end
redis.call('ZREM', archived_jobs_key(type.name, 'failed'), job.id)
enter_archive(type, job, status, attempt, now, said)
return { 1, status }
