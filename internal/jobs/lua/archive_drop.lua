-- Removes the oldest archived jobs of a type and a status.
--
-- ARGV     1 namespace, 2 type, 3 status, 4 max jobs to remove, 5 now (µs)
-- Returns  {the number of jobs removed, the place of the first that is left (text), '' if none is}
-- Cost     commands: 6, and 5 for each job; 3 more, and 1 for each, if jobs were to be tried once
allow_when_full()
local list = archived_jobs_key(ARGV[2], ARGV[3])
local ids = redis.call('ZRANGE', list, 0, ARGV[4] - 1)
local read, type = pcall(read_type, ARGV[2])
remove_archived(ARGV[2], read and type, list, ids, tonumber(ARGV[5]))
local head = redis.call('ZRANGE', list, 0, 0, 'WITHSCORES')
return { #ids, head[2] and exact(tonumber(head[2])) or '' }
