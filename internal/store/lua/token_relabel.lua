-- Relabels a slice of all batches, in the order of the index: those that begin with a token which is being changed then begin with the
-- new one. Nothing else is to be moved, see token_rotate.
--
-- ARGV     1 namespace, 2 the token, 3 the new one, 4 creation time (ms) and 5 UID of the batch after which the slice begins, empty
--          for the beginning, 6 most batches to look at
-- Returns  {creation time (ms), UID} of the last batch of the slice; empty when none is left
local old, new, index = ARGV[2], ARGV[3], batches_index_key()
local first = 0
if ARGV[5] ~= '' then
  local rank = redis.call('ZRANK', index, ARGV[5])
  if rank then
    first = rank + 1
  else -- it has gone: those of the same time are looked at again
    first = redis.call('ZCOUNT', index, '-inf', '(' .. ARGV[4])
  end
end
local slice = redis.call('ZRANGE', index, first, first + tonumber(ARGV[6]) - 1, 'WITHSCORES')
allow_when_full()
for i = 1, #slice, 2 do
  for _, key in ipairs({ batch_key(slice[i]), original_key(slice[i]) }) do
    if redis.pcall('LINDEX', key, 0) == old then redis.call('LSET', key, 0, new) end
  end
end
if #slice == 0 then return {} end
return { string.format('%.0f', tonumber(slice[#slice])), slice[#slice - 1] }
