-- Ends a replay, if it runs: nothing more is copied.
--
-- ARGV     1 namespace, 2 the subscriber's token, empty for any, 3 UID of the replay, 4 the state
--          that it ends in, 5 why, empty if there is nothing to say
-- Returns  {1, '1' if it ran, else '0'}; {0, 'unknown'} when the subscriber has no such replay
local token, id = ARGV[2], ARGV[3]
local found = redis.call('HMGET', replay_key(id), 'token', 'state')
if not found[1] or (token ~= '' and found[1] ~= token) then return { 0, 'unknown' } end
if found[2] ~= 'running' then return { 1, '0' } end
allow_when_full()
end_replay(id, ARGV[4], ARGV[5])
return { 1, '1' }
