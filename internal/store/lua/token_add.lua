-- Registers a token for a client, unless it is registered, under whatever name.
--
-- ARGV     1 namespace, 2 token, 3 client's name
-- Returns  {1}, also when it was there: its registration may still have to be confirmed
redis.call('HSETNX', tokens_key(), ARGV[2], ARGV[3])
return { 1 }
