-- Says of this bus what it is of a move, see MOVE of package fence, if it is what it
-- was when it was read.
--
-- ARGV     1 namespace, 2 the mark that it was, 3 the one that it is to be; empty for none
-- Returns  {1}, also when it is so already: an answer may have been lost, or the mark may still
--          have to be confirmed; {0, the mark that it is} if that is another one
allow_when_full()
local is, to_be = redis.call('HGET', plans_key(), MOVE) or '', ARGV[3]
if is ~= ARGV[2] and is ~= to_be then return { 0, is } end
if to_be == '' then
  redis.call('HDEL', plans_key(), MOVE)
else
  redis.call('HSET', plans_key(), MOVE, to_be)
end
return { 1 }
