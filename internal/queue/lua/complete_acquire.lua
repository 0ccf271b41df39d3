-- Completes a job that a worker has pending, and the jobs that were done after it, and takes the
-- next: an entry that the first wakes and the second takes is never visible to waiting workers.
--
-- ARGV     1 namespace, 2.. see read_call, then see release, then see acquire
-- Returns  see acquire_next; 0 when the job is not this worker's (any more): it is left as it is,
--          and none is taken
-- Cost     commands for a batch of one event after another: 19 if it is the same subscriber's,
--          21 if it is another's; 53 for eight that are taken together, after eight
local call, first = read_call()
local entry, next, others = release(call, first)
if not complete_released(entry, others) then return 0 end
return acquire_next(call, next)
