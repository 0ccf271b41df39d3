-- Completes a job that a worker has pending.
--
-- ARGV     1 namespace, 2.. see read_call, then see release
-- Returns  1, or 0 when the job is not this worker's (any more): nothing is changed
-- Cost     2 commands, and those of the kind
local entry = release(read_call())
if entry then complete(entry) end
return entry and 1 or 0
