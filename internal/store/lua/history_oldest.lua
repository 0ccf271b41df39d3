-- Returns when the oldest event in the history of each of some topics was received (ms), and false
-- where there is none.
--
-- ARGV     1 namespace, 2.. topics
local found, all = {}, histories()
for i = 2, #ARGV do
  local entry = redis.pcall('LINDEX', history_key(ARGV[i]), 0)
  found[i - 1] = false
  if type(entry) == 'string' then found[i - 1] = all.received_at(entry) end
end
return found
