-- Counts the subscribers of topics. As a script it is refused in a partition that is held, which
-- may have a part of its keys only.
--
-- ARGV     1 namespace, 2.. topics
-- Returns  for each topic how many it has; -1 where its key is not of its type
local counts = {}
for i = 2, #ARGV do
  local count = redis.pcall('SCARD', topic_subscribers_key(ARGV[i]))
  table.insert(counts, type(count) == 'number' and count or -1)
end
return counts
