-- Closes a replay that has ended and has no more events in the queue, so that the housekeeping no
-- longer watches it. Its subscriber loses the version of its options, if only the replay needed it.
--
-- ARGV     1 namespace, 2 UID of the replay, 3 how long it is kept from now on (ms)
-- Returns  {1}
local id, ttl = ARGV[2], ARGV[3]
local found = redis.call('HMGET', replay_key(id), 'token', 'state')
if found[2] == 'running' then return { 1 } end
allow_when_full()
redis.call('SREM', running_replays_key(), id)
redis.call('DEL', replay_batches_key(id))
local token = found[1]
if not token then return { 1 } end
redis.call('PEXPIRE', replay_key(id), ttl)
if not has_replay(token) then redis.call('PEXPIRE', replays_key(token), ttl) end
options_versions().drop(token)
return { 1 }
