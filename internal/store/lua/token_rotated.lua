-- Ends the change of a client's token, when all of its batches begin with the new one.
--
-- ARGV     1 namespace, 2 the old token
-- Returns  {1}, also when it was ended before: that may still have to be confirmed
redis.call('HDEL', rotations_key(), ARGV[2])
return { 1 }
