-- Relabels a slice of all batches, in the order of the index: batches of a token that is being
-- changed become batches of its successor. Each step reads the successor, because that may be
-- changed in the meantime, too. Nothing else remains to be moved: see token_rotate.
--
-- ARGV     1 namespace, 2 the token, 3 creation time (ms) and 4 UID of the batch after which the
--          slice begins, empty for the beginning, 5 max batches to look at
-- Returns  {creation time (ms), UID} of the last batch of the slice; empty when none is left, or
--          the token is not being changed any more
local old, index = ARGV[2], batches_index_key()
local new = redis.call('HGET', rotations_key(), old)
if not new then return {} end
local first = 0
if ARGV[4] ~= '' then
  local rank = redis.call('ZRANK', index, ARGV[4])
  if rank then
    first = rank + 1
  else -- the batch has gone: look at batches of the same time again
    first = redis.call('ZCOUNT', index, '-inf', '(' .. ARGV[3])
  end
end
local slice = redis.call('ZRANGE', index, first, first + tonumber(ARGV[5]) - 1, 'WITHSCORES')
allow_when_full()
for i = 1, #slice, 2 do
  for _, key in ipairs({ batch_key(slice[i]), original_key(slice[i]) }) do
    if redis.pcall('LINDEX', key, 0) == old then redis.call('LSET', key, 0, new) end
  end
end
if #slice == 0 then return {} end
return { string.format('%.0f', tonumber(slice[#slice])), slice[#slice - 1] }
