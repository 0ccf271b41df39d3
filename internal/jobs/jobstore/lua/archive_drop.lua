-- Removes the oldest archived jobs: of the type and status whose oldest is the oldest of all.
--
-- ARGV     1 namespace, 2 max jobs to remove
-- Returns  the number of jobs removed, 0 if there is none
-- Cost     commands: 1 for each type and status, and 2 for each job
allow_when_full()
local oldest, since = nil, math.huge
for _, name in ipairs(redis.call('SMEMBERS', types_key())) do
  for _, status in ipairs(STATUSES) do
    local key = archive_key(name, status)
    local head = redis.pcall('ZRANGE', key, 0, 0, 'WITHSCORES') -- one that is no list has no head
    if head[1] and tonumber(head[2]) < since then oldest, since = key, tonumber(head[2]) end
  end
end
if not oldest then return 0 end
local ids = redis.call('ZRANGE', oldest, 0, ARGV[2] - 1)
remove_archived(oldest, ids)
return #ids
