-- Removes the oldest archived jobs of a type and a status.
--
-- ARGV     1 namespace, 2 type, 3 status, 4 max jobs to remove
-- Returns  {the number of jobs removed, the place of the first that is left (text), '' if none is}
-- Cost     commands: 6, and 5 for each job
allow_when_full()
local list = archive_key(ARGV[2], ARGV[3])
local ids = redis.call('ZRANGE', list, 0, ARGV[4] - 1)
local read, type = pcall(read_type, ARGV[2])
remove_archived(read and type, list, ids)
local head = redis.call('ZRANGE', list, 0, 0, 'WITHSCORES')
return { #ids, head[2] and exact(tonumber(head[2])) or '' }
