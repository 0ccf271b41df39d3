-- Makes or changes a job type.
--
-- ARGV     namespace; typeArgs of typesteps.go; then fields and values
-- Returns  {1}; {0, 'exists'}, {0, 'too many'}, {0, 'client has many'}, {0, 'changed'} by another
--          call, {0, 'unknown'}, {0, 'account full', ...}: its owner's account
-- Keeps    a type in the set of types and in its owner's, and its schedule in the set of schedules
local name, revision, max_types, now, schedule, owner, max_owned = unpack(ARGV, 2, 8)
local FIELDS = 9
now = tonumber(now)
local found = redis.call('HMGET', job_type_key(name), 'revision', 'deleted', 'url', 'paused',
  'owner', 'schedule_data', 'kept')
if revision == '0' then
  local ending = found[2] == '1' and redis.call('ZCARD', open_jobs_key(name)) > 0
  if found[1] and (found[2] ~= '1' or ending) then return { 0, 'exists' } end
  if not found[1] and redis.call('SCARD', job_types_key()) >= tonumber(max_types) then
    return { 0, 'too many' }
  end
  if owner ~= '' and not (found[1] and found[5] == owner)
    and redis.call('SCARD', job_types_of_key(owner)) >= tonumber(max_owned) then
    return { 0, 'client has many' }
  end
elseif not found[1] or found[2] == '1' then
  return { 0, 'unknown' }
elseif found[1] ~= revision then
  return { 0, 'changed' }
end
local before, after = tonumber(found[7]) or 0, found[1] and -#(found[6] or '') or TYPE_BYTES
for i = FIELDS, #ARGV, 2 do
  if ARGV[i] == 'schedule_data' then after = after + #ARGV[i + 1] end
end
after = math.max(0, before + after)
-- A type whose deletion had not ended may pass to another client here, with its archived jobs.
local account, was = account_of(owner), found[1] and (found[5] or '') or owner
local refusal = refusal_of_account(account, was == owner and after - before or after)
if refusal then return refusal end
if revision ~= '0' then allow_when_full() end -- to pause it, for instance
redis.call('HSET', job_type_key(name), 'kept', exact(after), unpack(ARGV, FIELDS))
redis.call('HINCRBY', job_type_key(name), 'revision', 1)
redis.call('HDEL', job_type_key(name), 'deleted')
if was ~= owner then
  charge(account_of(was), -before)
  charge(account_of(owner), after)
elseif after ~= before then
  charge(account, after - before)
end
local stored = redis.call('HMGET', job_type_key(name), 'url', 'paused', 'schedule_data')
if stored[3] ~= found[6] then redis.call('HDEL', job_type_key(name), 'schedule_shared') end
-- Another service, or one that is to be tried now.
if revision == '0' or stored[1] ~= found[3] or (stored[2] ~= '1' and found[4] == '1') then
  redis.call('HDEL', job_type_key(name), 'held_until', 'holds', 'standing', 'wake_from')
  redis.call('HINCRBY', job_type_key(name), 'hold', 1)
end
redis.call('SADD', job_types_key(), name)
if was ~= '' and was ~= owner then redis.call('SREM', job_types_of_key(was), name) end
if owner ~= '' then redis.call('SADD', job_types_of_key(owner), name) end
if schedule == 'set' then
  redis.call('HSET', schedules_key(), name, exact(now))
  redis.call('HDEL', job_type_key(name), 'skipped_at', 'skip_reason')
elseif schedule == 'none' then
  redis.call('HDEL', schedules_key(), name)
  redis.call('HDEL', job_type_key(name), 'skipped_at', 'skip_reason', 'schedule_shared',
    'schedule_open')
end
return { 1 }
