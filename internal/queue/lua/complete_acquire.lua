-- Ends a job that a worker has pending, and takes the next: an entry that the first wakes, and the
-- second takes, is never seen by those who wait for a job.
--
-- ARGV     1 namespace, 2 queue, 3 worker, 4.. see read_complete, then see read_acquire
-- Returns  {1 or 0 as in complete, what acquire returns or its error (text)}
-- Cost     commands for a batch of one event after another: 20 if it is the same subscriber's,
--          20 if it is another's
local queue, worker = ARGV[2], ARGV[3]
local entry, retry_at, rest = read_complete(queue, worker, 4)
local call = read_acquire(queue, worker, rest)
call.released = complete(entry, call.settings, retry_at)
if not call.released then allow_when_full() end
local ok, taken = pcall(acquire, call)
if not ok then taken = type(taken) == 'table' and taken.err or tostring(taken) end
return { call.released and 1 or 0, taken }
