-- Enqueues a copy of a job that is in progress or archived. It shares the data of that. If the copy
-- is there, it stays as it is. A copy that was to be tried once is not made again for a day after
-- its removal.
--
-- ARGV     1 namespace, 2 id, 3 type, may be empty, 4 id of the copy, 5 now (µs), 6 the client, ''
--          for root
-- Returns  {1, the copy, as show_job}; {0, 'unknown'}; {0, 'not client'}; {0, 'queued'};
--          {0, 'unknown type'}; {0, 'removed'}; {0, 'account full', ...}: the account of the
--          type's owner
local done = read_job(ARGV[4])
if done then
  if ARGV[3] ~= '' and done.type ~= ARGV[3] then return { 0, 'unknown' } end
  if is_for_others(done.type, ARGV[6]) then return { 0, 'not client' } end
  return { 1, show_job(ARGV[4]) }
end
local job, now = read_job(ARGV[2]), tonumber(ARGV[5])
if not job or redis.call('EXISTS', data_of(job)) == 0
  or (ARGV[3] ~= '' and job.type ~= ARGV[3]) then
  return { 0, 'unknown' }
end
if is_for_others(job.type, ARGV[6]) then return { 0, 'not client' } end
if job.status == 'queued' then return { 0, 'queued' } end
local type = read_type(job.type)
if not type or type.deleted then return { 0, 'unknown type' } end
if removed_among(type, { ARGV[4] }, now)[ARGV[4]] then return { 0, 'removed' } end
local account = account_of(type.owner)
local refusal = refusal_of_account(account, JOB_BYTES)
if refusal then return refusal end
local copy = {
  id = ARGV[4], data_id = share_data(job, ARGV[4]), place = next_number(type, now), run_after = '0',
  expires_at = job.expires,
}
add_jobs(type, { copy }, '', now)
keep(type, account, JOB_BYTES)
return { 1, show_job(copy.id) }
