-- Reads how large batches are. It stops after a number of events, so that it stays short.
--
-- ARGV     1 namespace, 2 number of events after which it stops, 3.. UIDs of batches
-- Returns  {owner's token, length of the list, bytes of its events, ...}, three values for each
--          batch that it came to, at least one; '' and zeros for one that is not there
local sizes, events = {}, 0
for i = 3, #ARGV do
  if events >= tonumber(ARGV[2]) then break end
  local batch = redis.pcall('LRANGE', batch_key(ARGV[i]), 0, -1)
  events = events + #batch
  table.insert(sizes, batch[1] or '')
  table.insert(sizes, exact(#batch))
  table.insert(sizes, exact(bytes_of(batch, HEADER + 1)))
end
return sizes
