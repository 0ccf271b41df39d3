-- Completes a job that a worker has pending, and takes the next: an entry that the first wakes, and
-- the second takes, is never seen by those who wait for a job.
--
-- ARGV     1 namespace, 2.. see read_call, then see release, then see acquire
-- Returns  see acquire_next; 0 when the job is not this worker's (any more): nothing is changed
-- Cost     commands for a batch of one event after another: 18 if it is the same subscriber's,
--          20 if it is another's
local call, first = read_call()
local entry, next = release(call, first)
if not entry then return 0 end
complete(entry)
return acquire_next(call, next)
