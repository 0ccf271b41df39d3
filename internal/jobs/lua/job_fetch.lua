-- Takes jobs of a type for a service that fetches them.
--
-- ARGV     1 namespace, 2 type, 3 max jobs, 4 now (µs), 5 the client, '' for root
-- Returns  {1, how many others have expired, job, ...}, as show_job; {0, 'unknown type'};
--          {0, 'not client'}; {0, 'not pull'}. Fewer jobs if their data is large: MAX_BYTES, and
--          one job's, at most
-- Keeps    the limit of the type; each job scheduled for its deadline
-- Cost     commands: 3, and 7 for each job
local MAX_EXPIRED = 100
local MAX_BYTES = 4194304 -- as MaxPageBytes of lists.go
local type, now = read_type(ARGV[2]), tonumber(ARGV[4])
if not type or type.deleted then return { 0, 'unknown type' } end
if is_for_others(type.name, ARGV[5]) then return { 0, 'not client' } end
if not type.pull then return { 0, 'not pull' } end
allow_when_full()
local jobs, expired, bytes = {}, 0, 0
local deadline, most = now + type.timeout * 1000, tonumber(ARGV[3])
-- Expired ones are looked at in addition.
for _, entry in ipairs(in_turn_of(type.lane, type.max, most + MAX_EXPIRED)) do
  if #jobs == most or bytes >= MAX_BYTES then break end
  local _, id = unpack_job(entry)
  local ok, job = pcall(read_job, id)
  -- The worker that takes the entry puts off one that has just come up; it is fetched then.
  if ok and job and redis.call('ZSCORE', scheduled_key(QUEUE), entry) then
    if job.expires_at > 0 and job.expires_at <= now then
      archive(type, job, 'expired', job.attempts, now)
      expired = expired + 1
    else
      begin_in_lane(type.lane, entry, job.place)
      redis.call('ZADD', scheduled_key(QUEUE), due(deadline), entry)
      redis.call('HSET', job_key(id), 'status', 'in-progress', 'deadline', exact(deadline),
        'ended', '', 'updated_at', exact(now), 'started', exact(now))
      local shown = show_job(id)
      bytes = bytes + #(shown[3] or '')
      table.insert(jobs, shown)
    end
  end
end
return { 1, expired, unpack(jobs) }
