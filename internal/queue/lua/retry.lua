-- Has a job that a worker has pending run again.
--
-- ARGV     1 namespace, 2.. see read_call, then see release, then when to run it (ms)
-- Returns  1, or 0 when the job is not this worker's (any more): nothing is changed
-- Cost     3 commands, and those of the kind
local entry, first = release(read_call())
if entry then retry(entry, ARGV[first]) end
return entry and 1 or 0
