-- Says of this bus what it is of a move: see MOVE in the store's lib/moves.lua.
--
-- ARGV     1 namespace, 2 the mark, empty for none
-- Returns  {1}, also when it was so before: that may still have to be confirmed
allow_when_full()
if ARGV[2] == '' then
  redis.call('HDEL', plans_key(), MOVE)
else
  redis.call('HSET', plans_key(), MOVE, ARGV[2])
end
return { 1 }
