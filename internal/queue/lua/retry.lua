-- Reschedules a job that a worker has pending. Entries taken ahead with it wait again.
--
-- ARGV     1 namespace, 2.. see read_call, then see release, then when to run it (ms)
-- Returns  1, or 0 when the job is not this worker's (any more): it is left as it is
-- Cost     3 commands, and the kind's
local call, first = read_call()
local entry, next = release(call, first)
if entry then retry(entry, ARGV[next]) end
leave_index(call, 0)
return entry and 1 or 0
