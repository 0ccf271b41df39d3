-- Drops the oldest slice of idempotency keys of each of some clients. Takes no memory.
--
-- ARGV     1 namespace, 2.. names of the clients
-- Returns  how many keys went
allow_when_full()
local dropped = 0
for i = 2, #ARGV do
  local keys, oldest = idempotency_keys(ARGV[i]), nil
  for number = 1, SLICES do
    local slice = keys.slice(number, LIFE, 0)
    if slice.begun and (not oldest or slice.begun < oldest.begun) then oldest = slice end
  end
  if oldest then
    dropped = dropped + keys.count(oldest)
    redis.call('UNLINK', oldest.key)
  end
end
return dropped
