-- Ends a preparation of definitions, unless it is over.
--
-- ARGV     1 namespace, 2 the preparation, see definitions_prepare
-- Returns  {1}
if preparation() == ARGV[2] then redis.call('HDEL', definitions_key(), 'preparing') end
return { 1 }
