-- Adds walks that have no entry, and wakes walks that would come up too late.
--
-- ARGV     1 namespace, 2.. of each walk its machine, its name, and when it comes up at the latest
--          (ms)
-- Returns  1
-- Cost     2 commands a walk
for i = 2, #ARGV, 3 do
  local entry = add_walk(ARGV[i], ARGV[i + 1])
  if entry then
    local time = redis.call('ZSCORE', scheduled_key(QUEUE), entry)
    if time and tonumber(time) > tonumber(ARGV[i + 2]) then make_instant(QUEUE, entry) end
  end
end
return 1
