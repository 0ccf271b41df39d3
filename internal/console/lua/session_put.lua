-- Begins a session, and ends those that would end first if there are too many.
-- Arguments: the namespace, the session's id, now, its end (both in ms), the maximum number of
-- sessions in all, and per token, then its fields and their values; the first field is the token.
-- Returns the number of sessions that it ended.
local ns, id, now, ends = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local max, max_own, token = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[8]
local sessions = sessions_key()
local ended = 0

-- Ends as many of some sessions, from the first, as leaves room for one more below a limit.
local function make_room(some, limit)
  for i = 1, #some - limit + 1 do
    redis.call('DEL', session_key(some[i]))
    redis.call('ZREM', sessions, some[i])
    ended = ended + 1
  end
end

redis.call('ZREMRANGEBYSCORE', sessions, '-inf', now)
local own = {}
for _, other in ipairs(redis.call('ZRANGE', sessions, 0, -1)) do
  if redis.pcall('HGET', session_key(other), 'token') == token then -- it may be no hash
    own[#own + 1] = other
  end
end
make_room(own, max_own)
make_room(redis.call('ZRANGE', sessions, 0, -1), max)
for i = 7, #ARGV, 2 do
  redis.call('HSET', session_key(id), ARGV[i], ARGV[i + 1])
end
redis.call('PEXPIREAT', session_key(id), ends)
redis.call('ZADD', sessions, ends, id)
redis.call('PEXPIREAT', sessions, redis.call('ZRANGE', sessions, -1, -1, 'WITHSCORES')[2])
return ended
