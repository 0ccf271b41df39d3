-- Makes or changes a job type.
--
-- ARGV     1 namespace, 2 name, 3 the revision that is to be changed, 0 for a type that is to be
--          made, 4 max types, 5 now (µs), 6 whether the type has a schedule that was set now
--          ('set'), has none ('none'), or has the one that it had ('kept'), 7 its owner, '' for
--          root, 8 max types of that, 9.. fields and values
-- Returns  {1}; {0, 'exists'}, {0, 'too many'}, {0, 'client has many'}, {0, 'changed'} by somebody
--          else, {0, 'unknown'}
-- Keeps    a type in the set of types and in its owner's, one with a schedule in that of schedules
local name, revision, now, owner = ARGV[2], ARGV[3], tonumber(ARGV[5]), ARGV[7]
local found = redis.call('HMGET', type_key(name), 'revision', 'deleted', 'url', 'paused', 'owner',
  'schedule_data')
if revision == '0' then
  local ending = found[2] == '1' and redis.call('ZCARD', open_key(name)) > 0
  if found[1] and (found[2] ~= '1' or ending) then return { 0, 'exists' } end
  if not found[1] and redis.call('SCARD', types_key()) >= tonumber(ARGV[4]) then
    return { 0, 'too many' }
  end
  if owner ~= '' and not (found[1] and found[5] == owner)
    and redis.call('SCARD', types_of_key(owner)) >= tonumber(ARGV[8]) then
    return { 0, 'client has many' }
  end
elseif not found[1] or found[2] == '1' then
  return { 0, 'unknown' }
elseif found[1] ~= revision then
  return { 0, 'changed' }
end
if revision ~= '0' then allow_when_full() end -- to pause it, for instance
redis.call('HSET', type_key(name), unpack(ARGV, 9))
redis.call('HINCRBY', type_key(name), 'revision', 1)
redis.call('HDEL', type_key(name), 'deleted')
local after = redis.call('HMGET', type_key(name), 'url', 'paused', 'schedule_data')
if after[3] ~= found[6] then redis.call('HDEL', type_key(name), 'schedule_shared') end
-- Another service, or one that is to be tried now.
if revision == '0' or after[1] ~= found[3] or (after[2] ~= '1' and found[4] == '1') then
  redis.call('HDEL', type_key(name), 'held_until', 'holds', 'standing', 'wake_from')
  redis.call('HINCRBY', type_key(name), 'hold', 1)
end
redis.call('SADD', types_key(), name)
-- One whose deletion had not ended may be another client's from now on.
if found[5] and found[5] ~= '' and found[5] ~= owner then
  redis.call('SREM', types_of_key(found[5]), name)
end
if owner ~= '' then redis.call('SADD', types_of_key(owner), name) end
if ARGV[6] == 'set' then
  redis.call('HSET', schedules_key(), name, exact(now))
  redis.call('HDEL', type_key(name), 'skipped_at')
elseif ARGV[6] == 'none' then
  redis.call('HDEL', schedules_key(), name)
  redis.call('HDEL', type_key(name), 'skipped_at', 'schedule_shared', 'schedule_open')
end
return { 1 }
