-- Deletes a client's token, and its subscriber with it.
--
-- ARGV     1 namespace, 2 token
-- Returns  1
remove_subscriber(ARGV[2])
redis.call('HDEL', tokens_key(), ARGV[2])
return 1
