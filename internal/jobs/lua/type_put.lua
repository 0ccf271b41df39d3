-- Makes or changes a job type.
--
-- ARGV     1 namespace, 2 name, 3 the revision that is to be changed, 0 for a type that is to be
--          made, 4 max types, 5 now (µs), 6 whether the type has a schedule that was set now
--          ('set'), has none ('none'), or has the one that it had ('kept'), 7 its owner, '' for
--          root, 8 max types of that, 9.. fields and values
-- Returns  {1}; {0, 'exists'}, {0, 'too many'}, {0, 'client has many'}, {0, 'changed'} by somebody
--          else, {0, 'unknown'}, {0, 'account full', ...}: its owner's account
-- Keeps    a type in the set of types and in its owner's, one with a schedule in that of schedules
local name, revision, now, owner = ARGV[2], ARGV[3], tonumber(ARGV[5]), ARGV[7]
local found = redis.call('HMGET', job_type_key(name), 'revision', 'deleted', 'url', 'paused',
  'owner', 'schedule_data', 'kept')
if revision == '0' then
  local ending = found[2] == '1' and redis.call('ZCARD', open_jobs_key(name)) > 0
  if found[1] and (found[2] ~= '1' or ending) then return { 0, 'exists' } end
  if not found[1] and redis.call('SCARD', job_types_key()) >= tonumber(ARGV[4]) then
    return { 0, 'too many' }
  end
  if owner ~= '' and not (found[1] and found[5] == owner)
    and redis.call('SCARD', job_types_of_key(owner)) >= tonumber(ARGV[8]) then
    return { 0, 'client has many' }
  end
elseif not found[1] or found[2] == '1' then
  return { 0, 'unknown' }
elseif found[1] ~= revision then
  return { 0, 'changed' }
end
local before, after = tonumber(found[7]) or 0, found[1] and -#(found[6] or '') or TYPE_BYTES
for i = 9, #ARGV, 2 do
  if ARGV[i] == 'schedule_data' then after = after + #ARGV[i + 1] end
end
after = math.max(0, before + after)
-- One whose deletion had not ended may be another client's from now on, with its archived jobs.
local account, was = account_of(owner), found[1] and (found[5] or '') or owner
local refusal = refusal_of_account(account, was == owner and after - before or after)
if refusal then return refusal end
if revision ~= '0' then allow_when_full() end -- to pause it, for instance
redis.call('HSET', job_type_key(name), 'kept', exact(after), unpack(ARGV, 9))
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
if ARGV[6] == 'set' then
  redis.call('HSET', schedules_key(), name, exact(now))
  redis.call('HDEL', job_type_key(name), 'skipped_at', 'skip_reason')
elseif ARGV[6] == 'none' then
  redis.call('HDEL', schedules_key(), name)
  redis.call('HDEL', job_type_key(name), 'skipped_at', 'skip_reason', 'schedule_shared',
    'schedule_open')
end
return { 1 }
