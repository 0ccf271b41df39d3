-- Ends a job that a worker has pending.
--
-- ARGV     1 namespace, 2 queue, 3 worker, 4.. see read_complete, then see read_acquire
-- Returns  1, or 0 when the job is not this worker's (any more): nothing is changed
-- Cost     2 commands, and those of the kind
local entry, retry_at, rest = read_complete(ARGV[2], ARGV[3], 4)
local settings = read_acquire(ARGV[2], ARGV[3], rest).settings
return complete(entry, settings, retry_at) and 1 or 0
