-- Completes a job that a worker has pending, and takes the next: an entry that the first wakes, and
-- the second takes, is never seen by those who wait for a job.
--
-- ARGV     1 namespace, 2.. see read_call, then see release, then see acquire
-- Returns  see acquire_next
-- Cost     commands for a batch of one event after another: 18 if it is the same subscriber's,
--          20 if it is another's
local call, first = read_call()
local entry, next = release(call, first)
if entry then complete(entry) end
return acquire_next(call, entry, next)
