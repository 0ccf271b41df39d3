-- Registers a token for a client, unless it is another client's.
--
-- ARGV     1 namespace, 2 token, 3 client's name
-- Returns  1, 0 when the token is another client's
local token, name = ARGV[2], ARGV[3]
local holder = redis.call('HGET', tokens_key(), token)
if holder and holder ~= name then return 0 end
redis.call('HSET', tokens_key(), token, name)
return 1
