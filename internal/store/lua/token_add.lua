-- Registers a token for a client, unless it is registered already, even under another name.
--
-- ARGV     1 namespace, 2 token, 3 client's name
-- Returns  {1}, also when it existed: its registration may still have to be confirmed
redis.call('HSETNX', tokens_key(), ARGV[2], ARGV[3])
return { 1 }
