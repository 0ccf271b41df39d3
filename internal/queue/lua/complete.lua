-- Completes a job that a worker has pending, and the jobs that were done after it.
--
-- ARGV     1 namespace, 2.. see read_call, then see release
-- Returns  1, or 0 when the job is not this worker's (any more): it is left as it is
-- Cost     2 commands, and the kind's
local call, first = read_call()
local entry, _, others = release(call, first)
local owned = complete_released(entry, others)
leave_index(call, 0)
return owned and 1 or 0
