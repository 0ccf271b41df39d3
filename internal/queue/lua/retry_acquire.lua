-- Reschedules a job that a worker has pending, and takes the next: see complete_acquire.lua.
--
-- ARGV     1 namespace, 2.. see read_call, then see release, then when to run it (ms), then see
--          acquire
-- Returns  as complete_acquire.lua
local call, first = read_call()
local entry, next = release(call, first)
if not entry then return 0 end
retry(entry, ARGV[next])
call.retried = entry.job
return acquire_next(call, next + 1)
