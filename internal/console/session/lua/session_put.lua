-- Begins a session, and ends those that would end first if there are too many.
-- Arguments: the namespace, the session's id, now, when it ends (both in ms), how many sessions
-- there may be, then the session's fields and their values. Returns how many it ended.
local ns, id, now, ends, max = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local sessions, session = ns .. 'console:sessions', ns .. 'console:session:'
redis.call('ZREMRANGEBYSCORE', sessions, '-inf', now)
local first = redis.call('ZRANGE', sessions, 0, redis.call('ZCARD', sessions) - max)
for _, other in ipairs(first) do
  redis.call('DEL', session .. other)
  redis.call('ZREM', sessions, other)
end
for i = 6, #ARGV, 2 do
  redis.call('HSET', session .. id, ARGV[i], ARGV[i + 1])
end
redis.call('PEXPIREAT', session .. id, ends)
redis.call('ZADD', sessions, ends, id)
redis.call('PEXPIREAT', sessions, redis.call('ZRANGE', sessions, -1, -1, 'WITHSCORES')[2])
return #first
